"""A process and those that it starts: what ends it before its work does, and what it leaves on disk then."""
