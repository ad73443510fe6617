"""A program whose kernels hang: it is run with core dumps on request, watched, and dumped when it makes no progress."""
