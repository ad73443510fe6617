"""Programs of which only the beginning of some agents was read: what is found in it stands, and nothing is proved."""

from __future__ import annotations

import pytest

from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.program_json import dumps, loads
from pipesim.prove.check import check
from pipesim.prove.search.breadth_first import explore
from tests.support.lanes import slow_but
from tests.support.random_programs import FAMILIES
from tests.support.random_programs.beginnings import beginning


@pytest.mark.parametrize("seed", slow_but([0, 100], range(0, 2000, 100)))
@pytest.mark.parametrize("family", ["operations", "corners", "exits"])
def test_what_is_found_in_a_beginning_is_found_in_the_whole(family: str, seed: int) -> None:
    found = 0
    for n in range(seed, seed + 100):
        program = FAMILIES[family](n)
        begun = beginning(program, n)
        if begun is None:
            continue
        assert loads(dumps(begun)) == begun
        said = check(begun, one_memory=True)
        assert said.verdict is not Verdict.PROVED
        if said.refutations:
            whole = explore(program, 40_000)
            gone = FaultKind.EXITED_CTA in whole.kinds  # of an agent that has nothing more to do, or in its rest
            assert {each.kind for each in said.refutations} <= whole.kinds or gone or not whole.complete
            found += 1
    assert found
