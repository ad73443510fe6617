"""Likely corrections: a closed list of single edits, each offered only if the edited program is proved."""
