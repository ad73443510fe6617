"""The observed process: what runs in it, with the standard library only, and writes records of its launches."""
