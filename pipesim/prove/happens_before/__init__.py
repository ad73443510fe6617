"""What happens before what in one run: clocks, accesses, transfer groups, and snapshots of all three."""
