"""A core dump of a GPU, read without a GPU and without a driver: what its sections hold, as frozen dataclasses."""
