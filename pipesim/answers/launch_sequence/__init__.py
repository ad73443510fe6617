"""Launches one after the other: what they do to the same memory, and what orders it."""
