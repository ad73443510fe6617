"""What is said of protocols: their runs, sweeps, proofs and traces."""
