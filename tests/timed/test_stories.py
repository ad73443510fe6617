"""What the clock is for: polls and wakes, cold copies, shared bandwidth, tries, named barriers, groups of transfers."""

from __future__ import annotations
