"""What would make a protocol faster: its bottleneck, and changes that are simulated one by one."""
