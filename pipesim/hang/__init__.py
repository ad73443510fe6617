"""A program that hangs on a GPU: it is run with core dumps on request, watched, and dumped when it stands still."""
