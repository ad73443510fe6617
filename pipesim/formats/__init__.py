"""Programs and results in the formats of other tools, a package for each format."""
