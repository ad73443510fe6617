"""The earliest times of all operations: no run is faster, whatever works its operations do."""

import random
from dataclasses import replace

import pytest

from pipesim.model.ending import Ending
from pipesim.model.groups import BRANCHES, LIFE, LOOP_MARKS
from pipesim.model.moves import run_canonically
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.model.tables import Work
from pipesim.timed.bounds.critical import least_period
from pipesim.timed.bounds.earliest import Earliest
from pipesim.timed.engine import simulate
from pipesim.timed.profile import AT_LEAST_ONE, FIELDS, Profile, load_profile
from tests.support.lanes import slow_but
from tests.support.random_programs import TIMED_FAMILIES
from tests.support.timed_ring import flat_ring as ring

_NAMES = ("made/x", "made/y", "made/z")
_AMOUNTS = ("alu", "fma", "exp2", "shuffles", "shared_bytes", "fresh_copies")


def drawn(seed: int) -> Profile:
    """A profile of numbers from 0 on, many of them equal, so that things fall into one cycle."""
    draw = random.Random(seed)
    values = {name: draw.choice([0, 1, 2, draw.randint(0, 60)]) for name in FIELDS}
    values |= {name: draw.randint(1, 20_000) for name in FIELDS if "bytes" in name or name in AT_LEAST_ONE}
    return replace(load_profile("h100"), name=f"drawn {seed}", values=values)


def with_works(program: Program, draw: random.Random) -> Program:
    """The program with a work of its own for two operations of five."""
    sources, works, lines = list(program.sources), [], []
    for code, at in zip(program.code, program.lines, strict=True):
        mine = list(at)
        for pc, op in enumerate(code):
            if op[0] not in LOOP_MARKS | LIFE and draw.random() < 0.4:
                mine[pc] = len(sources)
                works.append(_work(len(sources), draw, multiplies=op[0] == Op.ENGINE_WORK))
                sources.append(f"work {len(works)}")
        lines.append(tuple(mine))
    return replace(program, sources=tuple(sources), lines=tuple(lines), work=tuple(works))


def with_works_of_lines(program: Program, draw: random.Random) -> Program:
    """The program with a work for half of its source lines: what comes again in a loop costs the same again."""
    lines = {
        (line, op[0] == Op.ENGINE_WORK)
        for code, at in zip(program.code, program.lines, strict=True)
        for op, line in zip(code, at, strict=True)
        if op[0] not in LOOP_MARKS | LIFE
    }
    works = {
        line: _work(line, draw, multiplies=multiplies) for line, multiplies in sorted(lines) if draw.random() < 0.5
    }
    return replace(program, work=tuple(works.values()))


def _work(line: int, draw: random.Random, *, multiplies: bool) -> Work:
    if multiplies:
        return Work(line, draw.choice(_NAMES), (("mma", draw.choice([2048, 32768])), ("products", draw.randint(1, 4))))
    kinds = draw.sample(_AMOUNTS, draw.randint(0, 2))
    amounts = tuple((kind, draw.randint(0, 40) * (20 if kind == "shared_bytes" else 1)) for kind in kinds)
    return Work(line, draw.choice(_NAMES), amounts)


def with_constants(seed: int, draw: random.Random) -> Profile:
    """A random or a shipped profile, half of them with constants for one of these works."""
    base = drawn(seed) if draw.random() < 0.7 else load_profile(draw.choice(["h100", "h200"]))
    values = dict(base.values)
    if base.name.startswith("drawn"):
        values |= {name: draw.choice([0, 500, 3_000, 20_000]) for name in values if name.startswith("class.")}
    if draw.random() < 0.5:
        values |= {"made/x.cycles": draw.choice([0, 3, 50]), "made/x.permille": draw.choice([0, 500, 1_300])}
    if draw.random() < 0.5:
        values |= {"made/y.cycles": draw.choice([0, 1, 200])}
    return replace(base, values=values)


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
