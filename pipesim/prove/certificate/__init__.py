"""The certificate: one canonical run that represents all schedules, and the doubts that say why it may not."""
