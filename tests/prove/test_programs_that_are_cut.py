"""Programs of which only the beginning of some agents was read: what is found in it stands, and nothing is proved."""

from typing import Any

import pytest

from pipesim.model.coverage import Coverage
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.program_json import dumps, loads
from pipesim.prove.check import check
from pipesim.prove.search.breadth_first import explore
from tests.support.lanes import slow_but
from tests.support.random_programs import FAMILIES
from tests.support.random_programs.beginnings import beginning
from tests.support.small_programs import build


@pytest.mark.sampled(1, 2)
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
            # of an agent that has nothing more to do, or in its rest: there the whole program ends before it hangs
            gone = not whole.kinds.isdisjoint({FaultKind.EXITED_CTA, FaultKind.CLUSTER_ARRIVE})
            assert {each.kind for each in said.refutations} <= whole.kinds or gone or not whole.complete
            found += 1
    assert found


@pytest.mark.parametrize("parity", [0, 1])
def test_a_wait_that_hangs_in_the_canonical_run_alone_is_found_where_reading_stopped(parity: int) -> None:
    """The last wait of ``load`` passes if the first copy lands long before the second, whose reader then arrives."""
    meet = "BAR_SYNC named_barrier=0 threads=64; "
    inits = "".join(f"INIT barrier={n} count=1; " for n in range(4))
    copies = "".join(f"ARRIVE barrier={n} expect=64; TMA_LOAD barrier={n} access={n} bytes=64 item=1; " for n in (1, 2))
    reader = f"{inits}FENCE fence=0; {meet}ARRIVE barrier=0; WAIT barrier=3; WAIT barrier=2; ARRIVE barrier=0"
    load = f"{meet}WAIT barrier=0; ARRIVE barrier=3; {copies}WAIT barrier=1; WAIT barrier=0 parity={parity}"
    cut: dict[str, Any] = {"cut": (1,), "silent": (1,), "coverage": Coverage(blocked=("role1: waiting at story.py:1",))}
    found = check(build(reader, load, barriers=4, slots=3, **cut), max_states=1)
    assert found.verdict is (Verdict.UNKNOWN if parity else Verdict.REFUTED)
    assert [each.kind for each in found.refutations] == [Ending.DEADLOCK] * (not parity)
