"""Derives the formula of a program's times from one run that it watches."""
