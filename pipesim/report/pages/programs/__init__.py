"""What commands say that run a program or a kernel with a GPU, or read its dump."""
