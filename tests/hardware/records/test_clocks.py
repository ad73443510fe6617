"""The clock of an SM between two anchors: the bounds hold the truth, and anchors that contradict are an error.

The true clocks here are made with exact fractions: the time of an SM's cycle c is known, whatever is then read of it.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwkernels.records.clocks import ANCHOR, DRIFT_PERMILLE, Line, read_line
from pipesim.errors import TraceFormatError

STEP_NS = 32
EPOCH_NS = 1_790_000_000_000_000_000  # so large that a product with it does not fit 64 bits


@dataclass(frozen=True)
class Sm:
    """A true clock: ``span`` cycles from one edge of the timer to another, and how far it strays in between."""

    origin: int  # its %clock64 at the first edge
    timers: tuple[int, int]
    span: int
    stray: Fraction  # -1 .. 1 of the drift that is allowed
    reading: tuple[tuple[int, int], tuple[int, int]]  # cycles from the clock's reading to the edge and to the next one

    def time(self, cycle: int) -> Fraction:
        """Picoseconds since EPOCH_NS of this cycle after the first edge."""
        ps = Fraction(1000 * (self.timers[1] - self.timers[0]), self.span)
        away = min(abs(cycle), abs(cycle - self.span))
        return 1000 * self.timers[0] + cycle * ps + self.stray * away * ps * DRIFT_PERMILLE / 1000

    def line(self) -> Line:
        anchors = np.zeros(2, dtype=ANCHOR)
        for anchor, timer, cycle, (before, after) in zip(
            anchors, self.timers, (0, self.span), self.reading, strict=True
        ):
            at = self.origin + cycle
            anchor["globaltimer_before"], anchor["globaltimer"] = EPOCH_NS + timer - STEP_NS, EPOCH_NS + timer
            anchor["clock_before"], anchor["clock_after"] = at - before, at + after
        return read_line(anchors, "SM")

    def stamp(self, cycle: int, line: Line) -> int:
        """What a record of this cycle holds: cycles since the edge as the line sees it."""
        return self.origin + cycle - line.cycles[0]


def sms() -> st.SearchStrategy[Sm]:
    readings = st.tuples(st.integers(1, 40), st.integers(1, 40))
    return st.builds(
        Sm,
        origin=st.integers(100, 1 << 45),
        timers=st.tuples(st.integers(0, 30), st.integers(600, 640)).map(lambda t: (STEP_NS * t[0], STEP_NS * t[1])),
        span=st.integers(33_000, 45_000),
        stray=st.fractions(-1, 1, max_denominator=8),
        reading=st.tuples(readings, readings),
    )


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(sms())
def test_the_bound_of_a_placed_time_holds_the_truth(sm: Sm) -> None:
    line = sm.line()
    cycles = list(range(0, sm.span, sm.span // 50))
    stamps = np.array([sm.stamp(cycle, line) for cycle in cycles], dtype=np.int64)
    for cycle, placed, error in zip(cycles, line.place(stamps, EPOCH_NS), line.error_ps(stamps), strict=True):
        assert abs(sm.time(cycle) - int(placed)) <= int(error)


@pytest.mark.parametrize("anchors", [
    [(0, 32, 100, 90), (992, 1024, 2_000, 2_040)],  # the clock runs backwards
    [(64, 32, 100, 140), (992, 1024, 2_000, 2_040)],  # so does the timer
    [(0, 32, 100, 140), (0, 32, 2_000, 2_040)],  # both at one time
])  # fmt: skip
def test_anchors_that_contradict_themselves(anchors: list[tuple[int, int, int, int]]) -> None:
    with pytest.raises(TraceFormatError, match=r"do not advance|not later") as caught:
        read_line(np.array(anchors, dtype=ANCHOR), "CTA 3")
    assert caught.value.place == "CTA 3"
