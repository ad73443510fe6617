"""What may happen next in a state, whoever decides: an agent moves, an access opens, a try fails, bytes land.

The search takes every move everywhere; a schedule is a list of them. Nothing here knows a rule: the machine does.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from pipesim.model.machine import TMA, Flight, State, Step, answered, begin, can_land, finished, land, step
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.model.state import OWN

_ACCESSES = frozenset({Op.READ, Op.WRITE})
_TRIES = frozenset({Op.TRY_WAIT, Op.TEST_WAIT, Op.TEST_STATE})

#: Operations that no other agent can notice and nothing can hold up: when they happen makes no difference.
PRIVATE = frozenset({Op.WORK, Op.FENCE, Op.LOOP_BEGIN, Op.LOOP_NEXT, Op.LOOP_END, Op.JUMP_IF, Op.SETMAXNREG,
                     Op.ENGINE_WORK, Op.PENDING_COUNT})  # fmt: skip


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
    flights = sorted(state.flights, key=lambda f: (f.agent, f.engine, f.sequence, f.pc, f.first))
    renumbered = tuple(f._replace(sequence=n, after=n if f.after else 0) for n, f in enumerate(flights, start=1))
    return state._replace(flights=renumbered, issued=len(renumbered))


def moves(program: Program, state: State) -> list[Move]:
    """Every move that is possible in a canonical state, agents first, then flights."""
    found = [move for agent in range(len(program.code)) for move, _ in of_agent(program, state, agent)]
    return found + [move for place in range(len(state.flights)) for move, _ in of_flight(program, state, place)]


def of_agent(program: Program, state: State, agent: int) -> list[tuple[Move, Step]]:
    """Every move of one agent and what it leads to, in a state that need not be canonical."""
    if finished(program, state, agent):
        return []
    pc = state.pcs[agent]
    op = program.code[agent][pc]
    if op[0] in _ACCESSES and not any(f.engine == OWN and f.agent == agent for f in state.flights):
        return [(Move(Kind.OPEN, agent), begin(program, state, agent))]
    result = step(program, state, agent)
    if result.blocked >= 0 and result.state is state:
        return []
    found = [(Move(Kind.STEP, agent), result)]
    if op[0] in _TRIES:
        failed = answered(program, result.state, agent, pc, 0)
        if failed != result.state:
            found.append((Move(Kind.FAIL, agent), result._replace(state=failed)))
    return found


def of_flight(program: Program, state: State, place: int) -> list[tuple[Move, Step]]:
    """Every landing of the flight at this place of a canonical state, and what it leads to."""
    flight = state.flights[place]
    if not can_land(state, flight):
        return []
    return [(Move(Kind.LAND, place, part), land(program, state, flight, part)) for part in _parts(state, flight)]


def _parts(state: State, flight: Flight) -> list[int]:
    """How many bytes may land at once: all that remain, or just those that complete a phase before (as on chips)."""
    if flight.engine != TMA or flight.barrier < 0:
        return [flight.remaining]
    due = state.barriers[flight.barrier].tx
    return [due, flight.remaining] if 0 < due < flight.remaining else [flight.remaining]


def make(program: Program, state: State, move: Move) -> Step:
    """Carry out a move in a canonical state; the state after it is canonical, too."""
    match move.kind:
        case Kind.STEP:
            result = step(program, state, move.who)
        case Kind.OPEN:
            result = begin(program, state, move.who)
        case Kind.FAIL:
            tried = step(program, state, move.who)
            result = tried._replace(state=answered(program, tried.state, move.who, state.pcs[move.who], 0))
        case Kind.LAND:
            result = land(program, state, state.flights[move.who], move.nbytes)
    return result._replace(state=canonical(result.state))


def attempt(program: Program, state: State, move: Move) -> Step | None:
    """Carry out a move if it is one of :func:`moves`, without looking for the others; None if it is not."""
    if move.kind == Kind.LAND:
        flight = state.flights[move.who] if 0 <= move.who < len(state.flights) else None
        lands = flight is not None and can_land(state, flight) and move.nbytes in _parts(state, flight)
        return make(program, state, move) if lands else None
    if move.nbytes or not 0 <= move.who < len(program.agents) or finished(program, state, move.who):
        return None
    op = program.code[move.who][state.pcs[move.who]]
    unopened = op[0] in _ACCESSES and not any(f.engine == OWN and f.agent == move.who for f in state.flights)
    if unopened or move.kind == Kind.OPEN:
        return make(program, state, move) if unopened and move.kind == Kind.OPEN else None
    result = step(program, state, move.who)
    if move.kind == Kind.STEP:
        held_up = result.blocked >= 0 and result.state is state
        return None if held_up else result._replace(state=canonical(result.state))
    if op[0] not in _TRIES:
        return None
    refused = answered(program, result.state, move.who, state.pcs[move.who], 0)
    return result._replace(state=canonical(refused)) if refused != result.state else None
