"""PTX files and launch files, made of the records of an observed process."""
