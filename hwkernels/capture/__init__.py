"""Capture: from a request to a trace, for kernels of ours and for a user's."""
