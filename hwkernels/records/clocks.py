"""Placing the clocks of SMs on one time line, with strict bounds. No CUDA: numpy only.

Both clocks are read together twice, at an edge of ``%globaltimer`` before and after everything that is placed.
A timestamp lies on the straight line through the two edges. The error is a strict bound for an SM clock that stays near
its mean in between: half the distance of the two clock readings that enclose an edge, one cycle for the grain of a
timestamp, rounding, and DRIFT_PERMILLE of the time to the nearer edge; more where a kernel's load moves the clock.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipesim.errors import TraceFormatError
from pipesim.trace.schema import Column

#: One reading of both clocks at an edge of the timer, as a kernel leaves it.
ANCHOR: np.dtype[Any] = np.dtype(
    [("globaltimer_before", "<u8"), ("globaltimer", "<u8"), ("clock_before", "<u8"), ("clock_after", "<u8")]
)
#: How far the SM clock may stray from its mean between two anchors. On a full chip whose load has just begun it was
#: seen 6.1 permille off over the first 2 µs of 39 (H100; 1.2 on an H200, next to nothing with one CTA).
DRIFT_PERMILLE = 10
CLOCK_SKEW_CYCLES = 20  #: bound on the difference of %clock between the warps of an SM
_ROUNDING_PS = 2
_FOR_EVER = (1 << 63) - 1


@dataclass(frozen=True)
class Line:
    """An SM's clock between two edges. Cycles are those of the SM, nanoseconds those of ``%globaltimer``."""

    cycles: tuple[int, int]  #: of the two edges, each the middle of the readings that enclose it
    timers: tuple[int, int]
    slack: tuple[int, int]  #: half distances of the enclosing readings, in cycles
    limits: tuple[int, int]  #: clock readings that enclose all records
    open_end: bool = False  #: the second edge was never seen: the first and the rate represent it
    stray_ps: int = 0  #: how far the clock may be off the line besides, wherever: where it is known not to be constant

    @property
    def ps(self) -> int:
        """Picoseconds between the edges."""
        return (self.timers[1] - self.timers[0]) * 1000

    @property
    def span(self) -> int:
        """Cycles between the edges."""
        return self.cycles[1] - self.cycles[0]

    def in_ps(self, cycles: int) -> int:
        """A number of cycles in picoseconds, rounded up."""
        return -(-cycles * self.ps // self.span)

    def place(self, cycles: Column, origin_ns: int = 0) -> Column:
        """The times in picoseconds since ``origin_ns`` of timestamps that count from the first edge, rounded down."""
        return scale(cycles, self.ps, self.span) + (self.timers[0] - origin_ns) * 1000

    def drift_ps(self, cycles: Column) -> Column:
        """How far the clock may have strayed at these timestamps, which count from the first edge."""
        away = np.abs(cycles)  # to the nearer edge
        if not self.open_end:
            away = np.minimum(away, np.abs(cycles - self.span))
        return scale(away, DRIFT_PERMILLE * self.ps, 1000 * self.span) + self.stray_ps

    def error_ps(self, cycles: Column) -> Column:
        """The strict bound of :meth:`place`, to either side."""
        return self.drift_ps(cycles) + self.in_ps(max(self.slack) + 1) + _ROUNDING_PS


def _with_second(anchors: npt.NDArray[Any], khz: int) -> npt.NDArray[Any]:
    """Anchors whose second is where the first leads in a second at this clock: the bound grows from the first on."""
    both = anchors.copy()
    for name, later in (("globaltimer", 10**9), ("clock", khz * 1000)):
        for field in (f for f in both.dtype.names or () if f.startswith(name)):
            both[1][field] = int(both[0][field]) + later  # NumPy 1 adds in floating point
    return both


def read_line(anchors: npt.NDArray[Any], place: str, khz: int = 0) -> Line:
    """The line through the two anchors that a kernel wrote. Raises TraceFormatError if they contradict themselves.

    ``khz``: the SM clock, which replaces a second anchor that a trapped CTA did not reach.
    """
    open_end = bool(khz and not anchors[1]["globaltimer"])
    if open_end:
        anchors = _with_second(anchors, khz)
    middles, slack = [], []
    for anchor in anchors:
        before, after = int(anchor["clock_before"]), int(anchor["clock_after"])
        middle = (before + after) // 2
        middles.append(middle)
        slack.append(after - middle)
        if after <= before or anchor["globaltimer"] <= anchor["globaltimer_before"]:
            raise TraceFormatError(f"an anchor whose clocks do not advance: {anchor}", place=place)
    line = Line(
        (middles[0], middles[1]),
        (int(anchors[0]["globaltimer"]), int(anchors[1]["globaltimer"])),
        (slack[0], slack[1]),
        (int(anchors[0]["clock_after"]), _FOR_EVER if open_end else int(anchors[1]["clock_before"])),
        open_end,
    )
    if line.ps <= 0 or line.span <= 0:
        raise TraceFormatError("the second anchor is not later than the first", place=place)
    return line


def scale(values: Column, numerator: int, denominator: int) -> Column:
    """``values * numerator // denominator``, exact: the products do not fit 64 bits."""
    return np.array([int(v) * numerator // denominator for v in values], dtype=np.int64)
