"""What all reports share: the console, line layout, tables, numbers with units."""
