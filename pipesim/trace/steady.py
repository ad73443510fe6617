"""Which iterations count as steady state. The kernels take their own period between the same two iterations."""

from __future__ import annotations


def steady_window(trips: int, stages: int) -> tuple[int, int] | None:
    """The first and last iteration of the steady state of a loop of ``trips``, a multiple of ``stages`` apart.

    The first quarter (but at least one lap) and the last iterations are left out. None if no lap is left between.
    """
    first = max(trips // 4, stages)
    laps = (trips - 1 - trips // 8 - first) // stages
    return (first, first + laps * stages) if laps >= 1 else None
