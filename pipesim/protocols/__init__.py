"""Ready-made kernels as protocols, and the limits of the chip that they must keep."""
