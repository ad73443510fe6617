"""Traces: one schema for simulated and recorded events, their Parquet files, and the shelf of recorded ones.

``schema`` owns the meaning, ``consistency`` the rules every trace keeps, ``metadata`` the JSON document of a file,
``files`` reading and writing, ``recorder`` the buffer a simulation fills, ``library`` the stored recordings.
"""
