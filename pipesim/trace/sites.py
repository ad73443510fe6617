"""Which events an operation leaves in a trace, and the site table of a program: the bridge from programs to traces.

The simulator records by it, replay reads by it, and the table of a CUDA kernel is compared with it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from pipesim.model.awaited import awaited
from pipesim.model.groups import ARRIVALS, BY_PARITY, ON_BARRIER, PARITY_WAITS, TRIES
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.positions import BARRIER, COUNT, EXPECT, PARITY
from pipesim.model.program import Program
from pipesim.trace.schema import AgentInfo, BarrierGroup, EventKind, Site

_KINDS: dict[int, tuple[EventKind, ...]] = {
    **dict.fromkeys(PARITY_WAITS, (EventKind.WAIT_ENTER, EventKind.WAIT_RETURN)),
    **dict.fromkeys(TRIES, (EventKind.TRY,)),
    **dict.fromkeys(ARRIVALS, (EventKind.ARRIVE,)),  # one that expects bytes: see :func:`kinds`
    Op.TMA_LOAD: (EventKind.COPY,),
    Op.WORK: (EventKind.WORK_BEGIN, EventKind.WORK_END),
}
_ASKS = frozenset({EventKind.WAIT_ENTER, EventKind.TRY})  #: kinds whose site says what is waited for
#: Operations that leave events.
RECORDED = frozenset(_KINDS)


@dataclass(frozen=True)
class Record:
    """What one event of one operation must say: its site, stage, parity and value (-1 where the hardware decides)."""

    site: int
    stage: int
    parity: int
    value: int


@dataclass(frozen=True)
class SiteTable:
    """Sites, barrier groups and agents of a program, in the order in which a trace lists them."""

    sites: tuple[Site, ...]
    barriers: tuple[BarrierGroup, ...]
    agents: tuple[AgentInfo, ...]
    records: tuple[tuple[tuple[Record, ...], ...], ...]  #: by agent and operation; () for what leaves no event


def kinds(operation: Operation) -> tuple[EventKind, ...]:
    """The events that an operation leaves, in order."""
    if operation[0] == Op.ARRIVE:
        return (EventKind.EXPECT,) if operation[EXPECT] else (EventKind.ARRIVE,)
    return _KINDS.get(operation[0], ())


class SiteBook:
    """Numbers the sites of a program while its operations are walked, agent by agent, in program order.

    :meth:`records` is called for each operation that can leave an event; the sites are numbered by first appearance.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._index: dict[tuple[str, EventKind, str], int] = {}
        self._known: dict[tuple[str, int, Operation], tuple[Record, ...]] = {}
        self._stage = -1

    def begin(self, agent: int) -> None:
        """The walk of an agent begins."""
        self._role = self._program.agents[agent].role
        self._stage = -1  # work is on the stage that was last waited for

    def records(self, operation: Operation) -> tuple[Record, ...]:
        """What the events of this operation must say, in order."""
        if operation[0] in BY_PARITY:
            self._stage = self._program.barriers[operation[BARRIER]].stage
        key = (self._role, self._stage, operation[:4])  # what follows, such as the item of a copy, is not recorded
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _records(self._program, self._role, operation, self._stage, self._index)
        return found

    def table(self, records: tuple[tuple[tuple[Record, ...], ...], ...] = ()) -> SiteTable:
        """The tables as far as the walk has come."""
        meant = awaited(self._program)
        return SiteTable(
            sites=tuple(
                Site(_name(role, kind, group), role, kind, group, meant.get((role, group)) if kind in _ASKS else None)
                for role, kind, group in self._index
            ),
            barriers=barrier_groups(self._program),
            agents=tuple(AgentInfo(a.role, a.index, a.warp) for a in self._program.agents if a.cta == 0),
            records=records,
        )


def site_table(program: Program) -> SiteTable:
    """The table of ``program``: a site for each (role, kind of event, barrier group), in order of first appearance."""
    book = SiteBook(program)
    by_agent = []
    for agent, code in enumerate(program.code):
        book.begin(agent)
        by_agent.append(tuple(book.records(op) if op[0] in RECORDED else () for op in code))
    return book.table(tuple(by_agent))


def iterations(table: SiteTable) -> int:
    """The most that an agent of the program passes one of its sites: the iterations that a window can keep."""
    counts = (Counter(record.site for records in agent for record in records) for agent in table.records)
    return max((most for passes in counts for most in passes.values()), default=0)


def barrier_groups(program: Program) -> tuple[BarrierGroup, ...]:
    """The groups of mbarriers of CTA 0, each with its stages and the count of its init (0 if it has none)."""
    counts: dict[int, int] = {}
    for code in program.code:
        for op in code:
            if op[0] == Op.INIT:
                counts.setdefault(op[BARRIER], op[COUNT])
    groups: dict[str, list[int]] = {}
    for number, barrier in enumerate(program.barriers):
        if barrier.cta == 0:
            groups.setdefault(barrier.name, []).append(counts.get(number, 0))
    return tuple(BarrierGroup(name, len(found), found[0]) for name, found in groups.items())


def _records(
    program: Program, role: str, operation: Operation, last_stage: int, index: dict[tuple[str, EventKind, str], int]
) -> tuple[Record, ...]:
    on_barrier = operation[0] in ON_BARRIER
    barrier = program.barriers[operation[BARRIER]] if on_barrier else None
    group = barrier.name if barrier else ""
    stage = barrier.stage if barrier else last_stage
    parity = operation[PARITY] if operation[0] in BY_PARITY else -1
    return tuple(
        Record(index.setdefault((role, kind, group), len(index)), stage, parity, _value(kind, operation))
        for kind in kinds(operation)
    )


def _value(kind: EventKind, operation: Operation) -> int:
    if kind is EventKind.TRY:
        return -1
    if kind is EventKind.COPY:
        return operand(operation, "bytes")
    if kind is EventKind.EXPECT:
        return operand(operation, "expect")
    return operation[COUNT] if kind is EventKind.ARRIVE else 0


def _name(role: str, kind: EventKind, group: str) -> str:
    return "_".join(part for part in (role, kind.name.lower(), identifier(group)) if part)


def identifier(group: str) -> str:
    """The name of a barrier group as a kernel may spell it: ``pipe_full`` of ``pipe.full``, ``b_4_full`` of
    ``b[4].full``.
    """
    return "_".join(re.findall(r"\w+", group))
