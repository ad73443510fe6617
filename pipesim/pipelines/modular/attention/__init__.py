"""Modular's attention pipelines: FA4 barriers, role pipelines, staged and TMA pipelines."""
