"""Which synchronisation of a proved program is not needed: candidates, their edits, and what a removal must keep."""
