"""Replay on demand: is there an order of the machine's moves that explains the recorded times?

Waits are taken in the order in which they returned. To let a wait return at time t, only operations whose earliest
possible time is not after t plus the uncertainty are executed, and of those only what its barrier still needs; bytes in
flight may land whenever they are needed. If nothing is left that could help, the wait returned too early. Every
operation is executed once, so the whole is linear in the trace (after sorting it).
"""

from __future__ import annotations

import numpy as np

from pipesim.conform.align import Aligned, Mismatch, align, describe_event, describe_record, site_numbers
from pipesim.conform.result import Conformance, Divergence, DivergenceKind, Moment
from pipesim.errors import EvidenceError
from pipesim.model.barrier import phase_wanted
from pipesim.model.finding import Fault, Verdict
from pipesim.model.machine import State, answered, can_land, initial_state, land, step
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.trace.schema import Events, Trace
from pipesim.trace.sites import SiteTable, site_table
from pipesim.unfold.blocked import explain

_SUPPLIERS = frozenset(
    {Op.INIT, Op.ARRIVE, Op.ARRIVE_DROP, Op.ARRIVE_NO_COMPLETE, Op.EXPECT_TX, Op.COMPLETE_TX, Op.TMA_LOAD, Op.CP_ASYNC_ARRIVE}
)
_CONTEXT = 4  #: events shown before a divergence


def conform(program: Program, trace: Trace) -> Conformance:
    """Hold every recorded CTA of ``trace`` against ``program`` (one CTA). EvidenceError if it is another kernel's trace."""
    table = site_table(program)
    _require_same_kernel(program, table, trace)
    sites = site_numbers(trace, table)
    uncertainty = order_uncertainty(trace)
    lost = sum(sum(c.dropped) for c in trace.meta.ctas)
    ctas = sorted({int(c) for c in np.unique(trace.events.cta)} | {c.cta for c in trace.meta.ctas})
    if not ctas:
        return Conformance(Verdict.UNKNOWN, 0, 0, lost, uncertainty)
    first: Divergence | None = None
    for cta in ctas:
        first = _replay_cta(program, table, trace, cta, sites, uncertainty)
        if first is not None:
            break
    if first is not None:
        verdict = Verdict.REFUTED
    else:
        verdict = Verdict.UNKNOWN if lost else Verdict.PROVED
    return Conformance(verdict, len(trace.events), len(ctas), lost, uncertainty, first)


def order_uncertainty(trace: Trace) -> int:
    """Cycles by which two stamps of one SM may stand in the wrong order: 0 for a simulation, else as the capture states."""
    stated = trace.meta.extra.get("order_error_cycles", 0)
    if type(stated) is not int or stated < 0:
        raise EvidenceError(f"the trace states an impossible clock uncertainty: {stated!r} cycles")
    return stated


def _require_same_kernel(program: Program, table: SiteTable, trace: Trace) -> None:
    for what, mine, theirs in (
        ("agents", table.agents, trace.meta.agents),
        ("barriers", table.barriers, trace.meta.barriers),
    ):
        if mine != theirs:
            raise EvidenceError(
                f"the trace of {trace.meta.protocol} does not have the {what} of {program.name}",
                cause=f"trace: {', '.join(map(str, theirs)) or 'none'}; protocol: {', '.join(map(str, mine))}",
                correction="compare it with the protocol and the parameters it was recorded with",
            )


def _replay_cta(
    program: Program, table: SiteTable, trace: Trace, cta: int, sites: dict[int, int], uncertainty: int
) -> Divergence | None:
    events = trace.events.select(np.flatnonzero(trace.events.cta == cta))
    info = next((c for c in trace.meta.ctas if c.cta == cta), None)
    aligned = []
    for agent in range(len(program.agents)):
        rows = [int(r) for r in np.flatnonzero(events.agent == agent)]
        lost = info.dropped[agent] if info and info.dropped else 0
        aligned.append(align(program, table, events, rows, agent, sites, lost=lost))
    page = _Page(program, table, trace, events, cta)
    mismatches = [a.mismatch for a in aligned if a.mismatch is not None]
    hung = trace.meta.status != "finished"
    if hung:  # where records end is where the kernel was stopped: not a divergence in itself
        mismatches = [m for m in mismatches if m.kind is not DivergenceKind.MISSING_EVENT]
    if mismatches:
        return page.mismatch(min(mismatches, key=lambda m: (page.time(m.row), m.agent)))
    replay = _Replay(program, events, aligned, uncertainty, page)
    return replay.run() or (page.not_finished(replay.state) if hung else None)


class _Replay:
    """One CTA's machine, moved by its recorded events."""

    def __init__(self, program: Program, events: Events, aligned: list[Aligned], uncertainty: int, page: _Page) -> None:
        self._program = program
        self._uncertainty = uncertainty
        self._page = page
        self.state: State = initial_state(program)
        self._ran = [a.ran for a in aligned]
        self._rows = [a.rows for a in aligned]
        self._answers = [a.answers for a in aligned]
        self._cycle = [int(c) for c in events.cycle]
        self._done = [0] * len(aligned)  #: operations of each agent executed, as positions in ``ran``
        self._waits, self._supply = self._plan()
        self._next_supply = [0] * len(program.barriers)

    def _plan(self) -> tuple[list[tuple[int, int, int, int]], list[list[tuple[int, int, int]]]]:
        """Waits by return time, and for each barrier what could supply it by earliest time.

        An operation without an event of its own cannot have happened before its agent's event before it.
        """
        waits: list[tuple[int, int, int, int]] = []
        supply: list[list[tuple[int, int, int]]] = [[] for _ in self._program.barriers]
        for agent, (ran, rows) in enumerate(zip(self._ran, self._rows, strict=True)):
            earliest = -(1 << 62)
            code = self._program.code[agent]
            for position, (pc, mine) in enumerate(zip(ran, rows, strict=True)):
                op = code[pc]
                if mine:
                    earliest = self._cycle[mine[0]]
                if op[0] in (Op.WAIT, Op.WAIT_UNLESS):
                    if len(mine) == 2:
                        waits.append((self._cycle[mine[1]], agent, position, mine[1]))
                elif op[0] in _SUPPLIERS:
                    supply[op[1]].append((earliest, agent, position))
                if mine:
                    earliest = self._cycle[mine[-1]]
        waits.sort()
        for entries in supply:
            entries.sort()
        return waits, supply

    def run(self) -> Divergence | None:
        """Replay everything; the first divergence, or None."""
        for cycle, agent, position, row in self._waits:
            wrong = self._advance(agent, position + 1, cycle, row)
            if wrong is not None:
                return wrong
        for agent in range(len(self._ran)):
            wrong = self._advance(agent, len(self._ran[agent]), 1 << 62, self._page.last_row(agent))
            if wrong is not None:
                return wrong
        return None

    def _advance(self, agent: int, end: int, cycle: int, row: int) -> Divergence | None:
        """Execute the operations of ``agent`` up to position ``end``; those that others must enable pull them along.

        An explicit stack: the head of each entry is an agent, the position to reach, and the row and time of the wait
        that asks for it.
        """
        stack = [(agent, end, cycle, row)]
        while stack:
            who, target, limit, at = stack[-1]
            if self._done[who] >= target:
                stack.pop()
                continue
            position = self._done[who]
            pc = self._ran[who][position]
            result = step(self._program, self.state, who)
            if result.faults and (wrong := self._page.fault(result.faults[0], at)) is not None:
                return wrong
            self.state = result.state
            if result.blocked < 0:
                if pc in self._answers[who]:
                    self.state = answered(self._program, self.state, who, pc, self._answers[who][pc])
                self._done[who] += 1
                continue
            rows = self._rows[who][position]
            if len(rows) == 1 and self._program.code[who][pc][0] in (Op.WAIT, Op.WAIT_UNLESS):
                stack.pop()  # entered, never returned: the kernel was stopped here
                continue
            when = self._cycle[rows[-1]] if rows else limit
            demand = self._demand(result.blocked, when + self._uncertainty, [entry[0] for entry in stack])
            if demand is None:
                return self._page.too_early(self.state, who, pc, rows[-1] if rows else at, self._closest(result.blocked, when))
            if demand:
                stack.append((*demand, when, rows[-1] if rows else at))
        return None

    def _demand(self, channel: int, limit: int, asking: list[int]) -> tuple[int, int] | tuple[()] | None:
        """What to execute so that ``channel`` may signal: (agent, position to reach), () if bytes landed, None if nothing."""
        flight = next((f for f in self.state.flights if self._serves(f.barrier, f.agent, channel) and can_land(self.state, f)), None)
        if flight is not None:
            self.state = land(self._program, self.state, flight).state
            return ()
        if channel < len(self._program.barriers):
            entries = self._supply[channel]
            at = self._next_supply[channel]
            while at < len(entries) and self._done[entries[at][1]] > entries[at][2]:
                at += 1
            self._next_supply[channel] = at
            for n in range(at, len(entries)):
                earliest, agent, position = entries[n]
                if earliest > limit:
                    break
                if self._done[agent] <= position and agent not in asking:
                    return agent, position + 1
            return None
        # a named or cluster barrier: everyone who has not arrived yet may, in order of the agents
        for agent, ran in enumerate(self._ran):
            if agent not in asking and self._done[agent] < len(ran) and not self.state.holds[agent]:
                return agent, self._done[agent] + 1
        return None

    def _serves(self, barrier: int, agent: int, channel: int) -> bool:
        return barrier == channel or channel == len(self._program.barriers) + len(self._program.named_barriers) + 1 + agent

    def _closest(self, channel: int, when: int) -> int:
        """Cycles until the first operation that could have helped, 0 if there is none."""
        if channel >= len(self._program.barriers):
            return 0
        later = [e for e, agent, position in self._supply[channel] if self._done[agent] <= position and e > when]
        return later[0] - when if later else 0


class _Page:
    """Writes divergences: what happened, what the model has instead, and the events before."""

    def __init__(self, program: Program, table: SiteTable, trace: Trace, events: Events, cta: int) -> None:
        self._program = program
        self._table = table
        self._trace = trace
        self._events = events
        self._cta = cta
        self._order = [int(r) for r in np.lexsort((np.arange(len(events)), events.cycle))]
        self._rank = {row: n for n, row in enumerate(self._order)}

    def time(self, row: int) -> int:
        return int(self._events.cycle[row]) if row >= 0 else -1

    def last_row(self, agent: int) -> int:
        rows = np.flatnonzero(self._events.agent == agent)
        return int(rows[-1]) if len(rows) else -1

    def mismatch(self, found: Mismatch) -> Divergence:
        expected = describe_record(self._table, found.expected) if found.expected is not None else "nothing: it has ended"
        actual = describe_event(self._trace, found.row, self._events) if found.row >= 0 else "nothing"
        name = self._program.agent_name(found.agent)
        match found.kind:
            case DivergenceKind.MISSING_EVENT:
                claim = f"the records of {name} end where the protocol goes on with: {expected}"
                actual = "no more records"
            case DivergenceKind.BACKWARDS:
                claim = f"{name}: “{actual}” is stamped before the event that precedes it"
            case DivergenceKind.EXTRA_EVENT:
                claim = f"{name} goes on with “{actual}” where the protocol has ended"
            case _:
                claim = f"{name}: “{actual}” where the protocol has “{expected}”"
                if actual == expected:
                    claim = f"{name}: “{actual}” is of iteration {int(self._events.iteration[found.row])}, out of turn"
        return self._divergence(found.kind, claim, found.agent, found.pc, found.row, actual, expected)

    def too_early(self, state: State, agent: int, pc: int, row: int, gap: int) -> Divergence:
        op = self._program.code[agent][pc]
        name = self._program.agent_name(agent)
        if op[0] not in (Op.WAIT, Op.WAIT_UNLESS):
            claim = f"{name} goes on, though nothing recorded could have let it"
            return self._divergence(DivergenceKind.TOO_EARLY, claim, agent, pc, row, "goes on", "blocked")
        word = state.barriers[op[1]]
        barrier = self._program.barrier_name(op[1])
        wanted = phase_wanted(word, op[2])
        missing = " and ".join(
            part for part in (f"{word.pending} of {word.expected} arrivals" if word.pending else "", f"{word.tx:,} bytes" if word.tx else "") if part
        )  # fmt: skip
        claim = f"{name} returns from its wait for {barrier} parity {op[2]} before phase {wanted} can have completed: {missing} missing"
        if gap:
            claim += f"; the next that could help came {gap} cycles later"
        model = f"blocked until phase {wanted} completes"
        shown = describe_event(self._trace, row, self._events) if row >= 0 else ""
        return self._divergence(
            DivergenceKind.TOO_EARLY, claim, agent, pc, row, shown, model, barrier=barrier, wanted=wanted, now=word.done, gap=gap
        )

    def fault(self, found: Fault, row: int) -> Divergence | None:
        name = self._program.agent_name(found.agent)
        barrier = self._program.barrier_name(found.barrier) if found.barrier >= 0 else ""
        claim = f"{name}: {found.kind.value}" + (f" ({barrier})" if barrier else "")
        return self._divergence(DivergenceKind.FAULT, claim, found.agent, found.pc, row, "", found.kind.value, barrier=barrier)

    def not_finished(self, state: State) -> Divergence:
        left = [a for a in range(len(self._program.agents)) if state.pcs[a] < len(self._program.code[a])]
        claim = f"the kernel was stopped by its deadline: {len(left)} of {len(self._program.agents)} agents blocked"
        agent = left[0] if left else 0
        row = self._order[-1] if self._order else -1
        divergence = self._divergence(DivergenceKind.NOT_FINISHED, claim, agent, min(state.pcs[agent], len(self._program.code[agent]) - 1), row, "", "")
        return Divergence(**{**divergence.__dict__, "stuck": explain(self._program, state)})

    def _divergence(
        self, kind: DivergenceKind, claim: str, agent: int, pc: int, row: int, actual: str, expected: str,
        *, barrier: str = "", wanted: int = -1, now: int = -1, gap: int = 0,
    ) -> Divergence:  # fmt: skip
        at = self._rank.get(row, len(self._order))
        moments = [self._moment(n, "same") for n in range(max(0, at - _CONTEXT), min(at, len(self._order)))]
        cycle = self.time(row)
        moments.append(Moment(at, self._program.agent_name(agent), cycle, actual, expected))
        moments += [self._moment(n, "") for n in range(at + 1, min(at + 2, len(self._order)))]
        if not barrier and row >= 0:
            site = self._trace.meta.sites[int(self._events.site[row])]
            barrier = f"{site.barrier}[{int(self._events.stage[row])}]" if site.barrier else ""
        return Divergence(
            kind, claim, self._cta, self._program.agent_name(agent), int(self._events.iteration[row]) if row >= 0 else 0,
            at, len(self._order), cycle, barrier, wanted, now, gap, self._program.line(agent, pc), tuple(moments),
        )  # fmt: skip

    def _moment(self, n: int, model: str) -> Moment:
        row = self._order[n]
        agent = int(self._events.agent[row])
        return Moment(n, self._program.agent_name(agent), self.time(row), describe_event(self._trace, row, self._events), model)
