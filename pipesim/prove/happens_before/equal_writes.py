"""Unordered writes of one item to the same cells: no race, so there is no last one among them.

What comes later is compared with each of them, and each of them with what came before the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pipesim.prove.happens_before.access_event import AccessEvent
from pipesim.prove.happens_before.snapshot import Marks


class _Equals(NamedTuple):
    """The latest writes of a cell if they are equal, by agent, and the accesses that none of them may precede."""

    written: int
    writes: dict[int, AccessEvent]
    before: tuple[AccessEvent, ...]


class EqualWrites:
    """By cell the equal writes that are its latest. Cells that nobody writes alike are not here."""

    def __init__(self) -> None:
        self._by_cell: dict[int, _Equals] = {}

    def __bool__(self) -> bool:
        return bool(self._by_cell)

    def fork(self) -> EqualWrites:
        """The same, to continue by itself."""
        twin = EqualWrites()
        twin._by_cell = {cell: equals._replace(writes=equals.writes.copy()) for cell, equals in self._by_cell.items()}
        return twin

    def latest(self, cell: int) -> Iterator[AccessEvent]:
        """The equal writes of the cell; nothing if its last write is like no other."""
        equals = self._by_cell.get(cell)
        if equals is not None:
            yield from equals.writes.values()

    def enter(self, cell: int, access: AccessEvent, before: tuple[AccessEvent, ...]) -> tuple[AccessEvent, ...]:
        """A write, and the latest accesses of the cell until now: those that it conflicts with."""
        equals = self._by_cell.get(cell)
        if access.written < 0:
            self._by_cell.pop(cell, None)
            return before
        if equals is None or equals.written != access.written:
            self._by_cell[cell] = _Equals(access.written, {access.agent: access}, before)
            return before
        reads = tuple(each for each in before if not each.writes)
        equals.writes[access.agent] = access
        self._by_cell[cell] = equals._replace(before=(*equals.before, *reads))
        return self._by_cell[cell].before

    def mark(self, marks: Marks) -> Iterator[AccessEvent]:
        """Enter how many accesses of each cell there are; which, for the caller to enter."""
        for cell, equals in sorted(self._by_cell.items()):
            marks.shape += (cell, equals.written, len(equals.writes), len(equals.before))
            yield from (access for _, access in sorted(equals.writes.items()))
            yield from equals.before
