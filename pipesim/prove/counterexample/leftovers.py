"""What a program leaves when it ends: unread data, and work of a CTA that is still under way when the CTA ends.

PTX says nothing of a CTA that has ended while its own transfers and commits are under way in its own memory and on its
own barriers: that is :data:`~pipesim.model.coverage.Assumption.EXIT`, a finding where it may not be assumed. Of
another CTA's memory and barriers it does, and that is a fault of the machine. Both are looked for in one run, in which
nothing lands before an agent waits for it: what is under way when the last agent of a CTA ends is so in a schedule that
exists. Of several CTAs one may wait for what another has under way, which then lands before the other ends, though it
need not: for each such CTA there is one more run, in which its work lands only for its own agents or when nothing else
can move. Where one run represents every schedule, or every schedule has been followed to one end, the data is left in
all of them.

A delivery is unread if its bytes, or some of them, are in memory at the end and no agent has read them since, or if the
copy of a later phase has overwritten them before any did. What threads and tensor cores write again before it is read
is forgotten: they may add to it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from pipesim.explain.lap_counters import transfer_word
from pipesim.findings.catalog import BY_NAME
from pipesim.model.coverage import Assumed, Assumption
from pipesim.model.finding import Advisory, Fault, FaultKind
from pipesim.model.groups import ENGINE, IN_FLIGHT, READS_MEMORY, WRITES_MEMORY
from pipesim.model.machine import Flight, exited, finished, own_channel
from pipesim.model.moves import Kind, Move, can_land, first_to_land, held_up
from pipesim.model.ops import Engine, Op, Operation, Space, operand
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
    """One operation that leaves something, and the access it is left in; -1 of an arrival on ``barrier``.

    ``first`` and ``nbytes``: where in the access what no agent reads begins, and how much it is; all of it if both are
    0.
    """

    what: LeftKind
    agent: int
    pc: int
    access: int
    barrier: int = -1
    first: int = 0
    nbytes: int = 0


@dataclass(slots=True)
class _Delivered:
    """What one operation has put into one access: in which phase, (-1, -1) if none counts it; who has read of it."""

    at: tuple[int, int, int]
    phase: tuple[int, int]
    replaceable: bool  # by another write: threads and tensor cores may add to what is there
    lost: list[int] = field(default_factory=list)  # cells that a later copy overwrote unread
    was_read: bool = False


class _Run(NamedTuple):
    """What one run leaves; of the CTAs ``early`` something has landed that only agents of others waited for."""

    found: set[Leftover]
    early: set[int]
    schedule: Schedule


_NOTHING = _Run(set(), set(), ())


def left_at_end(program: Program) -> Mapping[Leftover, Schedule]:
    """What is left, in the order of agents and operations, each with a schedule that ends so; nothing of a run that
    fails or was cut.
    """
    delivers = program.accesses or any(op[0] in IN_FLIGHT for code in program.code for op in code)
    if program.cut or not delivers:
        return {}
    run = _run(program)
    found = dict.fromkeys(run.found, run.schedule)
    for cta in sorted(run.early):
        more = _run(program, late=cta)
        found |= {left: more.schedule for left in more.found - set(found) if left.what is LeftKind.UNDER_WAY}
    return dict(sorted(found.items(), key=lambda each: (*each[0][1:3], each[0].what.name, each[0].barrier)))


def bytes_left(program: Program) -> int | None:
    """How many bytes no agent reads, also where a rule is broken that lets the hardware continue; None of a hang.

    Of a kernel those of deliveries of which nothing is read: where accesses race, a read was seen of the bytes alone
    that no other one had overwritten.
    """
    run, whole = _run(program, passes=lambda fault: not fault.kind.traps), bool(program.coverage.extracted)
    left = (each for each in run.found if each.what is LeftKind.UNREAD and not (whole and each.nbytes))
    return sum(each.nbytes or program.accesses[each.access].nbytes for each in left) if run is not _NOTHING else None


def _run(program: Program, late: int = -1, passes: Callable[[Fault], bool] = lambda _: False) -> _Run:
    """One run to its end. ``late``: the CTA whose own work lands last; ``passes``: the faults that do not end it."""
    unread: dict[int, _Delivered] = {}  # by cell
    made: list[_Delivered] = []
    found: set[Leftover] = set()
    running, early = set(range(program.ctas)), set[int]()
    play = Play(program, passes=passes)
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
                    made += _note(program, play.state, (agent, pc), unread)
            cta = program.agents[agent].cta
            if cta in running and exited(program, play.state, cta):
                running.remove(cta)
                found |= {_under_way(program, flight) for flight in play.state.flights if _stays(program, flight, cta)}
        if not moved and not _land(program, play, late, early):
            return _NOTHING
        if play.faults:
            return _NOTHING
    for cell, left in unread.items():
        left.lost.append(cell)
    found |= _unread_of(program, [left for left in made if left.lost])
    return _Run(found, early, tuple(play.moves))


def leftovers(program: Program) -> tuple[Leftover, ...]:
    """What is left at the end, without the schedule."""
    return tuple(left_at_end(program))


def advisories(program: Program, found: tuple[Leftover, ...]) -> tuple[Advisory, ...]:
    """The warnings in words: for each source line one of what no agent reads, one of what is read in part; the
    first operation named.
    """
    note = BY_NAME[LeftKind.UNREAD.value].note
    left = [each for each in found if each.what is LeftKind.UNREAD]
    of_line = Counter((*_place(program, each), each.nbytes > 0) for each in left)
    delivered = _delivered(program) if of_line else {}
    said: dict[tuple[str, str, bool], Advisory] = {}
    for each in left:
        role, line = _place(program, each)
        key = role, line, each.nbytes > 0
        if key not in said:
            what = _unread(program, each, of_line[key], delivered[role, line])
            said[key] = Advisory(role, note.format(role=role, place=what), line, each.what.value)
    return tuple(said.values())


def _delivered(program: Program) -> Counter[tuple[str, str]]:
    """How much the operations of each role and line deliver."""
    return Counter(
        (program.agents[agent].role, program.line(agent, pc))
        for agent, code in enumerate(program.code)
        for pc, op in enumerate(code)
        if op[0] in WRITES_MEMORY
        for _ in program.accesses_of(op)
    )


def _place(program: Program, left: Leftover) -> tuple[str, str]:
    return program.agents[left.agent].role, program.line(left.agent, left.pc)


def _unread(program: Program, left: Leftover, alike: int, of: int) -> str:
    """The tile and slot, with the item and the mbarrier that counts its bytes; how much of it, and of how many."""
    op = program.code[left.agent][left.pc]
    counted = program.landings(op) if op[0] == Op.TMA_LOAD else []
    bars = [f", counted by {program.barrier_name(bar)}" for bar, access in counted if access == left.access]
    what = f"{program.access_name(left.access)} (item {operand(op, 'item')}{''.join(bars[:1])})"
    if left.nbytes:
        size = program.accesses[left.access].nbytes
        what += f" of which no agent reads {left.nbytes:,} of {size:,} bytes, from byte {left.first:,} on"
    else:
        what += ", unread"
    return what + (f": {alike:,} of {of:,} deliveries" if of > 1 else "")


def assumed_at_exit(program: Program, found: tuple[Leftover, ...]) -> tuple[Assumed, ...]:
    """What is assumed of the work under way when its CTA ends, one for each source line."""
    return tuple(
        Assumed(Assumption.EXIT, f"{role}: {work_at_exit(program, left)}", (line,))
        for (role, line), left in _by_line(program, found).items()
    )


def exit_faults(program: Program) -> tuple[tuple[Fault, ...], Schedule]:
    """The same as faults, where nothing may be assumed of it, and the schedule at whose end the first is seen."""
    found = left_at_end(program)
    by_line = list(_by_line(program, tuple(found)).values())
    faults = tuple(Fault(FaultKind.UNDER_WAY_AT_EXIT, left.agent, left.pc, left.barrier) for left in by_line)
    return faults, found[by_line[0]] if by_line else ()


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


def _by_line(program: Program, found: tuple[Leftover, ...]) -> dict[tuple[str, str], Leftover]:
    """The work under way: the first of each role and source line."""
    said: dict[tuple[str, str], Leftover] = {}
    for left in found:
        if left.what is LeftKind.UNDER_WAY:
            said.setdefault(_place(program, left), left)
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


def _note(program: Program, state: State, at: tuple[int, int], unread: dict[int, _Delivered]) -> list[_Delivered]:
    """What the operation just carried out, or what it put under way, reads and writes; what it delivers."""
    agent, pc = at
    op: Operation = program.code[agent][pc]
    if op[0] in READS_MEMORY:
        for cell in range(*program.cells[operand(op, "access")]):
            held = unread.pop(cell, None)
            if held is not None:
                held.was_read = True
        return []
    if _releases(program.code[agent], pc):  # no data: what was there is gone
        for access in program.accesses_of(op):
            for cell in range(*program.cells[access]):
                unread.pop(cell, None)
        return []
    return [
        _deliver(program, (agent, pc, access), phase, unread)
        for access, phase in _deliveries(program, state, op)
        if program.accesses[access].space in _LOOKED_AFTER
    ]


def _releases(code: Sequence[Operation], pc: int) -> bool:
    """Whether a write is that of an allocation or a release of tensor memory, which alone is complete immediately."""
    if code[pc][0] != Op.TRANSFER_WRITE:
        return False
    after = next((code[n] for n in range(pc, len(code)) if code[n][0] != Op.TRANSFER_WRITE), code[pc])
    return after[0] == Op.COMMIT and after[ENGINE] == Engine.TCGEN05 and operand(after, "barrier") < 0


def _deliveries(program: Program, state: State, op: Operation) -> list[tuple[int, tuple[int, int]]]:
    """The accesses that an operation writes, each with the phase that counts the bytes."""
    if op[0] == Op.TMA_LOAD:
        return [(access, (barrier, state.barriers[barrier].done)) for barrier, access in program.landings(op)]
    return [(access, (-1, -1)) for access in program.accesses_of(op)]


def _deliver(
    program: Program, at: tuple[int, int, int], phase: tuple[int, int], unread: dict[int, _Delivered]
) -> _Delivered:
    op = program.code[at[0]][at[1]]
    made = _Delivered(at, phase, op[0] == Op.WRITE or program.accesses[at[2]].space != Space.SHARED)
    for cell in range(*program.cells[at[2]]):
        held = unread.get(cell)
        if held is not None and not (held.replaceable or made.replaceable) and (held.phase != phase or phase[0] < 0):
            held.lost.append(cell)
        elif held is not None and made.replaceable:
            held.was_read = True  # perhaps: it may be an atomic
        unread[cell] = made
    return made


def _unread_of(program: Program, left: list[_Delivered]) -> set[Leftover]:
    """Each delivery with the bytes that no agent reads."""
    if not left:
        return set()
    bounds = program.cell_bounds
    found = set()
    for each in left:
        part = (0, 0)
        if each.was_read:
            nbytes = sum(bounds[cell + 1] - bounds[cell] for cell in each.lost)
            part = bounds[min(each.lost)] - program.accesses[each.at[2]].offset, nbytes
        found.add(Leftover(LeftKind.UNREAD, *each.at, -1, *part))
    return found


def _first(program: Program, agent: int, pc: int) -> int:
    return program.accesses_of(program.code[agent][pc])[0]


class _WaitTargets(NamedTuple):
    """Who waits for what: barriers, and groups of an agent on an engine (of which TMA's number is -1)."""

    barriers: dict[int, list[int]]
    groups: dict[tuple[int, int], list[int]]

    def served_by(self, flight: Flight) -> list[int]:
        """The agents that wait for the barrier or the group of a flight. An arrival of a commit is in none."""
        group = self.groups.get((flight.agent, flight.engine)) if flight.group >= 0 else None
        return self.barriers.get(flight.barrier) or group or []


def _land(program: Program, play: Play, late: int, early: set[int]) -> bool:
    """Let what agents wait for land until one of them can move; another transfer only if there is none such. To
    ``early`` are added the CTAs of work that lands in its own CTA for agents of others.
    """
    wanted, landed = _wait_targets(program, play), False
    while (found := _next_to_land(program, play.state, wanted, late)) is not None:
        place, flight, served = found
        waiting = wanted.served_by(flight)
        if landed and not waiting:
            break
        if _is_for_others(program, wanted, program.agents[flight.agent].cta, flight, served):
            early.add(program.agents[flight.agent].cta)
        play.make(Move(Kind.LAND, place, flight.remaining))
        landed = True
        if play.faults or not waiting or any(held_up(program, play.state, agent) is None for agent in waiting):
            break
    return landed


def _is_for_others(program: Program, wanted: _WaitTargets, cta: int, flight: Flight, served: Flight) -> bool:
    """Whether a flight stays in this CTA, and no agent of the CTA waits for ``served``, for which it lands."""
    waiting = wanted.served_by(served)
    return (
        program.ctas > 1
        and _stays(program, flight, cta)
        and not any(program.agents[agent].cta == cta for agent in waiting)
    )


def _next_to_land(program: Program, state: State, wanted: _WaitTargets, late: int) -> tuple[int, Flight, Flight] | None:
    """A flight that an agent waits for, else one that such a flight has to follow, else any: with its place, and for
    which it lands. Of the CTA ``late`` only if there is no other.
    """
    second: tuple[Flight, Flight] | None = None
    for landing, served in _able_to_land(program, state, wanted):
        if late < 0 or not _is_for_others(program, wanted, late, landing, served):
            return state.flights.index(landing), landing, served
        second = second or (landing, served)
    return None if second is None else (state.flights.index(second[0]), *second)


def _able_to_land(program: Program, state: State, wanted: _WaitTargets) -> Iterator[tuple[Flight, Flight]]:
    """The flights that can land, those first that agents wait for; each with the one for which it lands."""
    served = [flight for flight in state.flights if wanted.served_by(flight)]
    yield from ((flight, flight) for flight in served if can_land(program, state, flight))
    yield from ((first_to_land(program, state, flight), flight) for flight in served)
    yield from ((flight, flight) for flight in state.flights if can_land(program, state, flight))


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
