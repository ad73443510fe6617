"""What a program leaves when it ends: unread data, and transfers and commits that may still be under way.

None of it breaks a rule that PTX states, so all are warnings: PTX says nothing of a CTA that has ended while its own
transfers and commits are under way. Of another CTA's memory and barriers it does, and that is a fault. They are looked
for in one run, in which nothing lands before an agent waits for it: what is still under way when the last agent ends is
so in a schedule that exists. Where one run represents every schedule, or every schedule has been followed to one end,
the data is left in all of them.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from pipesim.findings.catalog import BY_NAME
from pipesim.model.finding import Advisory
from pipesim.model.groups import READS_MEMORY
from pipesim.model.machine import Flight, finished, own_channel
from pipesim.model.moves import Kind, Move, first_to_land, held_up, landing_flights
from pipesim.model.ops import Op, Operation, Space, operand
from pipesim.model.positions import ENGINE
from pipesim.model.program import Program
from pipesim.prove.counterexample.play import Play

_LOOKED_AFTER = frozenset({Space.SHARED, Space.TENSOR})  #: memory that is gone when the CTA has ended


class LeftKind(Enum):
    """What is left. The value is the name of the warning."""

    UNREAD = "unread_data"
    IN_FLIGHT = "transfer_in_flight"
    COMMIT = "commit_after_exit"
    CP_ASYNC = "cp_async_after_exit"


class Leftover(NamedTuple):
    """One operation that leaves something, and the access it is left in; of a delayed arrival the barrier."""

    what: LeftKind
    agent: int
    pc: int
    access: int


def leftovers(program: Program) -> tuple[Leftover, ...]:
    """What is left at the end, in the order of agents and operations; nothing of a run that fails or was cut."""
    if program.cut:
        return ()
    unread: dict[int, tuple[int, int, int]] = {}
    play = Play(program)
    while not play.ended:
        moved = False
        for agent in range(len(program.agents)):
            while not finished(program, play.state, agent):
                pc = play.state.pcs[agent]
                if not play.advance(agent):
                    break
                if play.faults:
                    return ()
                moved = True
                if play.state.pcs[agent] != pc:
                    _note(program, agent, pc, unread)
        if not moved and not _land(program, play):
            return ()
        if play.faults:
            return ()
    flying = [(f.agent, f.pc) for f in play.state.flights if f.first < f.end]
    found = {Leftover(LeftKind.IN_FLIGHT, *who, _first(program, *who)) for who in flying}
    found |= {Leftover(_arrival(program, f), f.agent, f.pc, f.barrier) for f in play.state.flights if f.first == f.end}
    found |= {Leftover(LeftKind.UNREAD, *left) for left in unread.values()}
    return tuple(sorted(found, key=lambda left: (left.agent, left.pc, left.what.name)))


def advisories(program: Program, found: tuple[Leftover, ...]) -> tuple[Advisory, ...]:
    """The warnings in words, one for each source line, the first operation of it named."""
    said: dict[tuple[LeftKind, str, str], Leftover] = {}
    for left in found:
        role, line = program.agents[left.agent].role, program.line(left.agent, left.pc)
        said.setdefault((left.what, role, line), left)
    return tuple(
        Advisory(role, BY_NAME[what.value].note.format(role=role, place=_place(program, left)), line, what.value)
        for (what, role, line), left in said.items()
    )


def _place(program: Program, left: Leftover) -> str:
    """The tile and slot, of unread data with its item and the mbarrier that counts its bytes; or the barrier."""
    if left.what not in (LeftKind.UNREAD, LeftKind.IN_FLIGHT):
        return program.barrier_name(left.access)
    op, place = program.code[left.agent][left.pc], program.access_name(left.access)
    if left.what is LeftKind.IN_FLIGHT:
        return place
    counted = program.landings(op) if op[0] == Op.TMA_LOAD else []
    bars = [f", counted by {program.barrier_name(bar)}" for bar, access in counted if access == left.access]
    return f"{place} (item {operand(op, 'item')}{''.join(bars[:1])})"


def _arrival(program: Program, flight: Flight) -> LeftKind:
    """What an arrival under way is: a commit's, or one of cp.async."""
    return LeftKind.CP_ASYNC if program.code[flight.agent][flight.pc][0] == Op.CP_ASYNC_ARRIVE else LeftKind.COMMIT


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
    """What agents wait for: barriers, and groups of an agent on an engine (of which TMA's number is -1)."""

    barriers: frozenset[int]
    groups: frozenset[tuple[int, int]]


def _land(program: Program, play: Play) -> bool:
    """Let one transfer land: one that an agent waits for, if there is one."""
    wanted = _wait_targets(program, play)
    able = landing_flights(play.state)
    if not able:
        return False
    place, flight = min(able, key=lambda entry: (not _serves(play, entry[1], wanted), entry[0]))
    play.make(Move(Kind.LAND, place, flight.remaining))
    return True


def _wait_targets(program: Program, play: Play) -> _WaitTargets:
    """What the agents that are blocked wait for."""
    own = own_channel(program, 0)
    barriers, groups = set(), set()
    for agent, code in enumerate(program.code):
        stopped = held_up(program, play.state, agent)
        if stopped is None:
            continue
        blocked = stopped.blocked
        op = code[play.state.pcs[agent]]
        if blocked >= own and op[0] == Op.WAIT_GROUP:
            groups.add((blocked - own, op[ENGINE]))
        elif 0 <= blocked < len(program.barriers):
            barriers.add(blocked)
    return _WaitTargets(frozenset(barriers), frozenset(groups))


def _serves(play: Play, flight: Flight, wanted: _WaitTargets) -> bool:
    """True if an agent waits for its barrier, for its group, or for a flight that has to land after it."""
    if flight.barrier in wanted.barriers or (flight.agent, flight.engine) in wanted.groups:
        return True
    return any(f.barrier in wanted.barriers and first_to_land(play.state, f) == flight for f in play.state.flights)
