"""The occurrence graph of one run: which operations made each phase, which completed it, which waits saw it."""

from __future__ import annotations

LOAD, MMA = 0, 1
