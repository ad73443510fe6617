"""What each operation, with the transfers that it issues, touches and brings to barriers of any sort."""

from __future__ import annotations

from typing import NamedTuple

from pipesim.model.ops import Op, Operation
from pipesim.model.program import Program
from pipesim.prove.search.footprint import Footprints, Touch, signals
from pipesim.prove.search.parts import Parts

_ARRIVALS = frozenset({Op.ARRIVE, Op.ARRIVE_DROP, Op.ARRIVE_NO_COMPLETE})
_THREADS = frozenset({Op.BAR_SYNC, Op.BAR_ARRIVE})


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
        if op[0] in _THREADS:
            named = parts.named[op[1]]
            self.threads[named] = max(1, min(self.threads.get(named, op[2]), op[2]))
            return Gives(touch, ((named, op[3]),), 0, 0)
        if op[0] == Op.CLUSTER_ARRIVE:
            return Gives(touch, ((parts.cluster, 1),), 0, 0)
        if op[0] in (Op.INIT, Op.INVAL, Op.ARRIVE_DROP):
            return Gives(touch, (), 0, 1 << parts.barriers[op[1]])
        if op[0] in (Op.EXPECT_TX, Op.COMPLETE_TX):
            return Gives(touch, (), 1 << parts.barriers[op[1]], 0)
        if op[0] in _ARRIVALS:
            barrier = parts.barriers[op[1]]
            expects = op[0] == Op.ARRIVE and op[3] != 0
            return Gives(touch, ((barrier, max(op[2], 0)),), int(expects) << barrier, 0)
        signalled = [parts.barriers[barrier] for barrier in signals(self._program, op)]
        if op[0] == Op.TMA_LOAD:
            return Gives(touch, (), sum({1 << barrier for barrier in signalled}), 0)
        arrivals = op[2] if op[0] == Op.CP_ASYNC_ARRIVE else 1
        return Gives(touch, tuple((barrier, arrivals) for barrier in signalled), 0, 0)


def _suffixes(given: list[Gives]) -> list[Touch]:
    rest = [Touch()]
    for gives in reversed(given):
        rest.append(rest[-1].join(gives.touch))
    return rest[::-1]
