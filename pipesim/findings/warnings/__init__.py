"""Warnings of a proved protocol."""
