"""What a core dump of a kernel that hangs says: where each warp is, what it waits for, and who could supply it."""
