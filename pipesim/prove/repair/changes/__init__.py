"""What corrections change in a program: where each of them is possible, and the program with it."""
