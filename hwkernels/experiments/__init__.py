"""What small kernels asked the hardware, one question each, and their stored answers, compared with the model."""
