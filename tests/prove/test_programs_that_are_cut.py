"""Programs of which only the beginning of some agents was read: what is found in it stands, and nothing is proved."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from pipesim.errors import ProgramFormatError
from pipesim.model.coverage import Coverage
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.model.program_json import dumps, loads
from pipesim.prove.check import check
from pipesim.prove.search.breadth_first import explore
from tests.support.lanes import slow_but
from tests.support.random_programs.all_operations import random_operations
from tests.support.random_programs.corners import random_corners
from tests.support.random_programs.exits import random_exits


def cut(program: Program, rng: random.Random) -> Program | None:
    """The beginnings of some agents; None where one would jump beyond its end."""
    agents = [a for a, code in enumerate(program.code) if code and rng.random() < 0.6] or [0]
    ends = {a: rng.randrange(max(len(program.code[a]), 1)) for a in agents}
    rest = {a: program.code[a][end:] for a, end in ends.items()}
    silent = [a for a in agents if all(op[0] in (Op.READ, Op.WRITE, Op.WAIT) for op in rest[a])]
    code = tuple(row[: ends.get(a, len(row))] for a, row in enumerate(program.code))
    lines = tuple(row[: ends.get(a, len(row))] for a, row in enumerate(program.lines))
    said = Coverage(stopped=("not read",))
    try:
        return replace(program, code=code, lines=lines, cut=tuple(agents), silent=tuple(silent), coverage=said)
    except ProgramFormatError:
        return None


@pytest.mark.parametrize("seed", slow_but([0, 40], range(0, 1000, 40)))
@pytest.mark.parametrize("family", [random_operations, random_corners, random_exits])
def test_what_is_found_in_a_beginning_is_found_in_the_whole(family: Callable[[int], Program], seed: int) -> None:
    found = 0
    for n in range(seed, seed + 40):
        program = family(n)
        begun = cut(program, random.Random(n))
        if begun is None:
            continue
        assert loads(dumps(begun)) == begun
        said = check(begun, one_memory=True)
        assert said.verdict is not Verdict.PROVED
        if said.refutations:
            whole = explore(program, 40_000)
            gone = (
                FaultKind.EXITED_CTA in whole.kinds
            )  # which ends an agent that has nothing more to do, or in its rest
            assert {each.kind for each in said.refutations} <= whole.kinds or gone or not whole.complete
            found += 1
    assert found > 2
