"""pipesim."""
