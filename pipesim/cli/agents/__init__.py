"""What agents that write kernels get: a server with tools, and what they should know."""
