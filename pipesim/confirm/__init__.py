"""A finding on a chip: delays in the kernel's PTX bring its schedule about."""
