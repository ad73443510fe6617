"""Laps of loops: of those that are one as the other a run goes through a few, and of a loop without end one."""
