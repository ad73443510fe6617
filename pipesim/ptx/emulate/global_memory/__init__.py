"""Global memory as the warps of a cluster access it, and the words of it by which CTAs talk to each other."""
