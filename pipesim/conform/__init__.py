"""Recorded traces compared with the model: replay on the machine, timing, pairs of traces, explanations."""
