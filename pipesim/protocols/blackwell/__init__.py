"""Blackwell's GEMM kernels beyond the default one, and the parts that they share."""
