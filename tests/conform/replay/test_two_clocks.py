"""An event has two ways onto the common time line: its SM clock, placed between the CTA's two anchors, and a direct
reading of ``%globaltimer``. The traces of clock "both" carry the two, and they are held against each other here.

A direct reading is a floor: the true time is up to one step of the timer later. It is taken some cycles after the clock
(the timer takes about 25 to read), so it may also be that much ahead of the placed time.

While tensor cores work the SM clock is not constant: such kernels have a wider bound (``Kernel.stray_ns``).
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hwkernels.twins.twin import TENSOR_STRAY_NS
from pipesim.trace.schema import Anchor
from tests.conform.cases import stored
from tests.support.recordings import RECORDINGS, one_of_each

BOTH = [name for name in RECORDINGS if "-both" in name]
TENSOR = [name for name in BOTH if "_sm90" in name]
SAMPLE = sorted(one_of_each(BOTH))
STRAY_PS = 1000 * TENSOR_STRAY_NS
READING_PS = 13_000  #: 25 cycles at 1.98 GHz, from the reading of the clock to that of the timer

Int = npt.NDArray[np.int64]


def placed(cycles: Int, anchors: tuple[Anchor, ...]) -> Int:
    """The events' times in picoseconds on the straight line through the anchors, rounded down."""
    first, second = anchors
    ps = 1000 * (second.globaltimer_ns - first.globaltimer_ns)
    span = second.cycle - first.cycle
    return np.array([1000 * first.globaltimer_ns + int(c - first.cycle) * ps // span for c in cycles], dtype=np.int64)


def outside(case: Any, cta: int, anchors: tuple[Anchor, ...]) -> Int:
    """By how much each event's placed time leaves the interval that its direct reading allows (0: it does not)."""
    e = case.trace.events
    rows = e.cta == cta
    difference = placed(e.cycle[rows], anchors) - 1000 * e.globaltimer_ns[rows]
    low = -e.error_ps[rows] - READING_PS
    high = 1000 * case.trace.meta.device.globaltimer_step_ns + e.error_ps[rows]
    over: Int = np.maximum(np.maximum(low - difference, difference - high), 0)
    return over


@pytest.mark.sampled(5, 12)
@pytest.mark.parametrize("name", SAMPLE)
def test_both_ways_agree_within_the_stated_bound(name: str) -> None:
    case = stored(name)
    assert len(case.trace.meta.ctas) == min(8, case.trace.meta.grid)
    seen = 0
    for header in case.trace.meta.ctas:
        assert not outside(case, header.cta, header.anchors).any()
        seen += len(outside(case, header.cta, header.anchors))
    assert seen == len(case.trace.events)


@pytest.mark.parametrize("name", [name for name in SAMPLE if name in TENSOR])
def test_tensor_cores_move_the_clock(name: str) -> None:
    """Why their kernels have a bound of their own: with that of the others, events of every CTA lie outside of it."""
    case = stored(name)
    assert (case.trace.events.error_ps > STRAY_PS).all()
    narrow = case.with_events(replace(case.trace.events, error_ps=case.trace.events.error_ps - STRAY_PS))
    over = [int(outside(narrow, header.cta, header.anchors).max()) for header in case.trace.meta.ctas]
    assert min(over) > 0
    assert max(over) < STRAY_PS * 2 // 3, "what was seen should stay well below what is allowed"


@pytest.mark.parametrize("name", SAMPLE)
@pytest.mark.parametrize("which", [0, 1])
def test_a_shifted_anchor_is_seen(name: str, which: int) -> None:
    """The twin: an anchor that is wrong by 200 ns to either side leaves no CTA within its bound."""
    case = stored(name)
    far = 200 + (2 * TENSOR_STRAY_NS if name in TENSOR else 0)
    for header in case.trace.meta.ctas:
        for shift in (-far, far):
            wrong = list(header.anchors)
            wrong[which] = replace(wrong[which], globaltimer_ns=wrong[which].globaltimer_ns + shift)
            assert outside(case, header.cta, tuple(wrong)).any()
