"""The twins that run on Hopper: each kernel beside its table and its description."""
