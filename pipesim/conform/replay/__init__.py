"""One recorded trace against its program: alignment, replay on the machine, and the first divergence."""
