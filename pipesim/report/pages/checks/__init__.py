"""What ``check`` says."""
