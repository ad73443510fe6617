"""What no schedule beats: the least time and the least period of a program under a profile."""
