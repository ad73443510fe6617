"""The autopsy of a kernel that did not finish: its barriers rebuilt from one CTA's records, and who waits for what.

The records are made a flat program of their own: the waits, arrives, expects and copies of each agent in their order.
Followed to its end, with everything landed that was under way, it leaves the barriers as the kernel left them. No
protocol is needed for that. Where it is known, it gives each operation its line, and an agent that still waits what it
would have done next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pipesim.conform.diagnose.examined import Autopsy, Standing
from pipesim.conform.diagnose.forgiving import replay_forgiving
from pipesim.conform.replay.align import Aligned
from pipesim.conform.replay.barrier_words import word_left, words_read
from pipesim.conform.replay.conformance import events_of
from pipesim.conform.replay.follow_records import Replayed
from pipesim.explain.blocked import explain, in_flight, waiting
from pipesim.explain.faults import report_fault
from pipesim.model.barrier_word import BarrierWord
from pipesim.model.ending import TRAPPED
from pipesim.model.finding import Blocked
from pipesim.model.groups import BY_PARITY, LOOP_MARKS
from pipesim.model.machine import State
from pipesim.model.ops import Op, Operation, Space, operand
from pipesim.model.program import ALL_LANES, Access, Agent, Barrier, Program
from pipesim.trace.schema import EventKind, Events, Trace
from pipesim.trace.sites import RECORDED, kinds, site_table


def autopsy(trace: Trace, cta: int, program: Program | None = None) -> Autopsy | None:
    """The end of one CTA of a trace that did not finish, rebuilt from its records.

    ``program`` is its protocol, if it is known. None if the trace does not say how many arrivals its barriers expect,
    or if only a window of its records was kept.
    """
    meta = trace.meta
    info = next((c for c in meta.ctas if c.cta == cta), None)
    if meta.window or (info and sum(info.dropped)) or not all(group.count for group in meta.barriers):
        return None
    events = events_of(trace, cta)
    book = _Book(trace, program)
    agents = [_dissect(book, events, agent) for agent in range(len(meta.agents))]
    rebuilt = replace(
        book.program,
        code=tuple(a.code for a in agents),
        lines=tuple(a.lines for a in agents),
        sources=(*book.program.sources, ""),
    )
    sizes = [len(a.rows) for a in agents]
    aligned = [
        Aligned(n, tuple(range(size)), agents[n].rows, 0, size, {}, None, cut=False, iterations=(0, 0))
        for n, size in enumerate(sizes)
    ]
    partial = [a.waits or meta.status in TRAPPED for a in agents]
    followed = replay_forgiving(rebuilt, site_table(rebuilt), trace, events, cta, aligned, partial)
    return _told(trace, events, cta, rebuilt, agents, followed)


@dataclass(frozen=True)
class _Dissected:
    """One agent: its operations and lines, the rows of those it ran, and whether the last of these is an open wait."""

    code: tuple[Operation, ...]
    lines: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]
    waits: bool


class _Book:
    """What the records are read with: barriers by name, and the protocol's operations by (agent, kind, group, pass)."""

    def __init__(self, trace: Trace, program: Program | None) -> None:
        self.trace = trace
        self.known = program is not None
        self.program = program or _skeleton(trace)
        self.barriers = {(b.name, b.stage): n for n, b in enumerate(self.program.barriers) if b.cta == 0}
        self.prologue = [_first_recorded(code) for code in self.program.code]
        self.places = [self._places(agent) for agent in range(len(self.program.agents))] if self.known else []

    def _places(self, agent: int) -> dict[tuple[EventKind, str, int], int]:
        """Where the protocol has an event: the position of its operation."""
        found: dict[tuple[EventKind, str, int], int] = {}
        passes: dict[tuple[EventKind, str], int] = {}
        for pc, op in enumerate(self.program.code[agent]):
            if op[0] in RECORDED and op[0] != Op.WORK:
                group = self.program.barriers[operand(op, "barrier")].name
                for kind in kinds(op):
                    n = passes[kind, group] = passes.get((kind, group), -1) + 1
                    found[kind, group, n] = pc
        return found

    def place(self, events: Events, row: int) -> int:
        """The position of the protocol's operation that leaves this event, -1 if it has none.

        An agent that left one out, or did one twice, is a pass off: of the neighbours one on the same stage is taken.
        """
        if not self.known:
            return -1
        agent, site = int(events.agent[row]), self.trace.meta.sites[int(events.site[row])]
        here = (self.barriers.get((site.barrier, int(events.stage[row])), -1), int(events.parity[row]))
        passed = int(events.iteration[row])
        near = [self.places[agent].get((site.kind, site.barrier, passed + by), -1) for by in (0, 1, -1)]
        same = (pc for pc in near if pc >= 0 and self._target(self.program.code[agent][pc]) == here)
        return next(same, near[0])

    @staticmethod
    def _target(op: Operation) -> tuple[int, int]:
        """The barrier of an operation, and the parity waited for, -1 if it does not wait."""
        return operand(op, "barrier"), operand(op, "parity") if op[0] in BY_PARITY else -1


def _first_recorded(code: tuple[Operation, ...]) -> int:
    return next((pc for pc, op in enumerate(code) if op[0] in RECORDED), len(code))


def _skeleton(trace: Trace) -> Program:
    """The agents and barriers of a trace, initialised and made visible; nothing is known of its tiles."""
    meta = trace.meta
    barriers = [(Barrier(0, g.name, stage), g.count) for g in meta.barriers for stage in range(g.stages)]
    meet = (int(Op.BAR_SYNC), 0, 32 * len(meta.agents), 32)
    inits = tuple((int(Op.INIT), n, count) for n, (_, count) in enumerate(barriers))
    code = tuple(((*inits, meet) if agent == 0 else (meet,)) for agent in range(len(meta.agents)))
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
        named_barriers=((0, 0),),
    )


def _dissect(book: _Book, events: Events, agent: int) -> _Dissected:
    """One agent's records as operations, behind what it does before its first and before what it would do next."""
    program, start = book.program, book.prologue[agent]
    code, lines = list(program.code[agent][:start]), list(program.lines[agent][:start])
    rows: list[tuple[int, ...]] = [()] * start
    unknown = len(program.sources)  # of the source "" that is added
    waits, last, begun = False, start - 1, start
    for row in (int(r) for r in np.flatnonzero(events.agent == agent)):
        site = book.trace.meta.sites[int(events.site[row])]
        pc = book.place(events, row)
        last = pc if pc >= 0 else last
        if site.kind is EventKind.WAIT_RETURN and waits:
            rows[-1] = (*rows[-1], row)
            waits = False
            continue
        barrier = book.barriers.get((site.barrier, int(events.stage[row])), -1)
        operation = _operation(book, agent, site.kind, barrier, events, row, pc)
        if operation is None:
            continue
        waits = site.kind is EventKind.WAIT_ENTER
        for mark in range(begun, pc):  # the loops it is in
            if program.code[agent][mark][0] in LOOP_MARKS:
                code.append(program.code[agent][mark])
                lines.append(program.lines[agent][mark])
                rows.append(())
        begun = max(begun, pc)
        code.append(operation)
        lines.append(program.lines[agent][pc] if pc >= 0 else unknown)
        rows.append((row, row) if site.kind is EventKind.TRY else (row,))
    if book.known and (waits or book.trace.meta.status in TRAPPED):
        code += program.code[agent][last + 1 :]
        lines += program.lines[agent][last + 1 :]
    return _Dissected(tuple(code), tuple(lines), tuple(rows), waits)


def _operation(
    book: _Book, agent: int, kind: EventKind, barrier: int, events: Events, row: int, pc: int
) -> Operation | None:
    """The operation that left an event, None if it left the barriers alone. An expect arrives once, as everywhere."""
    value, parity = int(events.value[row]), int(events.parity[row])
    match kind:
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
                return (int(Op.TMA_LOAD), barrier, operand(theirs, "access"), value, operand(theirs, "item"), 0)
            return (int(Op.TMA_LOAD), barrier, min(barrier, len(book.program.accesses) - 1), value, 0, 0)
        case EventKind.WAIT_RETURN | EventKind.WORK_BEGIN | EventKind.WORK_END:
            return None


def _told(
    trace: Trace, events: Events, cta: int, rebuilt: Program, agents: list[_Dissected], followed: Replayed
) -> Autopsy:
    meta, state = trace.meta, followed.state
    blocked = waiting(rebuilt, state)
    barriers = _standings(words_read(meta, cta), rebuilt, state, blocked)
    answers = [b.agrees for b in barriers]
    deadlock = explain(rebuilt, state) if followed.trap is None else None
    still = {b.agent for b in blocked} | set(deadlock.finished if deadlock else ())
    if meta.status not in TRAPPED:
        still |= {rebuilt.agent_name(n) for n, a in enumerate(agents) if not a.waits}
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
    )


def _standings(
    read: dict[tuple[str, int], BarrierWord], rebuilt: Program, state: State, blocked: tuple[Blocked, ...]
) -> tuple[Standing, ...]:
    found = []
    for n, barrier in enumerate(rebuilt.barriers):
        if barrier.cta == 0:
            word, name, there = state.barriers[n], rebuilt.barrier_name(n), read.get((barrier.name, barrier.stage))
            agrees = None if there is None else there == word_left(word)
            here = tuple(b.agent for b in blocked if b.barrier == name)
            flying = min(in_flight(state, n), max(word.tx, 0))
            found.append(Standing(name, word.done, word.pending, word.expected, word.tx, here, there, agrees, flying))
    return tuple(found)
