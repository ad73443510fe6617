"""Micro-kernels: what single instructions cost on a GPU, for the latency profile of a device that was never seen."""
