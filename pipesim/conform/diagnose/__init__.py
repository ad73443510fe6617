"""What failed in a recorded run: single edits of the protocol that explain it, and the autopsy of a hang."""
