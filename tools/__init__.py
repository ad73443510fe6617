"""Measurements, generators of pages and golden files, and judges: ``tools/README.md`` lists them."""
