"""What integer instructions give: of integers, of bounds, and of bits that are known in part."""
