"""What code a process hands to the driver: images, fat binaries, and which of their entries runs."""
