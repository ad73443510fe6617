"""Counts of bytes, of threads at named barriers, and of the CTAs of a cluster."""
