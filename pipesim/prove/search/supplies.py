"""What each operation, with the transfers that it issues, touches and brings to barriers of any sort."""

from __future__ import annotations

from typing import NamedTuple

from pipesim.model.groups import ARRIVALS, LIFE, ON_NAMED_BARRIER, TRANSACTIONS
from pipesim.model.ops import Op, Operation
from pipesim.model.positions import BARRIER, COUNT, CP_ASYNC_LANES, EXPECT, NAMED_BARRIER, NAMED_LANES, THREADS
from pipesim.model.program import Program
from pipesim.prove.search.footprint import Footprints, Touch, signals
from pipesim.prove.search.parts import Parts


class Gives(NamedTuple):
    """What one operation brings: ``counts`` are arrivals, or threads of named barriers, by part.

    ``landing``: the parts whose bytes change. ``free``: the parts of which nothing can be said after it.
    """

    touch: Touch
    counts: tuple[tuple[int, int], ...]
    landing: int
    free: int


class Supplies:
    """What the operations of one program bring; ``rest`` is all that an agent touches from each of them on.

    ``threads`` is the least number for which a named barrier is ever used, by part.
    """

    def __init__(self, program: Program, parts: Parts, footprints: Footprints) -> None:
        self._program = program
        self._parts = parts
        self.threads: dict[int, int] = {}
        self.gives = [
            [
                self._given(op, footprints.operations[agent][pc].join(footprints.issued[agent][pc]))
                for pc, op in enumerate(code)
            ]
            for agent, code in enumerate(program.code)
        ]
        self.rest = [_suffixes(given) for given in self.gives]

    def _given(self, op: Operation, touch: Touch) -> Gives:
        parts = self._parts
        if op[0] in ON_NAMED_BARRIER:
            named = parts.named[op[NAMED_BARRIER]]
            self.threads[named] = max(1, min(self.threads.get(named, op[THREADS]), op[THREADS]))
            return Gives(touch, ((named, op[NAMED_LANES]),), 0, 0)
        if op[0] == Op.CLUSTER_ARRIVE:
            return Gives(touch, ((parts.cluster, 1),), 0, 0)
        if op[0] in LIFE or op[0] == Op.ARRIVE_DROP:
            return Gives(touch, (), 0, 1 << parts.barriers[op[BARRIER]])
        if op[0] in TRANSACTIONS:
            return Gives(touch, (), 1 << parts.barriers[op[BARRIER]], 0)
        if op[0] in ARRIVALS:
            barrier = parts.barriers[op[BARRIER]]
            expects = op[0] == Op.ARRIVE and op[EXPECT] != 0
            return Gives(touch, ((barrier, max(op[COUNT], 0)),), int(expects) << barrier, 0)
        signalled = [parts.barriers[barrier] for barrier in signals(self._program, op)]
        if op[0] == Op.TMA_LOAD:
            return Gives(touch, (), sum({1 << barrier for barrier in signalled}), 0)
        arrivals = op[CP_ASYNC_LANES] if op[0] == Op.CP_ASYNC_ARRIVE else 1
        return Gives(touch, tuple((barrier, arrivals) for barrier in signalled), 0, 0)


def _suffixes(given: list[Gives]) -> list[Touch]:
    rest = [Touch()]
    for gives in reversed(given):
        rest.append(rest[-1].join(gives.touch))
    return rest[::-1]
