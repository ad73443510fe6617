"""What may happen next in a state, whoever decides: an agent moves, an access opens, a try fails, bytes land.

This is the only file that says so. Drivers of the machine ask here, for every move or only whether one flight can land
or one access opens, and choose: the search takes every move everywhere, a schedule is a list of moves, the simulation
decides by time, the replay by records, the random schedule draws. Those that follow one agent carry out its step and
look whether it was blocked. What a move does is the machine's business.
"""

from collections.abc import Sequence
from enum import IntEnum
from operator import attrgetter
from typing import NamedTuple, Self

from pipesim.model import barrier as mbarrier
from pipesim.model.finding import Fault
from pipesim.model.groups import ACCESSES, BARRIER, COMMIT_BARRIER, CP_ASYNC_LANES, ENGINE, PARITY, TESTED_TOKEN, TRIES
from pipesim.model.machine import (
    TMA,
    Flight,
    Observer,
    State,
    Step,
    begin,
    finished,
    initial_state,
    land,
    step,
    with_answer,
)
from pipesim.model.ops import IN_ORDER, Engine, Op, Operation
from pipesim.model.program import Program
from pipesim.model.rules.sync import WARP
from pipesim.model.state import OWN, Readable, new

#: Bytes in which a bulk copy lands on hardware: its parts are multiples of this (measured: docs/hopper.md).
PIECE = 16

_BY_ISSUE = attrgetter("agent", "engine", "sequence", "pc", "first")


class Kind(IntEnum):
    """What a move is."""

    STEP = 0  #: the agent carries out its next operation
    OPEN = 1  #: the agent's next operation, a read or write, begins; its step ends it
    FAIL = 2  #: the agent's next operation, a try, says no although the phase is complete (PTX allows it)
    LAND = 3  #: bytes of a transfer arrive, or the arrival it represents


class Move(NamedTuple):
    """One move: of an agent, or of the flight at this place of the canonical state.

    ``nbytes`` of a landing; everything that remains if it is as much.
    """

    kind: Kind
    who: int
    nbytes: int = 0


def canonical(state: State) -> State:
    """The same state without its memory of the order in which agents issued: equal futures are equal states."""
    if not state.flights:
        return state if not state.issued else state._replace(issued=0)
    flights = sorted(state.flights, key=_BY_ISSUE)
    renumbered = tuple([_with_number(f, n) for n, f in enumerate(flights, start=1)])
    return state._replace(flights=renumbered, issued=len(renumbered))


def _with_number(flight: Flight, number: int) -> Flight:
    """The flight with this place in the order of issue."""
    after = number if flight.after else 0
    if flight.sequence == number and flight.after == after:
        return flight
    return new(Flight, (*flight[:-2], after, number))


def _canonical_after(before: State, after: State) -> State:
    """The canonical form of what a move leads to from a canonical state: most moves leave the flights alone."""
    if after.flights is before.flights and after.issued == before.issued:
        return after
    return canonical(after)


def moves(program: Program, state: State) -> list[Move]:
    """Every move that is possible in a canonical state, agents first, then flights."""
    found = [move for agent in range(len(program.code)) for move, _ in of_agent(program, state, agent)]
    return found + [move for place in range(len(state.flights)) for move, _ in of_flight(program, state, place)]


def of_agent(program: Program, state: State, agent: int) -> list[tuple[Move, Step]]:
    """Every move of one agent and what it leads to, in a state that need not be canonical."""
    if finished(program, state, agent):
        return []
    if opens(program, state, agent):
        return [(Move(Kind.OPEN, agent), begin(program, state, agent))]
    result = step(program, state, agent)
    if _nothing_happened(state, result):
        return []
    found = [(Move(Kind.STEP, agent), result)]
    pc = state.pcs[agent]
    if program.code[agent][pc][0] in TRIES:
        refused = fail_try(program, result.state, agent, pc)
        if refused != result.state:
            found.append((Move(Kind.FAIL, agent), result._replace(state=refused)))
    return found


def stepped(program: Program, state: State, agent: int) -> Step | None:
    """The step of an agent that has not ended and whose access, if its next operation is one, has begun; None if it is
    blocked.
    """
    result = step(program, state, agent)
    if _nothing_happened(state, result):
        return None
    after = _canonical_after(state, result.state)
    return result if after is result.state else result._replace(state=after)


def of_flight(program: Program, state: State, place: int) -> list[tuple[Move, Step]]:
    """Every landing of the flight at this place of a canonical state, and what it leads to."""
    flight = state.flights[place]
    if not can_land(program, state, flight):
        return []
    return [(Move(Kind.LAND, place, part), land(program, state, flight, part)) for part in landing_sizes(state, flight)]


def opens(program: Program, state: State, agent: int) -> bool:
    """True if the next operation of the agent, which has not ended, is a read or write that has not begun.

    Where it takes time, its OPEN comes first and its STEP ends it. Carried out as one move, one STEP is both.
    """
    if program.code[agent][state.pcs[agent]][0] not in ACCESSES:
        return False
    for flight in state.flights:  # noqa: SIM110  # hot: a loop costs less than a generator
        if flight.engine == OWN and flight.agent == agent:
            return False
    return True


def held_up(program: Program, state: State, agent: int) -> Step | None:
    """The step of an agent that cannot move, with the channel on which it is blocked; None if it can, or has ended.

    An agent that is yet to arrive at the named barrier where it will wait can move.
    """
    if finished(program, state, agent):
        return None
    result = step(program, state, agent)
    return result if _nothing_happened(state, result) else None


def _nothing_happened(before: State, result: Step) -> bool:
    return result.blocked >= 0 and result.state is before


def finds(program: Program, state: Readable, agent: int, pc: int) -> bool:
    """What the try at ``pc`` finds on a usable barrier: whether the phase that it asks for is complete."""
    op = program.code[agent][pc]
    word = state.barriers[op[BARRIER]]
    if op[0] == Op.TEST_STATE:
        return mbarrier.token_passes(word, state.registers[agent][op[TESTED_TOKEN]])[0]
    return mbarrier.passes(word, op[PARITY])


def fail_try(program: Program, state: State, agent: int, pc: int) -> State:
    """The state in which the try at ``pc``, just executed, has said no: PTX allows that whatever it found."""
    return with_answer(program, state, agent, pc, 0)


def can_land(program: Program, state: Readable, flight: Flight) -> bool:
    """True if nothing that this flight must follow is still under way.

    A commit follows the work that its agent issued on the engine before it, and on an engine that works in order so
    does all other work. PTX says after which work each commit arrives, and keeps no order between two of them (tcgen05,
    "Pipelined instructions"): that they arrive in the order of their issue is assumed (``Program.commits_in_order``).
    The arrivals of one multicast commit are not ordered.
    """
    if flight.after == 0 and flight.engine not in IN_ORDER:
        return flight.engine != OWN  # an agent's own access ends when its operation is carried out
    agent, engine, issued = flight.agent, flight.engine, flight.sequence
    for other in state.flights:  # hot: most are of another agent or engine
        mine = other.agent == agent and other.engine == engine
        if mine and other.sequence < issued and lands_after(program, flight, other):
            return False
    return True


def lands_after(program: Program, flight: Flight, other: Flight) -> bool:
    """True if the flight must land after the other, which its agent has issued before on the same engine."""
    if other.after == 0:
        return flight.after > 0 or flight.engine in IN_ORDER
    made = (other.pc, other.arrivals), (flight.pc, flight.arrivals)
    return flight.after > 0 and arrive_in_order(program, flight.engine, *made)


def arrive_in_order(program: Program, engine: int, one: tuple[int, int], other: tuple[int, int]) -> bool:
    """True if two arrivals of one agent's commits on an engine keep the order of their issue.

    Each is given with its operation and how many arrivals it is. Of ``cp.async`` each lane is a thread that arrives:
    what some lanes commit need not be what others do.
    """
    if one[0] == other[0] or not program.commits_in_order:
        return False
    return engine != Engine.CP_ASYNC or one[1] == other[1] == WARP


Committer = tuple[int, int]  #: an agent and an engine


def committer(agent: int, op: Operation) -> Committer | None:
    """Whose commits the arrivals of this operation follow, where they keep their order; None: of no agent."""
    if op[0] == Op.CP_ASYNC_ARRIVE:
        return (agent, Engine.CP_ASYNC) if op[CP_ASYNC_LANES] == WARP else None
    return (agent, op[ENGINE]) if op[COMMIT_BARRIER] >= 0 and op[ENGINE] != Engine.CP_ASYNC else None


def landing_flights(program: Program, state: State) -> list[tuple[int, Flight]]:
    """The flights of which bytes may land now, each with its place in the state."""
    return [(place, flight) for place, flight in enumerate(state.flights) if can_land(program, state, flight)]


def first_to_land(program: Program, state: State, flight: Flight) -> Flight:
    """The flight itself if it can land, else the first of those that it must follow."""
    if can_land(program, state, flight):
        return flight
    mine = (f for f in state.flights if f.agent == flight.agent and f.engine == flight.engine)
    earlier = (f for f in mine if f.sequence < flight.sequence and lands_after(program, flight, f))
    return next(f for f in earlier if can_land(program, state, f))


def landing_sizes(state: State, flight: Flight, granularity: int = 0) -> tuple[int, ...]:
    """How many bytes of a flight that can land may land in one move, the fewest first; the last is all that remain.

    Only a TMA load lands in parts: hardware counts its bytes on the barrier as they arrive. A part matters to others
    only if it completes a phase before the last byte, so with ``granularity`` 0, which suffices for a proof, there is
    at most one: what the barrier's tx-count lacks. With ``granularity`` its multiples are there, too (:data:`PIECE`).
    """
    remaining = flight.remaining
    if flight.engine != TMA or flight.barrier < 0:
        return (remaining,)
    due = state.barriers[flight.barrier].tx
    parts = range(granularity, remaining, granularity) if granularity else ()
    if not 0 < due < remaining:
        return (*parts, remaining)
    return (*parts, remaining) if due in parts else (*sorted((*parts, due)), remaining)


def completing_size(state: State, flight: Flight) -> int:
    """The part of a flight that completes its barrier's phase while bytes of it remain, 0 if there is none."""
    if flight.engine != TMA or flight.barrier < 0:
        return 0
    word = state.barriers[flight.barrier]
    return word.tx if word.pending == 0 and 0 < word.tx < flight.remaining else 0


def make(program: Program, state: State, move: Move) -> Step:
    """Carry out a move in a canonical state; the state after it is canonical as well."""
    match move.kind:
        case Kind.STEP:
            result = step(program, state, move.who)
        case Kind.OPEN:
            result = begin(program, state, move.who)
        case Kind.FAIL:
            tried = step(program, state, move.who)
            result = tried._replace(state=fail_try(program, tried.state, move.who, state.pcs[move.who]))
        case Kind.LAND:
            result = land(program, state, state.flights[move.who], move.nbytes)
    return result._replace(state=_canonical_after(state, result.state))


def attempt(program: Program, state: State, move: Move) -> Step | None:
    """Carry out a move if it is one of :func:`moves`, without looking for the others; None if it is not."""
    if move.kind == Kind.LAND:
        flight = state.flights[move.who] if 0 <= move.who < len(state.flights) else None
        lands = flight is not None and can_land(program, state, flight) and move.nbytes in landing_sizes(state, flight)
        return make(program, state, move) if lands else None
    if move.nbytes or not 0 <= move.who < len(program.agents) or finished(program, state, move.who):
        return None
    unopened = opens(program, state, move.who)
    if unopened or move.kind == Kind.OPEN:
        return make(program, state, move) if unopened and move.kind == Kind.OPEN else None
    if move.kind == Kind.STEP:
        return stepped(program, state, move.who)
    result = step(program, state, move.who)
    pc = state.pcs[move.who]
    if program.code[move.who][pc][0] not in TRIES:
        return None
    refused = fail_try(program, result.state, move.who, pc)
    return result._replace(state=_canonical_after(state, refused)) if refused != result.state else None


class PlainRun:
    """A program on its canonical way, and who watches it. ``over``: nothing moves any more, or a fault stopped it.

    The phases are those of every schedule if the program is confluent; nothing here decides whether it is.
    """

    _watching: Sequence[Observer]

    def __init__(self, program: Program, watching: Sequence[Observer | None] = ()) -> None:
        self.program = program
        self.state = initial_state(program)
        self.faults: list[Fault] = []
        self.over = False
        self._watching = [each for each in watching if each is not None]

    @property
    def finished(self) -> bool:
        """True if every agent has run its last operation."""
        return all(finished(self.program, self.state, agent) for agent in range(len(self.program.agents)))

    def round(self) -> None:
        """Each agent in turn as far as it goes, then what is in flight lands once."""
        program, state, watching, moved = self.program, self.state, self._watching, False
        faults: list[Fault] = []
        for agent, code in enumerate(program.code):
            end = len(code)
            while state.pcs[agent] < end:
                result = step(program, state, agent)
                for observer in watching:
                    observer.on_step(state, agent, result)
                moved = moved or result.state is not state
                state = result.state
                if result.faults:
                    faults.extend(result.faults)
                    if any(f.kind.traps for f in result.faults):
                        break
                if result.blocked >= 0:
                    break
        for flight in state.flights:
            if can_land(program, state, flight):
                result = land(program, state, flight)
                for observer in watching:
                    observer.on_landing(flight, flight.remaining, result)
                faults.extend(result.faults)
                state = result.state
                moved = True
        self.state = state
        self.faults += faults
        self.over = not moved or any(fault.kind.traps for fault in faults)

    def to_end(self) -> Self:
        """On until it is over; itself."""
        while not self.over:
            self.round()
        return self


def run_canonically(program: Program, *watching: Observer) -> PlainRun:
    """The run to its end."""
    return PlainRun(program, watching).to_end()
