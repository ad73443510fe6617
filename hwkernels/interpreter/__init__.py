"""A kernel that interprets flat programs, with the hardware's own barriers and copies: any described protocol runs."""
