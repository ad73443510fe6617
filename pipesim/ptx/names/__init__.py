"""What the source of a kernel calls its barriers and tiles, read from the lines that ``.loc`` names."""
