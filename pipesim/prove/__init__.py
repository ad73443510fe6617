"""Answers for every schedule, not for one: the search, and what it shares with the other engines."""
