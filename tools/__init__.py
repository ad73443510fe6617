"""Measurements, generators of pages and golden files, and comparisons of engines: ``tools/README.md`` lists them."""
