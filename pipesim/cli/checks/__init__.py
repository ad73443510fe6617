"""What is proved of kernels and protocols: ``check``, and the names with which a kernel is shown."""
