"""Counterexamples: schedules that show a fault, made, shortened, put into words and into one line of text."""
