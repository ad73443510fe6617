"""What operations do to barriers, memory and agents, and what programs and warps may do."""
