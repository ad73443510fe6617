"""Which event belongs to which operation: the part of conformance that needs no clock. Linear in the trace."""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.conform.result import DivergenceKind
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.trace.schema import EventKind, Events, Trace
from pipesim.trace.sites import Record, SiteTable


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
class Aligned:
    """One agent of one CTA: the operations it ran and the rows of their events, and where that stopped, if it did.

    ``rows[i]`` are the rows of operation ``ran[i]``, () if it leaves none. ``answers`` maps an operation that tries to
    the answer that was recorded. ``cut`` is True if the records of this agent were lost from here on.
    """

    agent: int
    ran: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]
    answers: dict[int, int]
    mismatch: Mismatch | None
    cut: bool


def site_numbers(trace: Trace, table: SiteTable) -> dict[int, int]:
    """From the trace's numbers of sites to the program's, by (role, kind, barrier), without those the program lacks."""
    known = {(s.role, s.kind, s.barrier): n for n, s in enumerate(table.sites)}
    pairs = ((n, known.get((s.role, s.kind, s.barrier))) for n, s in enumerate(trace.meta.sites))
    return {n: there for n, there in pairs if there is not None}


def align(
    program: Program, table: SiteTable, events: Events, rows: list[int], agent: int, sites: dict[int, int], *, lost: int
) -> Aligned:
    """Walk the program of ``agent`` along its ``rows`` of ``events`` (one CTA, in program order)."""
    walk = _Walk(program, table, events, rows, agent, sites)
    mismatch = walk.run()
    cut = False
    if mismatch is not None and mismatch.kind is DivergenceKind.MISSING_EVENT and lost:
        mismatch, cut = None, True
    return Aligned(agent, tuple(walk.ran), tuple(walk.found), walk.answers, mismatch, cut)


class _Walk:
    """State of one walk: position in the program, position in the rows, answers of tries."""

    def __init__(
        self, program: Program, table: SiteTable, events: Events, rows: list[int], agent: int, sites: dict[int, int]
    ) -> None:
        self._code = program.code[agent]
        self._records = table.records[agent]
        self._events = events
        self._rows = rows
        self._agent = agent
        self._sites = sites
        self._passes: dict[int, int] = {}
        self._registers: dict[int, int] = {}
        self._at = 0
        self.ran: list[int] = []
        self.found: list[tuple[int, ...]] = []
        self.answers: dict[int, int] = {}

    def run(self) -> Mismatch | None:
        pc = 0
        while pc < len(self._code):
            op = self._code[pc]
            mine: list[int] = []
            skipped = op[0] == Op.WAIT_UNLESS and op[3] >= 0 and self._registers.get(op[3], 0)
            for record in () if skipped else self._records[pc]:
                wrong = self._next(record, pc)
                if wrong is not None:
                    if mine:  # half of the operation happened: a wait entered, or work begun
                        self.ran.append(pc)
                        self.found.append(tuple(mine))
                    return wrong
                mine.append(self._rows[self._at])
                self._at += 1
            self.ran.append(pc)
            self.found.append(tuple(mine))
            if op[0] in (Op.TRY_WAIT, Op.TEST_WAIT, Op.TEST_STATE):
                self.answers[pc] = self._registers[op[3]] = int(self._events.value[mine[0]])
            taken = op[0] == Op.JUMP_IF and self._registers.get(op[1], 0) == op[2]
            pc += 1 + (op[3] if taken else 0)
        if self._at < len(self._rows):
            return Mismatch(DivergenceKind.EXTRA_EVENT, self._agent, pc, self._rows[self._at], None)
        return None

    def _next(self, record: Record, pc: int) -> Mismatch | None:
        """What is wrong with the next row as the event of ``record``."""
        if self._at >= len(self._rows):
            last = self._rows[-1] if self._rows else -1
            return Mismatch(DivergenceKind.MISSING_EVENT, self._agent, pc, last, record)
        row = self._rows[self._at]
        e = self._events
        iteration = self._passes.get(record.site, 0)
        same = (
            self._sites.get(int(e.site[row])) == record.site
            and int(e.stage[row]) == record.stage
            and int(e.parity[row]) == record.parity
            and int(e.iteration[row]) == iteration
            and int(e.value[row]) in ((0, 1) if record.value < 0 else (record.value,))
        )
        if not same:
            return Mismatch(DivergenceKind.OTHER_EVENT, self._agent, pc, row, record)
        if self._at and int(e.cycle[row]) < int(e.cycle[self._rows[self._at - 1]]):
            return Mismatch(DivergenceKind.BACKWARDS, self._agent, pc, row, record)
        self._passes[record.site] = iteration + 1
        return None


def describe_event(trace: Trace, row: int, events: Events) -> str:
    """An event in words: ``wait full[1] parity 0 return``."""
    site = trace.meta.sites[int(events.site[row])]
    return _words(site.kind, site.barrier, int(events.stage[row]), int(events.parity[row]), int(events.value[row]))


def describe_record(table: SiteTable, record: Record) -> str:
    """What the model expects, in the same words."""
    site = table.sites[record.site]
    return _words(site.kind, site.barrier, record.stage, record.parity, record.value)


def _words(kind: EventKind, barrier: str, stage: int, parity: int, value: int) -> str:
    place = f"{barrier}[{stage}]"
    match kind:
        case EventKind.WAIT_ENTER:
            return f"wait {place} parity {parity}"
        case EventKind.WAIT_RETURN:
            return f"wait {place} parity {parity} returns"
        case EventKind.ARRIVE:
            return f"arrive {place}" + (f" ×{value}" if value != 1 else "")
        case EventKind.EXPECT:
            return f"expect {place} {value:,} bytes"
        case EventKind.COPY:
            return f"copy {value:,} bytes → {place}"
        case EventKind.TRY:
            how = f"parity {parity}" if parity >= 0 else "by state"
            return f"try {place} {how}" + ("" if value < 0 else ": true" if value else ": false")
        case EventKind.WORK_BEGIN:
            return "work begins"
        case EventKind.WORK_END:
            return "work ends"
