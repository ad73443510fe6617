"""Faults of an mbarrier: counts of arrivals, its life, states of its phases; and waits that never end."""
