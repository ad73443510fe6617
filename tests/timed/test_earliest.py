"""The earliest times of all operations: no run is faster, whatever works its operations do."""

import random

import pytest

from pipesim.model.ending import Ending
from pipesim.model.groups import BRANCHES
from pipesim.model.moves import run_canonically
from pipesim.model.program import Program
from pipesim.timed.bounds.critical import least_period
from pipesim.timed.bounds.earliest import Earliest
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile
from tests.support.lanes import slow_but
from tests.support.random_programs import TIMED_FAMILIES
from tests.support.random_works import with_constants, with_works, with_works_of_lines
from tests.support.timed_ring import flat_ring as ring


def end(program: Program, profile: Profile, *, traced: bool = False) -> int | None:
    """The least length of a run, None of a program about which nothing is said."""
    times = Earliest(program, profile, traced=traced)
    run = run_canonically(program, times)
    return times.end if run.finished and not run.faults and not times.laps.disagreements else None


@pytest.mark.sampled(3, 5)
@pytest.mark.parametrize("first", slow_but([0], range(0, 400, 20)))
@pytest.mark.parametrize("family", TIMED_FAMILIES)
def test_no_random_program_is_faster(family: str, first: int) -> None:
    """Four of five have works, with constants under some of the profiles."""
    told = 0
    for seed in range(first, first + 20):
        draw = random.Random(seed)
        program = TIMED_FAMILIES[family](seed)
        if any(op[0] in BRANCHES for op in program.operations):
            continue  # another path can be the shorter one
        profile, traced = with_constants(seed, draw), draw.random() < 0.4
        program = with_works(program, draw) if draw.random() < 0.8 else program
        least, run = end(program, profile, traced=traced), simulate(program, profile, traced=traced)
        if least is not None and run.outcome is Ending.FINISHED and not run.faults:
            assert least <= run.cycles, seed
            told += 1
    assert told > 0 or first


@pytest.mark.sampled(1, 3)
@pytest.mark.parametrize("first", slow_but([0], range(0, 200, 10)))
def test_no_ring_with_works_has_a_shorter_period(first: int) -> None:
    """With and without tries; a ring of T tiles and S stages takes at least T - S periods."""
    told = 0
    for seed in range(first, first + 10):
        draw = random.Random(seed)
        stages, tiles, warps = draw.randint(1, 4), 24, draw.randint(1, 3)
        program = ring(stages=stages, tiles=tiles, warps=warps, work=draw.choice([0, 40]), tries=draw.random() < 0.7)
        program, profile = with_works_of_lines(program, draw), with_constants(seed, draw)
        run = simulate(program, profile)
        found = least_period(program, profile)
        assert found is None or found.period_millicycles * (tiles - stages) <= 1000 * run.cycles, (seed, found)
        told += found is not None
    assert told > 8
