"""Leaving out the part of a simulation that repeats, after it has been shown that it does."""
