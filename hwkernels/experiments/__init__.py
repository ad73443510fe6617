"""Small kernels that ask the chip one question each, and their stored answers. Needs no GPU until something is run."""
