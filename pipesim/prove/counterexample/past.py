"""The causal past of a failure: the moves of a schedule that lead to it, and those that only happen beside it.

A move comes after the one before it of its agent. A part of a phase, and a wait that passes, come after the completion
of the phase before; a completion comes after all parts of its phase; a landing after its issue, and after what it waits
for; a read after what wrote its bytes. What is reached from the failure backwards is its past.
"""

from collections import defaultdict

from pipesim.model.finding import Deadlock, Fault, FaultKind
from pipesim.model.groups import ACCESSES, BLOCKING_WAITS, ENGINE_ACCESSES, LIFE, READS_MEMORY, SIGNALS, TRIES
from pipesim.model.machine import Flight, State, Step, initial_state, own_channel
from pipesim.model.moves import Kind, Move, canonical, held_up, make
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program
from pipesim.model.state import meeting_channel
from pipesim.prove.refutation import Refutation

_MOST_AGENTS = 4  #: of a deadlock, who all are part of it; of more only those that no agent can help


def past_of(program: Program, refuted: Refutation) -> frozenset[int]:
    """The moves of the schedule, counted from 0, that come before the failure or are it."""
    past = _Past(program)
    for number, move in enumerate(refuted.schedule):
        past.record(number, move)
    return past.moves_before(_ends(program, past, refuted))


def core(found: Deadlock) -> frozenset[str]:
    """The agents that a deadlock comes from: they missed a phase, no agent can help them, or they wait in a ring."""
    causes = {b.agent for b in found.blocked if b.missed >= 0 or b.lapped_by} or {
        b.agent for b in found.blocked if b.given >= 0 or not any(s.next_line for s in b.suppliers)
    }
    return frozenset(causes or found.cycle or {b.agent for b in found.blocked})


def agents_to_show(found: Deadlock) -> frozenset[str]:
    """The agents of a deadlock that a report must show: all of a few, else the cause and those who will never send."""
    causes = core(found)
    if any(b.missed >= 0 or b.lapped_by for b in found.blocked):
        return causes
    if len(found.blocked) <= _MOST_AGENTS:
        return frozenset(b.agent for b in found.blocked)
    silent = {s.agent for b in found.blocked if b.agent in causes for s in b.suppliers if not s.next_line}
    return causes | silent


def _ends(program: Program, past: "_Past", refuted: Refutation) -> set[int]:
    """The moves in which the failure shows."""
    if refuted.deadlock is None:
        last = range(len(refuted.schedule))[-1:]  # none of a fault that is there before the first move
        return _ends_of_fault(program, past, refuted.fault) | set(last)
    agents = {program.agent_name(a): a for a in range(len(program.agents))}
    shown = agents_to_show(refuted.deadlock)
    ends = {past.latest[agents[name]] for name in shown if agents[name] in past.latest}
    for each in refuted.deadlock.blocked:
        if each.agent in shown:
            stopped = held_up(program, past.state, agents[each.agent])
            ends |= past.open_phase(stopped.blocked) if stopped is not None else set()
    return ends


def _ends_of_fault(program: Program, past: "_Past", fault: Fault | None) -> set[int]:
    """What a fault needs beside its own agent: the access it is open with, what its channel has, the end of a CTA."""
    ends: set[int] = set()
    if fault is None or fault.kind is FaultKind.STALE_WAIT:  # a wait: it comes after the phase that it was given
        return ends
    if fault.other_agent >= 0:
        ends.add(past.latest[fault.other_agent])
    if fault.barrier >= 0:
        ends |= past.open_phase(fault.barrier)
    channel = meeting_channel(program, program.code[fault.agent][fault.pc])
    if channel >= 0:
        ends |= past.open_phase(channel)
    if fault.kind is FaultKind.EXITED_CTA:
        away = [a for a, agent in enumerate(program.agents) if agent.cta != program.agents[fault.agent].cta]
        ends |= {past.latest[agent] for agent in away if agent in past.latest}
    return ends


class _Past:
    """What each move of a schedule comes directly after."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._after: list[set[int]] = []
        self._issued: dict[tuple[int, int], int] = {}  # (agent, pc) → the move that issued its flights
        self._landed: defaultdict[int, list[int]] = defaultdict(list)  # agent → landings of its flights
        self._wrote: dict[int, int] = {}  # cell → the move that wrote it last
        self.state: State = canonical(initial_state(program))
        self.latest: dict[int, int] = {}  #: agent → its last move
        self.parts: defaultdict[int, list[int]] = defaultdict(list)  #: channel → parts of the open phase
        self.completed: defaultdict[int, list[int]] = defaultdict(list)  #: channel → the moves that completed phases

    def record(self, number: int, move: Move) -> None:
        """The next move of the schedule."""
        before = self.state
        result = make(self._program, before, move)
        after = self._after_landing(before.flights[move.who]) if move.kind == Kind.LAND else self._after_own(move.who)
        self._after.append(after)
        if move.kind == Kind.LAND:
            flight = before.flights[move.who]
            self._landed[flight.agent].append(number)
            if flight.writes:
                self._wrote.update(dict.fromkeys(range(flight.first, flight.end), number))
            self._signal(number, flight.barrier, result)
        else:
            self.latest[move.who] = number
            if move.kind == Kind.STEP:
                self._record_step(number, move.who, before, result)
            else:
                self._issue(number, move.who, before)
        self.state = result.state

    def open_phase(self, channel: int) -> set[int]:
        """What a channel has of its open phase, and the completion of the one before."""
        return {*self.parts[channel], *self.completed[channel][-1:]}

    def moves_before(self, ends: set[int]) -> frozenset[int]:
        """These moves, and everything that they come after."""
        found: set[int] = set()
        ahead = list(ends)
        while ahead:
            number = ahead.pop()
            if number not in found:
                found.add(number)
                ahead += self._after[number]
        return frozenset(found)

    def _after_own(self, agent: int) -> set[int]:
        return {self.latest[agent]} if agent in self.latest else set()

    def _after_landing(self, flight: Flight) -> set[int]:
        after = {self._issued[flight.agent, flight.pc]} if (flight.agent, flight.pc) in self._issued else set()
        return after | set(self._landed[flight.agent]) if flight.after else after

    def _issue(self, number: int, agent: int, before: State) -> None:
        self._issued[agent, before.pcs[agent]] = number

    def _record_step(self, number: int, agent: int, before: State, result: Step) -> None:
        pc = before.pcs[agent]
        op = self._program.code[agent][pc]
        self._issue(number, agent, before)
        code, after = op[0], self._after[number]
        if code in ACCESSES | ENGINE_ACCESSES:
            first, end = self._program.cells[operand(op, "access")]
            if code in READS_MEMORY:
                after |= {self._wrote[cell] for cell in range(first, end) if cell in self._wrote}
            elif code == Op.WRITE:
                self._wrote.update(dict.fromkeys(range(first, end), number))
        elif code in LIFE:
            after |= self.open_phase(operand(op, "barrier"))
            self.parts[operand(op, "barrier")] = []
            self.completed[operand(op, "barrier")].append(number)
        elif code in BLOCKING_WAITS:
            after |= set(self.completed[operand(op, "barrier")][-1:])
        elif code == Op.WAIT_GROUP:
            after |= set(self._landed[agent])
        else:
            self._on_channel(number, agent, before, result)

    def _on_channel(self, number: int, agent: int, before: State, result: Step) -> None:
        """A part of a phase of an mbarrier, a named barrier or the cluster barrier; or the way past one of the last."""
        op = self._program.code[agent][before.pcs[agent]]
        channel = meeting_channel(self._program, op)
        if channel >= 0:
            passes = op[0] == Op.CLUSTER_WAIT or bool(before.holds[agent])
            if passes:
                self._after[number] |= set(self.completed[channel][-1:])
                return
        elif op[0] in SIGNALS:
            channel = operand(op, "barrier")
        elif op[0] in TRIES:
            self._after[number] |= set(self.completed[operand(op, "barrier")][-1:])
            return
        else:
            return
        self._signal(number, channel, result)

    def _signal(self, number: int, channel: int, result: Step) -> None:
        """A part of the open phase of a channel, which may complete it."""
        if channel < 0:
            return
        self._after[number] |= set(self.completed[channel][-1:])
        if result.signalled == channel < own_channel(self._program, 0):
            self._after[number] |= set(self.parts[channel])
            self.completed[channel].append(number)
            self.parts[channel] = []
        else:
            self.parts[channel].append(number)
