"""Traces of some iterations only: what is in the window is held to the protocol, what is outside may have happened.

And what is left of windows that lost records is never refused more often than the whole.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipesim.conform.result import DivergenceKind, TraceVerdict
from pipesim.errors import EvidenceError
from pipesim.model.ops import Op
from pipesim.trace.schema import EventKind
from tests.conform.cases import simulated, stored
from tests.support.timed_ring import toy

NAMES = (
    "h100/producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet",
    "h100/producer_consumer-al1-cw1-s1-tb4096-t64-w0-g1.parquet",
    "h200/producer_consumer-al32-cw2-s4-tb16384-t64-w600-g1.parquet",
    "h200/producer_consumer-al1-cw4-s2-tb16384-t64-w0-g1.parquet",
    "h200/producer_consumer-al1-cw2-s4-tb16384-t64-w600-g132.parquet",
)
DEFAULT = NAMES[0]


# what is in the window conforms


@pytest.mark.sampled(0, 10)
@pytest.mark.parametrize("window", [(0, 10), (10, 42), (54, 64), (50, 99), (0, 1), (31, 32), (63, 64), (0, 64)])
@pytest.mark.parametrize("name", NAMES)
def test_a_window_of_a_recorded_trace_conforms(name: str, window: tuple[int, int]) -> None:
    case = stored(name).window(*window)
    case.accepted()
    result = case.conform()
    assert (result.window, result.iterations, result.ended) == (window, 64, True)
    assert result.hides == (window[0] > 0 or window[1] < 64)
    inside = min(window[1], 64) - window[0]
    assert result.events == len(stored(name).trace.events) * inside // 64


RINGS = st.fixed_dictionaries({
    "stages": st.integers(1, 4), "tiles": st.integers(1, 12), "warps": st.integers(1, 3),
    "lanes": st.sampled_from([1, 32]), "work": st.sampled_from([0, 30]), "tries": st.booleans(),
})  # fmt: skip
PRICES = st.fixed_dictionaries({
    "wait_issue": st.integers(0, 30), "wait_wake_up": st.integers(0, 30), "wait_poll": st.integers(1, 99),
    "arrive_issue": st.integers(0, 30), "arrive_latency": st.integers(0, 30), "copy_latency": st.integers(0, 99),
})  # fmt: skip


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(ring=RINGS, prices=PRICES, first=st.integers(0, 11), length=st.integers(1, 12), lost=st.data())
def test_any_window_of_a_simulated_ring_conforms(
    ring: dict[str, Any], prices: dict[str, int], first: int, length: int, lost: Any
) -> None:
    """And so does what is left of it when agents lose their last iterations, which leaves it unknown."""
    case = simulated(profile=toy(**prices), **ring).window(first, first + length)
    case.accepted()
    agents = st.dictionaries(st.integers(0, ring["warps"]), st.integers(1, 12))
    left = case.lossy(lost.draw(agents, label="lost"))
    result = left.conform()
    assert result.divergence is None
    assert result.lost == len(case.trace.events) - len(left.trace.events)
    unknown = result.lost or not result.events
    assert result.verdict is (TraceVerdict.UNKNOWN if unknown else TraceVerdict.AGREES)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    ring=RINGS, uncertainty=st.sampled_from([0, 1, 16]), by=st.sampled_from([1, 3, 10, 60]), seed=st.integers(0, 10**6),
    first=st.integers(0, 11), length=st.integers(1, 12), agent=st.integers(0, 3), lost=st.integers(0, 4),
)  # fmt: skip
def test_less_of_a_trace_never_shows_a_divergence_that_all_of_it_does_not(
    ring: dict[str, Any], uncertainty: int, by: int, seed: int, first: int, length: int,
    agent: int, lost: int,
) -> None:  # fmt: skip
    """Times shaken at random, which breaks some traces: a window is refused only if the whole is, a loss likewise."""
    case = simulated(uncertainty=uncertainty, **ring)
    e = case.trace.events
    cycles = e.cycle + np.random.default_rng(seed).integers(-by, by + 1, len(e))
    for number in range(len(case.trace.meta.agents)):
        cycles[e.agent == number] = np.maximum.accumulate(cycles[e.agent == number])
    whole = case.with_events(replace(e, cycle=cycles))
    part = whole.window(first, first + length)
    left = part.lossy({agent % len(case.trace.meta.agents): lost})
    seen = [c.conform().verdict is TraceVerdict.DIFFERS for c in (left, part, whole)]
    assert seen == sorted(seen)


@pytest.mark.slow
def test_and_shaken_traces_are_refused_or_not() -> None:
    """The twin: of the same traces some windows are refused, and some wholes of which a window is not."""
    answers = set()
    for seed in range(12):
        case = simulated(stages=2, tiles=8, work=40)
        e = case.trace.events
        cycles = e.cycle + np.random.default_rng(seed).integers(-30, 31, len(e))
        for number in (0, 1):
            cycles[e.agent == number] = np.maximum.accumulate(cycles[e.agent == number])
        whole = case.with_events(replace(e, cycle=cycles))
        answers |= {(whole.window(first, first + 3).conform().verdict, whole.conform().verdict) for first in range(6)}
    assert {(TraceVerdict.DIFFERS, TraceVerdict.DIFFERS), (TraceVerdict.AGREES, TraceVerdict.DIFFERS)} <= answers


# what is not in it cannot be seen


def test_a_fault_outside_the_window_is_not_seen_and_inside_it_is() -> None:
    """The twins: one arrive of iteration 20 says another count. Windows that hold it refuse, the others cannot."""
    whole = stored(DEFAULT)
    row = next(r for r in whole.rows(agent=1, kind=EventKind.ARRIVE) if whole.trace.events.iteration[r] == 20)
    wrong = whole.changed(row, value=3)
    for window, seen in (((0, 20), False), ((21, 64), False), ((20, 21), True), ((0, 64), True), ((10, 30), True)):
        case = wrong.window(*window)
        if seen:
            found = case.refused()
            assert (found.kind, found.agent, found.iteration) == (DivergenceKind.OTHER_EVENT, "consumer/0", 20)
        else:
            case.accepted()


def test_hidden_arrives_happen_before_their_agents_first_record() -> None:
    """The producer waits for arrives of iterations before the window; they may be as early as they like, but a whole
    window that the consumers have yet to enter cannot be past the producer's wait.
    """
    case = stored(DEFAULT).window(8, 40)
    late = case
    for row in case.rows(agent=1):
        late = late.moved(row, 50_000)
    found = late.refused()
    assert (found.kind, found.agent, found.iteration) == (DivergenceKind.TOO_EARLY, "producer", 12)
    assert "missing; the next operation that could supply it came" in found.claim


# how the run ended


@pytest.mark.parametrize(("passes", "kind", "words"), [
    ((64, 63, 64), DivergenceKind.MISSING_EVENT, "consumer/0 completed 63 iterations where the protocol has 64"),
    ((65, 64, 64), DivergenceKind.EXTRA_EVENT, "producer completed 65 iterations where the protocol has 64"),
])  # fmt: skip
def test_a_kernel_that_ended_after_other_iterations(passes: tuple[int, ...], kind: DivergenceKind, words: str) -> None:
    part = stored(DEFAULT).window(10, 42)
    found = part.with_meta(ctas=tuple(replace(h, passes=passes) for h in part.trace.meta.ctas)).refused()
    assert (found.kind, found.claim) == (kind, words)


@pytest.mark.parametrize("window", [(0, 2), (1, 2), (1, 9), (2, 3), (4, 9), (6, 7)])
def test_a_kernel_that_hangs_before_in_or_after_its_window(window: tuple[int, int]) -> None:
    """The consumer stops handing back at iteration 3 of 8: wherever the window lies, the same agents wait."""
    whole = simulated(stages=2, tiles=8, arrives=3, work=30).hung()
    case = whole.window(*window).hung()
    assert case.trace.meta.ctas[0].passes == (5, 5)
    found, expected = case.refused(), whole.refused()
    assert found.kind is expected.kind is DivergenceKind.NOT_FINISHED
    assert found.stuck == expected.stuck
    assert found.claim == expected.claim == "the kernel timed out: 2 of 2 agents blocked"


def test_a_protocol_that_cannot_have_ended() -> None:
    """The window conforms, the kernel says that it finished, but the protocol hangs after it."""
    case = simulated(stages=2, tiles=8, arrives=5, work=30).window(0, 2)
    ended = case.with_meta(status="finished", ctas=tuple(replace(h, passes=(8, 8)) for h in case.trace.meta.ctas))
    found = ended.refused()
    assert (found.kind, found.agent, found.barrier) == (DivergenceKind.TOO_EARLY, "load", "empty[1]")
    assert found.claim == (
        "load has passed a wait for empty[1] parity 0, outside the window, before phase 2 can have completed: "
        "1 of 1 arrivals missing"
    )


def test_a_way_that_hangs_on_a_try_outside_the_window() -> None:
    """The flat program may jump on a try's answer: what was not recorded cannot be followed."""
    case = simulated(stages=1, tiles=4, tries=True)
    code = list(case.program.code[0])
    at = next(pc for pc, op in enumerate(code) if op[0] == Op.TRY_WAIT)
    code.insert(at + 1, (int(Op.JUMP_IF), code[at][3], 1, 0))  # to the next operation either way
    lines = list(case.program.lines[0])
    lines.insert(at + 1, lines[at])
    program = replace(
        case.program, code=(tuple(code), *case.program.code[1:]), lines=(tuple(lines), *case.program.lines[1:])
    )
    jumping = type(case)(program, case.trace)
    jumping.accepted()
    with pytest.raises(EvidenceError, match="the path of load outside the window is unknown"):
        jumping.window(2, 4).conform()
