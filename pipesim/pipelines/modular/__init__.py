"""Modular's pipelines: one module for each upstream struct or file."""
