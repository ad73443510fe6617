"""What instructions compute, as texts of Python expressions: the table, and a file for each kind of instruction."""
