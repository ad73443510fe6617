"""PTX as plain data: a reader for the text that compilers write, PTX ISA 8.0 to 9.4."""
