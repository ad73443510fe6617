"""The skeleton of a program: its distinct operations, and which of them stands where. No price is in it.

An operation of a loop comes again and again with another item; what it costs and what it records is decided once. The
skeleton is the same under every profile, so it is kept for as long as its program is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pipesim.model.groups import TRIP_BEGINS
from pipesim.model.ops import AT, Op, Operation, operand
from pipesim.model.program import Program
from pipesim.timed.cache import cached
from pipesim.trace.recorder import Meaning
from pipesim.trace.schema import SiteKey
from pipesim.trace.sites import NO_SITES, RECORDED, SiteBook, SiteTable

#: How many leading integers of an operation decide its cost: which item it is for does not.
PRICED: dict[int, int] = AT["item"]
NO_OPERAND = -(1 << 62)  #: before the line of an operation in a key: no operation has such an operand


class Distinct(NamedTuple):
    """An operation of one agent: one of those that differ in nothing but their item, and what its timestamps mean.

    ``first`` and ``second`` index the meanings of the skeleton, -1: none. A try has one timestamp: ``first`` if it
    fails, ``second`` if it succeeds.
    """

    op: Operation
    line: int  #: its source line if that says what work it does, else -1
    recorded: bool  #: whether it leaves records
    first: int
    second: int


@dataclass(frozen=True)
class ProgramSkeleton:
    """The site table, what each number in a timestamp means, and for each agent its distinct operations, which of them
    stands at each place of its code, and the places at which a loop iteration begins. ``fed``: the mbarriers that bulk
    copies complete; the chip wakes who is suspended in a try on one when the bytes land.
    """

    table: SiteTable
    meanings: list[Meaning]
    distinct: tuple[tuple[Distinct, ...], ...]
    places: tuple[tuple[int, ...], ...]
    trips: tuple[tuple[int, ...], ...]
    fed: frozenset[int]


_Known = dict[Operation, tuple[int, "_Known"]]  # operation → its number, and the operations known after it


def skeleton(program: Program, also: frozenset[SiteKey] = NO_SITES) -> ProgramSkeleton:
    """The skeleton of a program. ``also``: the optional sites at which records are made."""
    known = _skeletons(program)
    found = known.get(also)
    if found is None:
        found = known[also] = _made(program, also)
    return found


@cached
def _skeletons(_: Program) -> dict[frozenset[SiteKey], ProgramSkeleton]:
    """The skeletons of a program that have been made so far."""
    return {}


def _made(program: Program, also: frozenset[SiteKey]) -> ProgramSkeleton:
    book = SiteBook(program, also)
    meanings: dict[Meaning, int] = {}
    numbers = [0] * program.ctas
    distinct, places = [], []
    for agent, each in enumerate(program.agents):
        number, numbers[each.cta] = numbers[each.cta], numbers[each.cta] + 1
        walk = _AgentWalk(book, meanings, each.cta, number)
        book.begin(agent)
        places.append(walk.along(program.code[agent], _works(program, agent)))
        distinct.append(tuple(walk.distinct))
    trips = tuple(tuple([pc for pc, op in enumerate(code) if op[0] in TRIP_BEGINS]) for code in program.code)
    return ProgramSkeleton(book.table(), list(meanings), tuple(distinct), tuple(places), trips, _fed(program))


def _fed(program: Program) -> frozenset[int]:
    """The mbarriers that bulk copies complete."""
    found: set[int] = set()
    for op in {op for code in program.code for op in code if op[0] == Op.TMA_LOAD}:
        barrier, mask = operand(op, "barrier"), operand(op, "cta_mask")
        ranks = [rank for rank in range(program.ctas) if mask >> rank & 1]
        found |= {program.barrier_at_rank(barrier, rank) for rank in ranks} if mask else {barrier}
    return frozenset(found)


def _works(program: Program, agent: int) -> dict[int, int]:
    """For each operation whose line says what work it does, the line."""
    worked = program.work_of_line
    return {pc: line for pc, line in enumerate(program.lines[agent]) if line in worked} if worked else {}


class _AgentWalk:
    """One agent's code, from its first operation to its last."""

    def __init__(self, book: SiteBook, meanings: dict[Meaning, int], cta: int, number: int) -> None:
        self._book = book
        self._meanings = meanings
        self._cta = cta
        self._number = number
        self._by_place: dict[
            tuple[int, bool], _Known
        ] = {}  # what an operation records depends on the place in the book
        self.distinct: list[Distinct] = []

    def along(self, code: tuple[Operation, ...], works: dict[int, int]) -> tuple[int, ...]:
        """For each operation which of the distinct ones it is. ``works``: the lines that say the work of theirs."""
        known = self._by_place.setdefault(self._book.place, {})
        found: list[int] = []
        for pc, op in enumerate(code):
            key = op[: PRICED.get(op[0], 99)]  # hot: a look-up for each operation, and nothing else
            if pc in works:
                key = (*key, NO_OPERAND, works[pc])
            entry = known.get(key)
            if entry is None:
                self._book.place = next(place for place, those in self._by_place.items() if those is known)
                entry = known[key] = self._new(op, works.get(pc, -1))
            number, known = entry
            found.append(number)
        return tuple(found)

    def _new(self, op: Operation, line: int) -> tuple[int, _Known]:
        records = self._book.records(op) if op[0] in RECORDED else ()
        stamps = [
            self._meanings.setdefault(
                Meaning(self._cta, self._number, r.site, r.stage, r.parity, value), len(self._meanings)
            )
            for r in records
            for value in ((r.value,) if r.value >= 0 else (0, 1))  # -1: the result of a try_wait
        ]
        first, second = (*stamps, -1, -1)[:2]
        self.distinct.append(Distinct(op, line, bool(records), first, second))
        return len(self.distinct) - 1, self._by_place.setdefault(self._book.place, {})
