"""Ready-made kernels as protocols, and the limits of the hardware that they must keep."""
