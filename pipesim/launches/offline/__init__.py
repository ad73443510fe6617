"""Launches of kernels that a compiler makes here, without a GPU."""
