"""Small kernels that ask the hardware one question each, and their stored answers. Needs no GPU until something is
run.
"""
