"""What lanes of one warp do together, apart, and for each other."""
