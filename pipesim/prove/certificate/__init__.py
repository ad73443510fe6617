"""The certificate: one canonical run that stands for all schedules, and the doubts that say why it may not."""
