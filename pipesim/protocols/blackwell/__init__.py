"""The protocols of Blackwell's kernels (sm_100), and the parts that they share."""
