"""The occurrence graph of one run: which operations made each phase, which completed it, which waits saw it."""

from __future__ import annotations

from typing import Any

from pipesim.explain.phases import Contribution, Phase, run_canonically
from pipesim.model.ops import Op

LOAD, MMA = 0, 1


def test_the_graph_of_a_small_ring_is_pinned(ring: Any) -> None:
    program = ring(stages=2, tiles=3).flatten()
    names = [[Op(op[0]).name for op in code] for code in program.code]
    assert names[LOAD] == ["INIT"] * 4 + ["FENCE", "BAR_SYNC"] + ["WAIT", "ARRIVE", "TMA_LOAD"] * 3
    assert names[MMA] == ["BAR_SYNC"] + ["WAIT", "READ", "ARRIVE"] * 3
    seen = run_canonically(program)

    def full(index: int, load: int, mma: int) -> Phase:
        expect = Contribution(LOAD, load, 1, 64, landed=False)
        copy = Contribution(LOAD, load + 1, 0, -64, landed=True)
        return Phase(index % 2, index // 2, (expect, copy), complete=True, observers=((MMA, mma),))

    def empty(index: int, mma: int, load: tuple[tuple[int, int], ...]) -> Phase:
        return Phase(
            2 + index % 2, index // 2, (Contribution(MMA, mma, 1, 0, landed=False),), complete=True, observers=load
        )

    def still_open(barrier: int, index: int) -> Phase:
        return Phase(barrier, index, (), complete=False, observers=())

    assert seen.phases == (
        (full(0, 7, 1), full(2, 13, 7), still_open(0, 2)),
        (full(1, 10, 4), still_open(1, 1)),
        (empty(0, 3, ((LOAD, 12),)), empty(2, 9, ()), still_open(2, 2)),
        (empty(1, 6, ()), still_open(3, 1)),
    )
    assert (seen.faults, seen.finished, seen.exhausted, seen.state.flights) == ((), True, False, ())
    assert seen.state.pcs == (15, 10)
