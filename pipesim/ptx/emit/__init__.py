"""From what the warps of a cluster did to a flat program, and what that program leaves out."""
