"""The check of one program: its verdict, what explains it, and how far it holds."""
