"""Accesses that collide, find other data than they expect, or are not ordered."""
