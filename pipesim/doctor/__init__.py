"""What this machine has of what pipesim uses, what is missing, and the command that corrects it."""
