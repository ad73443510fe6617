"""The description language: roles written as Python functions, recorded once, flattened into plain data."""
