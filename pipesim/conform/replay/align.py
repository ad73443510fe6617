"""Which event belongs to which operation: the part of conformance that needs no clock. Linear in the trace.

How often an agent passed each of its sites decides which of its operations a recorder with a window kept.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from operator import le
from typing import NamedTuple

from pipesim.conform.result import DivergenceKind
from pipesim.errors import EvidenceError
from pipesim.model.groups import ANSWER, JUMP_REGISTER, ON_ANSWERS, SKIP, TRIES, VALUE
from pipesim.model.ops import Op, Operation
from pipesim.model.program import Program
from pipesim.trace.arrays import np
from pipesim.trace.schema import Events, Trace, numbers
from pipesim.trace.sites import ANY_VALUE, Record, SiteTable

EVERY = 1 << 62  #: the end of a window that never ends


@dataclass(frozen=True)
class Sight:
    """What can be seen of one agent: the iterations ``first`` to ``end - 1``.

    ``lost``: records of it at the end of these were dropped. ``reached``: the iteration that it had not completed when
    the kernel was stopped, EVERY if it was not stopped or that is unknown.
    """

    first: int = 0
    end: int = EVERY
    lost: bool = False
    reached: int = EVERY


class Place(Enum):
    """Where the next pass of a site lies."""

    HIDDEN = "before or after the window"
    SEEN = "inside the window"
    EITHER = "inside the window, or before it: a try_wait before the window may have made a wait unnecessary"


class Passes:
    """Counts passes, as a range where an unrecorded try may have spared one. From the window on the count is exact.

    A pass inside the window leaves a record. So one that left none, while the count may be below the window, was below
    it: neither bound then rises above the window's first iteration.
    """

    def __init__(self, sight: Sight) -> None:
        self._sight = sight
        self._least: dict[int, int] = {}
        self._most: dict[int, int] = {}
        self._spared: dict[int, int] = {}  # passes after what was seen that a try may have spared
        self._blind = False

    def place(self, site: int) -> Place:
        """Where the next pass of ``site`` lies."""
        if self._least.get(site, 0) >= self._sight.first:
            return Place.SEEN if self._least.get(site, 0) < self._sight.end else Place.HIDDEN
        return Place.HIDDEN if self._most.get(site, 0) < self._sight.first else Place.EITHER

    def least(self, site: int) -> int:
        """Passes of ``site`` that happened for certain."""
        return self._least.get(site, 0)

    def iteration(self, site: int) -> int:
        """What a record of the next pass of ``site`` must say, if there is one."""
        return max(self._least.get(site, 0), self._sight.first)

    def note_pass(self, site: int) -> None:
        """A pass was recorded."""
        self._least[site] = self._most[site] = self.iteration(site) + 1

    @property
    def exact(self) -> bool:
        """True if every pass leaves a record: then :attr:`counts` say all."""
        return self._sight.first == 0 and self._sight.end == EVERY and not self._blind

    @property
    def counts(self) -> dict[int, int]:
        """The passes of each site, where they are exact."""
        return dict(self._least)

    def count(self, counts: dict[int, int]) -> None:
        """The passes of each site are these now, all of them recorded."""
        self._least, self._most = dict(counts), dict(counts)

    def lose(self) -> None:
        """From here on nothing is seen, inside the window or not."""
        self._blind = True

    def unseen(self, site: int, *, certain: bool) -> None:
        """An operation with this site left no record; ``certain`` unless it may have been skipped."""
        first, least, most = self._sight.first, self._least.get(site, 0), self._most.get(site, 0)
        if least < first:
            self._least[site] = least + certain
            self._most[site] = min(most + 1, first)
            return
        self._least[site] = self._most[site] = least + certain
        if not certain and (self._blind or least >= self._sight.end):
            self._spared[site] = self._spared.get(site, 0) + 1

    @property
    def iterations(self) -> tuple[int, int]:
        """Passes of the site that was passed most often: for certain, and at most."""
        most = (number + self._spared.get(site, 0) for site, number in self._most.items())
        return max(self._least.values(), default=0), max(most, default=0)


@dataclass(frozen=True)
class Mismatch:
    """An agent's first event that is not the next one of its program.

    ``row`` is its row in the CTA's table, or the last row of the agent when the trace ends too early (then ``expected``
    is what should follow); -1 if it has none.
    """

    kind: DivergenceKind
    agent: int
    pc: int
    row: int
    expected: Record | None


@dataclass(frozen=True)
class AgentAlignment:
    """One agent of one CTA: the operations it ran and the rows of their events, and where that stopped, if it did.

    ``rows[i]`` are the rows of operation ``ran[i]``, () if it leaves none or none was kept. Positions from ``begin`` to
    ``end - 1`` are inside the window; the others may have happened at any time before, and after, what was recorded.
    ``answers`` maps an operation that tries to the answer that was recorded. ``cut`` is True if the records of this
    agent were lost from ``end`` on. ``iterations`` are how many it can have gone through, at least and at most:
    the two differ only where tries that were not recorded decide. ``half``: the last operation was begun, and its end
    was not recorded.
    """

    agent: int
    ran: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]
    begin: int
    end: int
    answers: dict[int, int]
    mismatch: Mismatch | None
    cut: bool
    iterations: tuple[int, int]
    half: bool = False


def site_numbers(trace: Trace, table: SiteTable) -> dict[int, int]:
    """From the trace's numbers of sites to the program's, by (role, kind, barrier), without those the program lacks."""
    known = {s.key: n for n, s in enumerate(table.sites)}
    pairs = ((n, known.get(s.key)) for n, s in enumerate(trace.meta.sites))
    return {n: there for n, there in pairs if there is not None}


def align(
    program: Program, table: SiteTable, events: Events, rows: list[int], agent: int, sites: dict[int, int], sight: Sight
) -> AgentAlignment:
    """Replay the program of ``agent`` along its ``rows`` of ``events`` (one CTA, in program order).

    Raises EvidenceError if its path outside the window depends on the result of a try, which was not recorded there.
    """
    walk = _Walk(program, table, events, rows, agent, sites, sight)
    mismatch = walk.run()
    begin, end = walk.inside()
    half = mismatch is not None and bool(walk.ran) and walk.ran[-1] == mismatch.pc and bool(walk.found[-1])
    return AgentAlignment(
        agent, tuple(walk.ran), tuple(walk.found), begin, end, walk.answers, mismatch, walk.lost, walk.iterations, half
    )


class Alignments:
    """Alignments of the agents of one trace: what two CTAs recorded alike, but for their times, is aligned once."""

    def __init__(self, program: Program, table: SiteTable, trace: Trace) -> None:
        self._program = program
        self._table = table
        self._sites = site_numbers(trace, table)
        self._known: dict[tuple[int, Sight, bytes], AgentAlignment] = {}

    def __call__(self, events: Events, agent: int, sight: Sight) -> AgentAlignment:
        """The ``agent`` of the CTA that recorded ``events``. Raises as :func:`align`."""
        rows = np.flatnonzero(events.agent == agent)
        cycle = events.cycle[rows]
        digest = hashlib.sha256(rows.tobytes())
        for name in _Columns._fields[:-1]:
            digest.update(getattr(events, name)[rows].tobytes())
        key = (agent, sight, digest.digest()) if bool((cycle[1:] >= cycle[:-1]).all()) else None
        found = self._known.get(key) if key is not None else None
        if found is None:
            found = align(self._program, self._table, events, rows.tolist(), agent, self._sites, sight)
            if key is not None:
                self._known[key] = found
        return found


class _Columns(NamedTuple):
    """The events of one agent: no arrays of NumPy, of which an element takes longer to read than to compare."""

    site: Sequence[int]
    stage: Sequence[int]
    parity: Sequence[int]
    iteration: Sequence[int]
    value: Sequence[int]
    cycle: Sequence[int]


@dataclass(eq=False)
class _Walk:
    """State of one alignment: position in the program, position in the rows, answers of tries."""

    program: Program
    table: SiteTable
    events: Events
    rows: list[int]
    agent: int
    sites: dict[int, int]
    sight: Sight

    def __post_init__(self) -> None:
        self._code = self.program.code[self.agent]
        self._records = self.table.records[self.agent]
        columns = self._columns = _Columns(*(numbers(getattr(self.events, n)[self.rows]) for n in _Columns._fields))
        self._passes = Passes(self.sight)
        self._ordered = all(map(le, columns.cycle, columns.cycle[1:]))
        #: of each row what :class:`Record` says
        self._row_records = list(
            zip(map(self.sites.get, columns.site), columns.stage, columns.parity, columns.value, strict=True)
        )
        self._registers: dict[int, int | None] = {}  # None: the answer was not recorded
        self._at = 0
        self._window_positions = (-1, -1)  # the first and the last position whose operation the window kept
        self.lost = False
        self.ran: list[int] = []
        self.found: list[tuple[int, ...]] = []
        self.answers: dict[int, int] = {}

    @property
    def iterations(self) -> tuple[int, int]:
        return self._passes.iterations

    def run(self) -> Mismatch | None:
        pc = self._take_plain(0)
        while pc < len(self._code):
            op = self._code[pc]
            mine: list[int] = []
            if self._in_window(pc):
                wrong = self._take(pc, mine)
                if wrong is not None and not (wrong.kind is DivergenceKind.MISSING_EVENT and self.sight.lost):
                    if mine:  # half of the operation happened: a wait entered, or work begun
                        self._append(pc, mine)
                    return wrong
                if wrong is not None and not self.lost:
                    self.lost = True
                    self._passes.lose()
                    self._window_positions = (self._window_positions[0], len(self.ran) - 1)
            elif self._records[pc] and self._passes.least(self._records[pc][0].site) > self.sight.reached:
                break  # the kernel was stopped before the agent came here
            self._append(pc, mine)
            if op[0] in TRIES:
                answer = self._columns.value[self._at - len(mine)] if mine else None
                self._registers[op[ANSWER]] = answer
                if answer is not None:
                    self.answers[pc] = answer
            pc += 1 + (op[SKIP] if op[0] == Op.JUMP_IF and self._jumps(op, pc) else 0)
            if op[0] in ON_ANSWERS:
                pc = self._take_plain(pc)
        if self._at < len(self.rows):
            return Mismatch(DivergenceKind.EXTRA_EVENT, self.agent, pc, self.rows[self._at], None)
        return None

    def _take_plain(self, pc: int) -> int:
        """Take the operations from ``pc`` on that nothing decides about, while the next rows are theirs.

        As :meth:`run` takes them, at a fraction of its cost; the position of the first that it must look at.
        """
        if not (self._ordered and self._passes.exact):
            return pc
        code, records, rows = self._code, self._records, self.rows
        row_records, passes_of = self._row_records, self._columns.iteration
        ran, found, counts = self.ran, self.found, self._passes.counts
        first, last = self._window_positions
        at, end = self._at, len(rows)
        while pc < len(code) and code[pc][0] not in ON_ANSWERS:
            mine = records[pc]
            after = at + len(mine)
            if after > end:
                break
            if mine:
                for row, record in enumerate(mine, at):
                    if row_records[row] != record or passes_of[row] != counts.get(record[0], 0):
                        break
                else:
                    for record in mine:  # of sites that differ
                        counts[record[0]] = counts.get(record[0], 0) + 1
                    last = len(ran)
                    first = last if first < 0 else first
                    found.append(tuple(rows[at:after]))
                    ran.append(pc)
                    at, pc = after, pc + 1
                    continue
                break
            found.append(())
            ran.append(pc)
            pc += 1
        self._at, self._window_positions = at, (first, last)
        self._passes.count(counts)
        return pc

    def inside(self) -> tuple[int, int]:
        """The positions that the window kept, with what leaves no event between them; without a window all of them."""
        first, last = self._window_positions
        begin = 0 if self.sight.first == 0 else first if first >= 0 else len(self.ran)
        if self.lost:
            return min(begin, last + 1), last + 1
        reaches_end = self.iterations[1] <= self.sight.end
        return begin, len(self.ran) if reaches_end else max(begin, last + 1)

    def _append(self, pc: int, mine: list[int]) -> None:
        self.ran.append(pc)
        self.found.append(tuple(mine))

    def _jumps(self, op: Operation, pc: int) -> bool:
        """Whether a jump is taken."""
        value = self._registers.get(op[JUMP_REGISTER], 0)
        if value is None:
            raise EvidenceError(
                f"the path of {self.program.agent_name(self.agent)} outside the window is unknown",
                place=self.program.line(self.agent, pc),
                cause="it depends on the result of a try_wait that was not recorded",
                correction="record it without a window",
            )
        return value == op[VALUE]

    def _in_window(self, pc: int) -> bool:
        """Whether the operation at ``pc`` must have its records here. Counts it, if not."""
        records = self._records[pc]
        if not records:
            return False
        op = self._code[pc]
        spared = self._registers.get(op[ANSWER], 0) if op[0] == Op.WAIT_UNLESS and op[ANSWER] >= 0 else 0
        if spared:
            return False
        place = Place.HIDDEN if self.lost else self._passes.place(records[0].site)
        if place is Place.SEEN and spared is not None:
            return True
        if place is not Place.HIDDEN and self._at < len(self.rows) and self._same(records[0]):
            return True
        for record in records:
            self._passes.unseen(record.site, certain=spared is not None)
        return False

    def _take(self, pc: int, mine: list[int]) -> Mismatch | None:
        """Take the rows of the operation at ``pc`` into ``mine``; what is wrong with the first that is not there."""
        position = len(self.ran)
        self._window_positions = (position if self._window_positions[0] < 0 else self._window_positions[0], position)
        for n, record in enumerate(self._records[pc]):
            wrong = self._next(record, pc)
            if wrong is not None:
                for left in self._records[pc][n:]:
                    self._passes.unseen(left.site, certain=True)
                return wrong
            mine.append(self.rows[self._at])
            self._at += 1
        return None

    def _next(self, record: Record, pc: int) -> Mismatch | None:
        """What is wrong with the next row as the event of ``record``."""
        if self._at >= len(self.rows):
            last = self.rows[-1] if self.rows else -1
            return Mismatch(DivergenceKind.MISSING_EVENT, self.agent, pc, last, record)
        at, cycle = self._at, self._columns.cycle
        if not self._same(record):
            return Mismatch(DivergenceKind.OTHER_EVENT, self.agent, pc, self.rows[at], record)
        if at and cycle[at] < cycle[at - 1]:
            return Mismatch(DivergenceKind.BACKWARDS, self.agent, pc, self.rows[at], record)
        self._passes.note_pass(record.site)
        return None

    def _same(self, record: Record) -> bool:
        """Whether the next event is the one of ``record`` that is next at its site."""
        at, events = self._at, self._columns
        return (
            self.sites.get(events.site[at]) == record.site
            and events.stage[at] == record.stage
            and events.parity[at] == record.parity
            and events.iteration[at] == self._passes.iteration(record.site)
            and (record.value == ANY_VALUE or _is_value(events.value[at], record.value))
        )


def _is_value(value: int, said: int) -> bool:
    return value in (0, 1) if said < 0 else value == said
