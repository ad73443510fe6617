"""One module for each report that a command prints."""
