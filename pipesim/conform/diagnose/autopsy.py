"""The autopsy of a kernel that did not finish: its barriers rebuilt from one CTA's records, and who waits for what.

The records are made a flat program of their own: the waits, arrives, expects and copies of each agent in their order.
Followed to its end, with everything landed that was under way, it leaves the barriers as the kernel left them. No
protocol is needed for that. Where it is known, it gives each operation its line, an agent that still waits what it
would have done next, and, between two records, what an agent does without leaving any: commits, arrivals of cp.async,
named barriers, wherever the kernel does not record these. Without it, a barrier at which no record arrives is left out.
"""

from dataclasses import replace

from pipesim.conform.diagnose.examination import Autopsy, RebuiltBarrier
from pipesim.conform.diagnose.forgiving import replay_forgiving
from pipesim.conform.replay.align import AgentAlignment
from pipesim.conform.replay.conformance import events_of
from pipesim.conform.replay.divergence import word_left, words_read
from pipesim.conform.replay.follow_records import ReplayResult
from pipesim.explain.blocked_agents import blocked_agents, explain, in_flight
from pipesim.findings.catalog import report_fault
from pipesim.model.barrier import BarrierWord
from pipesim.model.ending import TRAPPED
from pipesim.model.finding import BlockedAgent
from pipesim.model.groups import BY_PARITY, HANDS_ON, LOOP_MARKS, MAY_BLOCK, MEETINGS, ON_BARRIER, ON_ENGINE
from pipesim.model.machine import State
from pipesim.model.ops import Engine, Op, Operation, Space, operand, operands
from pipesim.model.program import Program
from pipesim.model.tables import ALL_LANES, Access, Agent, Barrier
from pipesim.trace.arrays import np
from pipesim.trace.schema import ON_NAMED_BARRIER, EventKind, Events, Site, Trace
from pipesim.trace.sites import optional_of, site_table


def autopsy(
    trace: Trace, cta: int, program: Program | None = None, meant: Program | None = None
) -> Autopsy | None:  # fmt: skip
    """The end of one CTA of a trace that did not finish, rebuilt from its records.

    ``program`` is its protocol, if it is known, or what it turned out to be; ``meant``: the protocol then, whose
    operations, each at the place of one of ``program``, the records name. None if the trace does not say how many
    arrivals its barriers expect, or if only a window of its records was kept.
    """
    meta = trace.meta
    info = next((c for c in meta.ctas if c.cta == cta), None)
    if meta.window or (info and sum(info.dropped)) or not all(group.count for group in meta.barriers):
        return None
    events = events_of(trace, cta)
    book = _Book(trace, program, meant)
    agents = [_RebuiltAgent(book, events, agent) for agent in range(len(meta.agents))]
    rebuilt = replace(
        book.program,
        code=tuple(tuple(a.code) for a in agents),
        lines=tuple(tuple(a.lines) for a in agents),
        sources=(*book.program.sources, ""),
    )
    sizes = [len(a.rows) for a in agents]
    aligned = [
        AgentAlignment(
            n, tuple(range(size)), tuple(a.rows), 0, size, {}, None, cut=False, iterations=(0, 0), half=a.half
        )
        for n, (a, size) in enumerate(zip(agents, sizes, strict=True))
    ]
    partial = [a.waits or a.half or a.supplied > 0 or meta.status in TRAPPED for a in agents]
    followed = replay_forgiving(rebuilt, site_table(rebuilt), trace, events, cta, aligned, partial)
    found = _result(trace, events, cta, rebuilt, agents, followed)
    return replace(found, barriers=tuple(b for b in found.barriers if b.name.partition("[")[0] not in book.silent))


#: Change what others, or the agent itself, wait for: taken from the protocol where they leave no records.
_SUPPLIED = HANDS_ON | MEETINGS | MAY_BLOCK & ON_ENGINE


class _Book:
    """What the records are read with: barriers by name, and the protocol's operations by (agent, kind, group, pass)."""

    def __init__(self, trace: Trace, program: Program | None, meant: Program | None) -> None:
        self.trace = trace
        self.known = program is not None
        self.program = program or _skeleton(trace)
        self._barriers = {(b.cta, b.name, b.stage): n for n, b in enumerate(self.program.barriers)}
        self.named = {str(number): n for n, (_, number) in enumerate(self.program.named_barriers)}
        self.table = site_table(meant or self.program, optional_of(trace.meta))
        self.prologue = [self._first_recorded(agent) for agent in range(len(self.program.agents))]
        self.places = [self._places(agent) for agent in range(len(self.program.agents))] if self.known else []
        self.silent = frozenset() if self.known else _silent(trace)

    def _first_recorded(self, agent: int) -> int:
        """Where the first operation that leaves a record, or the first loop, begins: what comes before has happened."""
        code = self.program.code[agent]
        records = self.table.records[agent]
        return next((pc for pc in range(len(code)) if records[pc] or code[pc][0] in LOOP_MARKS), len(code))

    def _places(self, agent: int) -> dict[tuple[EventKind, str, int], int]:
        """Where the protocol has an event: the position of its operation."""
        found: dict[tuple[EventKind, str, int], int] = {}
        passes: dict[tuple[EventKind, str], int] = {}
        for pc, records in enumerate(self.table.records[agent]):
            if self.program.code[agent][pc][0] == Op.WORK:
                continue
            for site in (self.table.sites[record.site] for record in records):
                n = passes[site.kind, site.barrier] = passes.get((site.kind, site.barrier), -1) + 1
                found[site.kind, site.barrier, n] = pc
        return found

    def place(self, events: Events, row: int) -> int:
        """The position of the protocol's operation that leaves this event, -1 if it has none.

        An agent that left one out, or did one twice, is a pass off: of the neighbours one on the same stage is taken.
        """
        if not self.known:
            return -1
        agent, site = int(events.agent[row]), self.trace.meta.sites[int(events.site[row])]
        here = (site.group, int(events.stage[row]) if site.group else -1, int(events.parity[row]))
        passed = int(events.iteration[row])
        near = [self.places[agent].get((site.kind, site.barrier, passed + by), -1) for by in (0, 1, -1)]
        same = (pc for pc in near if pc >= 0 and self._target(self.program.code[agent][pc]) == here)
        return next(same, near[0])

    def barrier(self, agent: int, site: Site, stage: int, pc: int) -> int:
        """The barrier that a record names: the protocol's operation says in which CTA, else it is the agent's own."""
        if pc >= 0 and site.group and self._target(self.program.code[agent][pc])[:2] == (site.group, stage):
            return operand(self.program.code[agent][pc], "barrier")
        return self._barriers.get((self.program.agents[agent].cta, site.group, stage), -1)

    def _target(self, op: Operation) -> tuple[str, int, int]:
        """Group and stage of an operation's barrier, and the parity waited for, -1 if it does not wait."""
        barrier = operand(op, "barrier") if op[0] in ON_BARRIER else -1
        where = self.program.barriers[barrier] if barrier >= 0 else None
        parity = operand(op, "parity") if op[0] in BY_PARITY else -1
        return (where.name, where.stage, parity) if where else ("", -1, parity)

    def leaves_nothing(self, agent: int, pc: int) -> bool:
        """Whether the protocol's operation is one that others may wait for, and leaves no record in this trace."""
        return self.known and self.program.code[agent][pc][0] in _SUPPLIED and not self.table.records[agent][pc]


def _silent(trace: Trace) -> frozenset[str]:
    """The groups of barriers at which no record arrives: the trace alone cannot say what becomes of them."""
    brings = (EventKind.ARRIVE, EventKind.EXPECT, EventKind.COPY, EventKind.CP_ASYNC_ARRIVE, EventKind.COMMIT)
    heard = {site.group for site in trace.meta.sites if site.kind in brings}
    return frozenset(group.name for group in trace.meta.barriers) - heard


def _skeleton(trace: Trace) -> Program:
    """The agents and barriers of a trace, initialised and made visible; nothing is known about its tiles."""
    meta = trace.meta
    barriers = [(Barrier(0, g.name, stage), g.count) for g in meta.barriers for stage in range(g.stages)]
    meet = (int(Op.BAR_SYNC), 0, 32 * len(meta.agents), 32)
    inits = tuple((int(Op.INIT), n, count) for n, (_, count) in enumerate(barriers))
    code = tuple(((*inits, meet) if agent == 0 else (meet,)) for agent in range(len(meta.agents)))
    numbers = sorted({int(site.barrier) for site in meta.sites if site.kind in ON_NAMED_BARRIER} - {0})
    return Program(
        name=meta.protocol,
        params=dict(meta.params),
        agents=tuple(Agent(0, a.warp, ALL_LANES, a.role, a.index) for a in meta.agents),
        barriers=tuple(barrier for barrier, _ in barriers),
        accesses=tuple(Access(Space.SHARED, 0, n, 1) for n in range(max(len(barriers), 1))),
        tiles=(),
        code=code,
        lines=tuple((0,) * len(mine) for mine in code),
        sources=("",),
        named_barriers=((0, 0), *((0, number) for number in numbers)),
    )


class _RebuiltAgent:
    """One agent's records as operations, after what it does before its first and before what it would do next.

    Its operations and lines, the rows of those it ran, and whether the last of these is an open wait (``waits``).
    ``half``: the last is a wait for a named barrier or for its own transfers, and did not return. ``supplied``: how
    many operations are from the protocol, as they leave no records.
    """

    def __init__(self, book: _Book, events: Events, agent: int) -> None:
        self._book, self._agent = book, agent
        start = book.prologue[agent]
        self.code = list(book.program.code[agent][:start])
        self.lines = list(book.program.lines[agent][:start])
        self.rows: list[tuple[int, ...]] = [()] * start
        self._begun = start  #: up to here the protocol's operations are there, or are known not to have happened
        self.supplied = 0
        open_: EventKind | None = None  # the wait that began last, if it has not returned
        last = self._begun - 1
        for row in (int(r) for r in np.flatnonzero(events.agent == agent)):
            site = book.trace.meta.sites[int(events.site[row])]
            if site.group in book.silent and site.group:
                continue
            pc = book.place(events, row)
            last = pc if pc >= 0 else last
            if open_ is not None and site.kind is _RETURNS[open_]:
                self.rows[-1] = (*self.rows[-1], row)
                open_ = None
                continue
            operation = _operation(book, agent, site, events, row, pc)
            if operation is None:
                continue
            unexpected = site.kind is EventKind.BAR_ARRIVE and operation[0] == Op.BAR_SYNC  # it waits, after all
            open_ = EventKind.BAR_ENTER if unexpected else site.kind if site.kind in _RETURNS else None
            self._between(pc)
            self._append(operation, pc, (row, row) if site.kind is EventKind.TRY else (row,))
        self.waits = open_ is EventKind.WAIT_ENTER
        self.half = open_ is not None and not self.waits
        if book.known and (self.waits or self.half or book.trace.meta.status in TRAPPED):
            self.code += book.program.code[agent][last + 1 :]
            self.lines += book.program.lines[agent][last + 1 :]
        elif book.known:
            self._between(self._next_recorded(last + 1))

    def _between(self, pc: int) -> None:
        """The loops that a record is in, and what its agent did before it without leaving a record."""
        for before in range(self._begun, pc):
            operation = self._book.program.code[self._agent][before]
            unseen = self._book.leaves_nothing(self._agent, before)
            if operation[0] in LOOP_MARKS or unseen:
                self._append(operation, before, ())
                self.supplied += unseen
        self._begun = max(self._begun, pc)

    def _append(self, operation: Operation, pc: int, rows: tuple[int, ...]) -> None:
        program = self._book.program
        self.code.append(operation)
        self.lines.append(program.lines[self._agent][pc] if pc >= 0 else len(program.sources))  # the source "" added
        self.rows.append(rows)

    def _next_recorded(self, pc: int) -> int:
        """The protocol's next operation from here on that would have left a record, or its end."""
        records = self._book.table.records[self._agent]
        return next((at for at in range(pc, len(records)) if records[at]), len(records))


#: What ends the waits that a record begins.
_RETURNS = {
    EventKind.WAIT_ENTER: EventKind.WAIT_RETURN,
    EventKind.BAR_ENTER: EventKind.BAR_RETURN,
    EventKind.GROUP_ENTER: EventKind.GROUP_RETURN,
}


def _operation(book: _Book, agent: int, site: Site, events: Events, row: int, pc: int) -> Operation | None:
    """The operation that left an event, None if it left the barriers alone. An expect arrives once, as everywhere."""
    value, parity = int(events.value[row]), int(events.parity[row])
    barrier = book.barrier(agent, site, int(events.stage[row]), pc)
    match site.kind:
        case EventKind.WAIT_ENTER:
            return (int(Op.WAIT), barrier, parity, 0)
        case EventKind.TRY:
            return (int(Op.WAIT), barrier, parity, 0) if value and parity >= 0 else None
        case EventKind.ARRIVE:
            return (int(Op.ARRIVE), barrier, value, 0, -1, 0)
        case EventKind.EXPECT:
            return (int(Op.ARRIVE), barrier, 1, value, -1, 0)
        case EventKind.COPY:
            if pc >= 0:
                theirs = book.program.code[agent][pc]
                where, item, mask = operands(theirs, "access", "item", "cta_mask")
                return (int(Op.TMA_LOAD), barrier, where, value, item, mask)
            return (int(Op.TMA_LOAD), barrier, min(barrier, len(book.program.accesses) - 1), value, 0, 0)
        case EventKind.WAIT_RETURN | EventKind.WORK_BEGIN | EventKind.WORK_END:
            return None
        case _:
            return _optional_operation(book, agent, site, barrier, value, pc)


def _optional_operation(
    book: _Book, agent: int, site: Site, barrier: int, value: int, pc: int
) -> Operation | None:  # fmt: skip
    """The operation that left an event which not all traces have: the protocol's own, where it is known."""
    if pc >= 0:
        return book.program.code[agent][pc]
    match site.kind:
        case EventKind.CP_ASYNC_ARRIVE:  # with .noinc, unless its role also arrives there by itself
            meta = book.trace.meta
            itself = any(s.key == (site.role, EventKind.ARRIVE, site.barrier) for s in meta.sites)
            return (int(Op.CP_ASYNC_ARRIVE), barrier, value, int(not itself))
        case EventKind.BAR_ARRIVE | EventKind.BAR_ENTER if site.barrier in book.named:
            kind = Op.BAR_ARRIVE if site.kind is EventKind.BAR_ARRIVE else Op.BAR_SYNC
            return (int(kind), book.named[site.barrier], value, 32)
        case EventKind.COMMIT:
            return (int(Op.COMMIT), int(Engine.TCGEN05), barrier)
        case _:
            return None


def _result(
    trace: Trace, events: Events, cta: int, rebuilt: Program, agents: list[_RebuiltAgent], followed: ReplayResult
) -> Autopsy:
    meta, state = trace.meta, followed.state
    blocked = blocked_agents(rebuilt, state)
    barriers = _rebuilt_barriers(words_read(meta, cta), rebuilt, state, blocked)
    answers = [b.agrees for b in barriers]
    deadlock = explain(rebuilt, state) if followed.trap is None else None
    still = {b.agent for b in blocked} | set(deadlock.finished if deadlock else ())
    if meta.status not in TRAPPED:
        still |= {rebuilt.agent_name(n) for n, a in enumerate(agents) if not a.waits and not a.half}
    return Autopsy(
        cta,
        meta.status,
        int(events.cycle.max()) if len(events) else -1,
        int(events.time_ps.max() - events.time_ps.min()) if len(events) else 0,
        barriers,
        deadlock,
        blocked,
        tuple(name for n in range(len(agents)) if (name := rebuilt.agent_name(n)) not in still),
        report_fault(rebuilt, followed.trap) if followed.trap else None,
        followed.divergence.claim if followed.divergence else "",
        None if not answers or None in answers else all(answers),
        supplied=any(a.supplied for a in agents),
    )


def _rebuilt_barriers(
    read: dict[tuple[str, int], BarrierWord], rebuilt: Program, state: State, blocked: tuple[BlockedAgent, ...]
) -> tuple[RebuiltBarrier, ...]:
    found = []
    for n, barrier in enumerate(rebuilt.barriers):
        if barrier.cta == 0:
            word, name, there = state.barriers[n], rebuilt.barrier_name(n), read.get((barrier.name, barrier.stage))
            agrees = None if there is None else there == word_left(word)
            here = tuple(b.agent for b in blocked if b.barrier == name)
            flying = min(in_flight(state, n), max(word.tx, 0))
            found.append(
                RebuiltBarrier(name, word.done, word.pending, word.expected, word.tx, here, there, agrees, flying)
            )
    return tuple(found)
