"""Two recorded traces of one protocol, A and B: configuration, behaviour, and where time was gained or lost."""
