"""A verdict about every value of a word of a kernel's parameters: values that do the same, and what repeats."""
