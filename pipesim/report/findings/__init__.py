"""Findings as text: deadlocks, faults, divergences, counterexamples."""
