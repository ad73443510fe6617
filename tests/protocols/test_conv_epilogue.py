"""The order of the two load warps: upstream's barrier can be missed, CUTLASS's cannot."""

from pipesim.explain.lap_counters import Laps
from pipesim.model.ending import Ending
from pipesim.targets import find
from pipesim.timed.engine import Simulation, simulate
from pipesim.timed.profile import load_profile

#: The epilogue is slow and its source has one stage: the epilogue-load warp falls behind the main one by two tiles.
BEHIND = {"epi_stages": 1, "k_iters": 1, "tiles": 6, "epilogue": 900}


def run(**params: int) -> Simulation:
    return simulate(find("conv_epilogue").build(params), load_profile("h100"))


def missed(**params: int) -> list[str]:
    """Where the waits of a run by parity differ from counters that never wrap."""
    program = find("conv_epilogue").build(params)
    laps = Laps(program)
    simulate(program, load_profile("h100"), observers=[laps])
    assert laps.tests
    return [found.claim(program) for found in laps.disagreements]


def test_two_arrivals_before_one_wait_are_both_missed() -> None:
    result = run(**BEHIND)
    assert (result.outcome, result.faults) == (Ending.DEADLOCK, ())
    assert result.deadlock is not None
    waiting = {blocked.agent: blocked for blocked in result.deadlock.blocked}
    order = waiting["epilogue_load"]
    assert order.barrier == "load_order[0]"
    assert not order.suppliers or all(not s.next_line for s in order.suppliers)  # nobody will arrive any more
    assert waiting["epilogue/0"].barrier.startswith("epi_load.full")
    assert "load" in result.deadlock.finished


def test_the_wait_means_a_phase_that_went_by() -> None:
    """Held against counters that never wrap: the parity says "not yet" of a phase that is over."""
    found = missed(**BEHIND)
    assert found[0].startswith("epilogue_load misses phase 1 of load_order[0]: it waits with parity 1 while 3 phases")
    assert all(claim.startswith("epilogue_load misses phase ") and " of load_order[0]: " in claim for claim in found)
