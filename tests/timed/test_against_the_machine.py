"""The engine decides only the order of moves: where it ends must be where any order ends, and times must make sense."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipesim.explain.blocked_agents import explain
from pipesim.model.ending import Ending
from pipesim.model.moves import run_canonically
from pipesim.model.program import Program
from pipesim.timed.engine import Simulation, simulate
from tests.support.phase_log import PhaseLog
from tests.support.timed_ring import flat_ring as ring
from tests.support.timed_ring import stamps, toy

CHEAP = st.integers(0, 60)
PRICES = st.fixed_dictionaries({
    "wait_issue": CHEAP, "wait_wake_up": CHEAP, "wait_retry": CHEAP, "wait_poll": st.integers(1, 200),
    "arrive_issue": CHEAP, "arrive_latency": CHEAP, "expect_issue": CHEAP, "copy_issue": CHEAP, "copy_latency": CHEAP,
    "copy_cold": CHEAP, "read_issue": CHEAP, "loop_issue": CHEAP, "sync_latency": CHEAP, "record_issue": CHEAP,
})  # fmt: skip
WHOLE = {
    "stages": st.integers(1, 4), "tiles": st.integers(0, 10), "warps": st.integers(1, 3),
    "lanes": st.sampled_from([1, 2, 32]), "work": st.sampled_from([0, 30]),
}  # fmt: skip
RINGS = st.fixed_dictionaries(WHOLE)
BROKEN = st.one_of(
    st.fixed_dictionaries(WHOLE | {"arrives": st.integers(0, 6)}),  # the first consumer stops arriving
    st.fixed_dictionaries(WHOLE | {"empty_count": st.integers(97, 200)}),  # more arrivals wanted than are made
    st.fixed_dictionaries(WHOLE | {"expect": st.sampled_from([16, 48, 80, 4096])}),  # other bytes than are brought
)
TRAPPING = st.fixed_dictionaries(WHOLE | {"empty_count": st.just(1), "lanes": st.sampled_from([2, 32])})
EXAMPLES = settings(max_examples=40, deadline=None, derandomize=True)


def agrees(program: Program, result: Simulation) -> None:
    reference = run_canonically(program)
    assert result.faults == ()
    assert not reference.faults
    assert result.outcome is (Ending.FINISHED if reference.finished else Ending.DEADLOCK)
    assert result.state.barriers == reference.state.barriers
    assert result.state.pcs == reference.state.pcs
    assert result.state.flights == () == reference.state.flights
    assert result.deadlock == explain(program, reference.state)
    assert [end >= 0 for end in result.ends] == [
        pc == len(code) for pc, code in zip(result.state.pcs, program.code, strict=True)
    ]


@pytest.mark.slow
@EXAMPLES
@given(shape=st.one_of(RINGS, BROKEN), tries=st.booleans(), prices=PRICES)
def test_rings_end_as_any_order_ends(
    shape: dict[str, int],
    tries: bool,
    prices: dict[str, int],
) -> None:
    """Whole ones finish, broken ones end in the same deadlock."""
    program = ring(**shape, tries=tries)
    agrees(program, simulate(program, toy(**prices)))


def test_broken_rings_do_hang() -> None:
    """The twin of the test above: its three ways to break a ring all show."""
    for broken in ({"arrives": 1}, {"empty_count": 97}, {"expect": 48}):
        assert simulate(ring(**broken), toy()).outcome is Ending.DEADLOCK


@pytest.mark.slow
@EXAMPLES
@given(shape=TRAPPING, prices=PRICES)
def test_over_arrivals_trap_at_the_first(shape: dict[str, int], prices: dict[str, int]) -> None:
    program = ring(**shape)
    result, reference = simulate(program, toy(**prices)), run_canonically(program)
    traps = [(f.kind, f.pc, f.barrier, f.found, f.expected) for f in reference.faults[:1]]
    assert [(f.kind, f.pc, f.barrier, f.found, f.expected) for f in result.faults] == traps
    assert result.outcome is (Ending.FAULT if traps else Ending.FINISHED)
    assert bool(traps) == (shape["tiles"] > 0)


@pytest.mark.slow
@EXAMPLES
@given(shape=RINGS, prices=PRICES, traced=st.booleans())
def test_no_wait_returns_before_its_phase_is_complete(
    shape: dict[str, int], prices: dict[str, int], traced: bool,
) -> None:  # fmt: skip
    program = ring(**shape)
    profile = toy(**prices)
    log = PhaseLog(program)
    result = simulate(program, profile, traced=traced, observers=[log])
    times = stamps(program, result.trace)  # program order, and no event before the one before it
    landing = profile["copy.latency"] + 4  # 64 bytes at 16,000 a kcycle
    seen = 0
    for phase, (last, at, landed) in log.completed.items():
        done = times[last, at][0] + (landing if landed else profile["arrive.latency"])
        for agent, pc in log.seen.get(phase, ()):
            assert times[agent, pc][1] >= done
            seen += 1
    assert seen == shape["tiles"] * shape["warps"] + max(0, shape["tiles"] - shape["stages"])
