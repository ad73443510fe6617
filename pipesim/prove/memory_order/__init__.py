"""Memory order: accesses that are ordered on a machine with one memory and not by the PTX memory model."""
