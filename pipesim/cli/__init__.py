"""The command line: arguments, progress, exit codes. Nothing is computed here."""
