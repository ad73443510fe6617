"""A verdict about a whole launch: the CTAs that do not do what the first one does, and fewer tiles left by others."""
