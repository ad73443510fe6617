"""Fences of acquire and release that lanes of a warp execute: each is one of its own lane.

PTX ISA, "Release and acquire patterns": a fence makes a release of what its own thread signals relaxed after it, and an
acquire of what its own thread has waited for relaxed before it. A warp is followed as one agent, for which it would do
so for all lanes. Where it may not, it is noted, and the fence counts for nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from pipesim.model.ops import Scope
from pipesim.ptx.emulate.lanes_apart import LaneAct, LanesApart, Met, relies_on

ON_MBARRIER = -1  #: in place of the address of a word: an mbarrier, or the barrier of the cluster
_ALL = 2
_REACH = {Scope.CTA: 0, Scope.CLUSTER: 1}  #: of the others all


class _LaneFence(NamedTuple):
    """A fence of some lanes; ``before``: which lanes had accessed memory, and those that these had met since."""

    lanes: int
    reach: int
    before: tuple[Met, ...]


class LaneFences:
    """Those of one warp. ``passed_by``: by position of a fence where lanes that did not execute it signal later."""

    __slots__ = ("_apart", "_made", "_waits", "passed_by")

    def __init__(self, apart: LanesApart, passed_by: dict[int, set[int]]) -> None:
        self._apart, self.passed_by = apart, passed_by
        self._made: dict[tuple[int, int], _LaneFence] = {}  #: by position and lanes
        self._waits: dict[int, int] = {}  #: lanes that have waited relaxed, and how far their fences reach since

    def wait(self, lanes: int) -> None:
        """Lanes wait without an acquire."""
        self._waits[lanes] = -1

    def fence(self, here: int, lanes: int, scope: Scope, live: int) -> bool:
        """Lanes execute a fence. False if it does not acquire, since other lanes have waited."""
        reach = _REACH.get(scope, _ALL)
        if any(not by & lanes and known < reach for by, known in self._waits.items()):
            return False
        for by in self._waits:
            if (by & lanes) != live:
                self._apart.act(LaneAct.WAIT, by & lanes, here, hands_on=False, alone=True)
        reached = {by: max(known, reach if by & lanes else -1) for by, known in self._waits.items()}
        self._waits = {by: known for by, known in reached.items() if known < _ALL}
        if lanes == live and reach == _ALL:
            self._made = {}
        self._made.pop((here, lanes), None)
        self._made[here, lanes] = _LaneFence(lanes, reach, self._apart.unmet())
        return True

    def signal(self, lanes: int, where: int) -> None:
        """Lanes signal without a release: it is one by the last fence of each of them."""
        covered = -1
        for (position, by), each in reversed(self._made.items()):
            if covered == _ALL:
                return
            if not lanes & ~by:
                covered = max(covered, each.reach)
                if relies_on(each.before, lanes):
                    self._apart.places.add(position)
            elif each.reach > covered:
                self.passed_by.setdefault(position, set()).add(where)
