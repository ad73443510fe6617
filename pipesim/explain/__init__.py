"""What happened in one run of a flat program, and who waits for whom when it can go no further."""
