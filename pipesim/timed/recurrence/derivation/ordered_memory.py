"""Whether the accesses of a program to its memory are ordered by the program itself, so that no time makes a race."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from pipesim.model.ops import IN_ORDER
from pipesim.timed.recurrence.derivation.knowledge import KnowledgeClock


@dataclass
class OrderedTouch:
    """One access. ``ends``: components of a clock and least values; each from ``since`` on says that it is over.

    Those of all accesses that an agent issues on an engine are one list: what comes later covers what was before.
    """

    agent: int
    engine: int  #: of a transfer, -2 of an agent's own access
    first: int
    end: int
    writes: bool
    item: int
    ends: list[tuple[int, int]] = field(default_factory=list)
    since: int = 0

    def over(self, clock: KnowledgeClock) -> bool:
        """True if whoever knows this knows that the access has ended."""
        return any(clock[component] >= least for component, least in islice(self.ends, self.since, None))


class OrderedMemory:
    """The accesses to each cell that a later one must follow: the last writes, and the reads since."""

    def __init__(self, cells: int) -> None:
        self._writes: list[list[OrderedTouch]] = [[] for _ in range(cells)]
        self._reads: list[list[OrderedTouch]] = [[] for _ in range(cells)]

    def touched(self, touch: OrderedTouch, clock: KnowledgeClock) -> bool:
        """An access by an agent that knows this. False if it is not ordered after one that it conflicts with."""
        for cell in range(touch.first, touch.end):
            before = self._writes[cell] + self._reads[cell] if touch.writes else self._writes[cell]
            if not all(_exempt(each, touch) or each.over(clock) for each in before):
                return False
            if touch.writes:
                kept = [each for each in self._writes[cell] if not each.over(clock) and not _followed(each, touch)]
                self._writes[cell] = [*kept, touch]
                self._reads[cell] = []
            else:
                others = [each for each in self._reads[cell] if each.agent != touch.agent or not each.over(clock)]
                self._reads[cell] = [*others, touch]
        return True


def _exempt(early: OrderedTouch, late: OrderedTouch) -> bool:
    """True if no order is asked for: an engine that works in order carries out what one agent issues, and two threads
    that write the same item to the same bytes leave the same (``rules_transfer``).
    """
    together = early.writes and late.writes
    whole = (early.first, early.end) == (late.first, late.end)
    if early.engine in IN_ORDER and (early.agent, early.engine) == (late.agent, late.engine):
        return not together or whole
    return together and whole and early.engine == late.engine == -2 and 0 <= early.item == late.item


def _followed(early: OrderedTouch, late: OrderedTouch) -> bool:
    """True if one engine carries out both in order, so that the later is over after the earlier."""
    return early.engine in IN_ORDER and (early.agent, early.engine) == (late.agent, late.engine)
