"""What instructions do beyond computing, by opcode: each takes the cluster, the warp and the step."""
