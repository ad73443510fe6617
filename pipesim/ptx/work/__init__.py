"""What a warp computes between two operations, estimated from its instructions: for simulated times only."""
