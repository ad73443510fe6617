"""What all recorders share: the bits of a record, and the clocks that place it in time."""
