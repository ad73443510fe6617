"""Fitting a latency profile to recordings: what they say, what they do not determine, and what would."""
