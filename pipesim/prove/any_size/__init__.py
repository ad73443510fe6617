"""Long programs and programs of any size: iterations that repeat, and a family that differs in one trip count."""
