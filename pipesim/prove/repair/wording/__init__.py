"""Corrections in words, and as a line that is added to the author's source."""
