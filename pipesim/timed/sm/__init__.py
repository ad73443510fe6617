"""What the warps of an SM share: copy engine, tensor cores, issue slots, shared memory."""
