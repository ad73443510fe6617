"""Python code that carries out a formula: in its own order, or in any order of copies."""
