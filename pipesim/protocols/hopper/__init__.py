"""The protocols of Hopper's kernels (sm_90), and the parts that they share."""
