"""What an observed process has written into a spool folder, as plain data."""
