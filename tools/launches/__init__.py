"""Launches caught on a GPU: a program of several frameworks, and what is measured of the capture."""
