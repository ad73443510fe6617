"""What a program leaves when it ends: unread data, and work of a CTA that is still under way when the CTA ends.

PTX says nothing of a CTA that has ended while its own transfers and commits are under way in its own memory and on its
own barriers: that is :data:`~pipesim.model.assumptions.Assumption.EXIT`, a finding where it may not be assumed. Of
another CTA's memory and barriers it does, and that is a fault of the machine. Both are looked for in one run, in which
nothing lands before an agent waits for it: what is under way when the last agent of a CTA ends is so in a schedule that
exists. Where one run represents every schedule, or every schedule has been followed to one end, the data is left in all
of them.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from pipesim.explain.lap_counters import transfer_word
from pipesim.findings.catalog import BY_NAME
from pipesim.model.assumptions import Assumption
from pipesim.model.coverage import Assumed
from pipesim.model.finding import Advisory, Fault, FaultKind
from pipesim.model.groups import READS_MEMORY
from pipesim.model.machine import Flight, exited, finished, own_channel
from pipesim.model.moves import Kind, Move, can_land, first_to_land, held_up
from pipesim.model.ops import Op, Operation, Space, operand
from pipesim.model.positions import ENGINE
from pipesim.model.program import Program
from pipesim.model.state import State
from pipesim.prove.counterexample.play import Play
from pipesim.prove.refutation import Schedule

_LOOKED_AFTER = frozenset({Space.SHARED, Space.TENSOR})  #: memory that is gone when the CTA has ended


class LeftKind(Enum):
    """What is left. The value is the name of the warning, or of the finding."""

    UNREAD = "unread_data"
    UNDER_WAY = "under_way_at_exit"


class Leftover(NamedTuple):
    """One operation that leaves something, and the access it is left in; -1 of an arrival on ``barrier``."""

    what: LeftKind
    agent: int
    pc: int
    access: int
    barrier: int = -1


class LeftAtEnd(NamedTuple):
    """What is left at the end, in the order of agents and operations, and the schedule that ends so."""

    found: tuple[Leftover, ...]
    schedule: Schedule


_NOTHING = LeftAtEnd((), ())


def left_at_end(program: Program) -> LeftAtEnd:
    """What one run leaves; nothing of a run that fails or was cut."""
    if program.cut:
        return _NOTHING
    unread: dict[int, tuple[int, int, int]] = {}
    found: set[Leftover] = set()
    running = set(range(program.ctas))
    play = Play(program)
    while not play.ended:
        moved = False
        for agent in range(len(program.agents)):
            while not finished(program, play.state, agent):
                pc = play.state.pcs[agent]
                if not play.advance(agent):
                    break
                if play.faults:
                    return _NOTHING
                moved = True
                if play.state.pcs[agent] != pc:
                    _note(program, agent, pc, unread)
            cta = program.agents[agent].cta
            if cta in running and exited(program, play.state, cta):
                running.remove(cta)
                found |= {_under_way(program, flight) for flight in play.state.flights if _stays(program, flight, cta)}
        if not moved and not _land(program, play):
            return _NOTHING
        if play.faults:
            return _NOTHING
    found |= {Leftover(LeftKind.UNREAD, *left) for left in unread.values()}
    ordered = sorted(found, key=lambda left: (left.agent, left.pc, left.what.name, left.barrier))
    return LeftAtEnd(tuple(ordered), tuple(play.moves))


def leftovers(program: Program) -> tuple[Leftover, ...]:
    """What is left at the end, without the schedule."""
    return left_at_end(program).found


def advisories(program: Program, found: tuple[Leftover, ...]) -> tuple[Advisory, ...]:
    """The warnings in words, one for each source line, the first operation of it named."""
    note = BY_NAME[LeftKind.UNREAD.value].note
    return tuple(
        Advisory(role, note.format(role=role, place=_unread(program, left)), line, left.what.value)
        for (role, line), left in _by_line(program, found, LeftKind.UNREAD).items()
    )


def _unread(program: Program, left: Leftover) -> str:
    """The tile and slot, with the item and the mbarrier that counts its bytes."""
    op = program.code[left.agent][left.pc]
    counted = program.landings(op) if op[0] == Op.TMA_LOAD else []
    bars = [f", counted by {program.barrier_name(bar)}" for bar, access in counted if access == left.access]
    return f"{program.access_name(left.access)} (item {operand(op, 'item')}{''.join(bars[:1])})"


def assumed_at_exit(program: Program, found: tuple[Leftover, ...]) -> tuple[Assumed, ...]:
    """What is assumed of the work under way when its CTA ends, one for each source line."""
    return tuple(
        Assumed(Assumption.EXIT, f"{role}: {work_at_exit(program, left)}", (line,))
        for (role, line), left in _by_line(program, found, LeftKind.UNDER_WAY).items()
    )


def exit_faults(program: Program) -> tuple[tuple[Fault, ...], Schedule]:
    """The same as faults, where nothing may be assumed of it, and the schedule at whose end they are seen."""
    found, schedule = left_at_end(program)
    by_line = _by_line(program, found, LeftKind.UNDER_WAY).values()
    return tuple(Fault(FaultKind.UNDER_WAY_AT_EXIT, left.agent, left.pc, left.barrier) for left in by_line), schedule


def work_at_exit(program: Program, left: Leftover) -> str:
    """``a store from out[0]``."""
    op = program.code[left.agent][left.pc]
    if left.barrier >= 0:
        word = "an arrival of cp.async" if op[0] == Op.CP_ASYNC_ARRIVE else "a commit"
        return f"{word} on {program.barrier_name(left.barrier)}"
    word = transfer_word(op)
    return f"{'an' if word == 'MMA' else 'a'} {word} {'from' if op[0] in READS_MEMORY else 'into'} " + (
        program.access_name(left.access)
    )


def _by_line(program: Program, found: tuple[Leftover, ...], what: LeftKind) -> dict[tuple[str, str], Leftover]:
    """The first of each role and source line."""
    said: dict[tuple[str, str], Leftover] = {}
    for left in found:
        if left.what is what:
            said.setdefault((program.agents[left.agent].role, program.line(left.agent, left.pc)), left)
    return said


def _stays(program: Program, flight: Flight, cta: int) -> bool:
    """Whether this work of the CTA touches the CTA's own memory or barriers; what reaches into another is a fault."""
    if program.agents[flight.agent].cta != cta:
        return False
    if flight.first == flight.end:
        return program.barriers[flight.barrier].cta == cta
    access = program.accesses[_first(program, flight.agent, flight.pc)]
    return access.space in _LOOKED_AFTER and program.cell_ctas[flight.first] == cta


def _under_way(program: Program, flight: Flight) -> Leftover:
    if flight.first == flight.end:
        return Leftover(LeftKind.UNDER_WAY, flight.agent, flight.pc, -1, flight.barrier)
    return Leftover(LeftKind.UNDER_WAY, flight.agent, flight.pc, _first(program, flight.agent, flight.pc))


def _note(program: Program, agent: int, pc: int, unread: dict[int, tuple[int, int, int]]) -> None:
    """What the operation just carried out, or what it put under way, reads and writes."""
    op: Operation = program.code[agent][pc]
    for access in program.accesses_of(op):
        if program.accesses[access].space not in _LOOKED_AFTER:
            continue
        for cell in range(*program.cells[access]):
            if op[0] in READS_MEMORY:
                unread.pop(cell, None)
            else:
                unread[cell] = (agent, pc, access)


def _first(program: Program, agent: int, pc: int) -> int:
    return program.accesses_of(program.code[agent][pc])[0]


class _WaitTargets(NamedTuple):
    """Who waits for what: barriers, and groups of an agent on an engine (of which TMA's number is -1)."""

    barriers: dict[int, list[int]]
    groups: dict[tuple[int, int], list[int]]

    def served_by(self, flight: Flight) -> list[int]:
        """The agents that wait for the barrier or the group of a flight."""
        return self.barriers.get(flight.barrier) or self.groups.get((flight.agent, flight.engine)) or []


def _land(program: Program, play: Play) -> bool:
    """Let what agents wait for land until one of them can move; another transfer only if there is none such."""
    wanted, landed = _wait_targets(program, play), False
    while (found := _next_to_land(program, play.state, wanted)) is not None:
        place, flight = found
        waiting = wanted.served_by(flight)
        if landed and not waiting:
            break
        play.make(Move(Kind.LAND, place, flight.remaining))
        landed = True
        if play.faults or not waiting or any(held_up(program, play.state, agent) is None for agent in waiting):
            break
    return landed


def _next_to_land(program: Program, state: State, wanted: _WaitTargets) -> tuple[int, Flight] | None:
    """A flight that an agent waits for, else one that such a flight has to follow, else any; with its place."""
    served = [entry for entry in enumerate(state.flights) if wanted.served_by(entry[1])]
    for place, flight in served:
        if can_land(program, state, flight):
            return place, flight
    for _, flight in served:
        first = first_to_land(program, state, flight)
        return state.flights.index(first), first
    return next((entry for entry in enumerate(state.flights) if can_land(program, state, entry[1])), None)


def _wait_targets(program: Program, play: Play) -> _WaitTargets:
    """What the agents that are blocked wait for."""
    own = own_channel(program, 0)
    wanted = _WaitTargets({}, {})
    for agent, code in enumerate(program.code):
        stopped = held_up(program, play.state, agent)
        if stopped is None:
            continue
        blocked = stopped.blocked
        op = code[play.state.pcs[agent]]
        if blocked >= own and op[0] == Op.WAIT_GROUP:
            wanted.groups.setdefault((blocked - own, op[ENGINE]), []).append(agent)
        elif 0 <= blocked < len(program.barriers):
            wanted.barriers.setdefault(blocked, []).append(agent)
    return wanted
