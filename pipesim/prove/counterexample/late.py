"""What has to be late for a schedule: an agent, or a transfer, that could continue for long and does not."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from heapq import nlargest
from operator import itemgetter
from typing import TypeAlias

from pipesim.model.machine import finished
from pipesim.model.moves import Kind, Move, attempt, can_land, stepped
from pipesim.model.program import Program
from pipesim.model.state import Flight, State
from pipesim.prove.counterexample.play import Play
from pipesim.prove.refutation import Refutation

_MOST = 20_000  #: moves times agents of a schedule that is looked at
#: What moves, and where an agent is before it does.
_Mover: TypeAlias = tuple[Move | Flight, tuple[int, bool]]
_MOST_TRIED = 32  #: of what was late


@dataclass(frozen=True)
class Late:
    """``what``, at the author's ``line``, is late while others make ``moves``.

    ``transfer``: it is one, of this agent. ``group``: the barriers of which every stage completes ``laps`` phases
    meanwhile, "" if there is none.
    """

    agent: str
    line: str
    moves: int
    transfer: bool = False
    group: str = ""
    laps: int = 0


@dataclass
class _Waiting:
    """Since when something that can continue does not: the number of the move, and the phases complete by then."""

    since: int
    done: tuple[int, ...]
    line: str


def late_of(program: Program, refuted: Refutation) -> Late | None:
    """The longest time for which something that could continue did not: first by laps of a ring, then by moves.

    Only of what the schedule needs. None of a schedule that is too long to look
    at, and of one in which nothing is late.
    """
    if len(refuted.schedule) * len(program.agents) > _MOST:
        return None
    play = Play(program)
    waiting: dict[Hashable, _Waiting] = {}
    found: list[tuple[int, int, int, Late, Hashable]] = []
    movers: list[_Mover] = []

    def end(who: Hashable, at: int) -> None:
        begun = waiting.pop(who)
        group, laps = _laps(program, begun.done, _done(play.state))
        agent = who[0] if isinstance(who, tuple) else who
        assert isinstance(agent, int)
        name = program.agent_name(agent)
        late = Late(name, begun.line, at - begun.since, isinstance(who, tuple), group, laps)
        found.append((laps, late.moves, at, late, who))

    for number, move in enumerate(refuted.schedule):
        able = _able(program, play.state)
        for who in [who for who in waiting if who not in able]:
            end(who, number)
        done = _done(play.state)
        for who, line in able.items():
            waiting.setdefault(who, _Waiting(number, done, line))
        flight = play.state.flights[move.who] if move.kind == Kind.LAND else None
        movers.append((move, _place(play.state, move.who)) if flight is None else (flight, (-1, False)))
        moved: Hashable = move.who if flight is None else _name(flight)
        if moved in waiting:
            end(moved, number)
        play.make(move)
    fault = refuted.fault
    concerned = {fault.agent, fault.other_agent} if fault is not None else set()
    for who in list(waiting):  # what never continued and has no part in the fault is not needed for it
        if (who[0] if isinstance(who, tuple) else who) in concerned:
            end(who, len(refuted.schedule))
    longest = nlargest(_MOST_TRIED, (each for each in found if each[1] > 1), key=itemgetter(0, 1, 2))
    needed = (late for _, moves, at, late, who in longest if _matters(program, refuted, movers, who, (at - moves, at)))
    return next(needed, None)


def _matters(
    program: Program,
    refuted: Refutation,
    movers: Sequence[_Mover],
    who: Hashable,
    between: tuple[int, int],
) -> bool:
    """Whether the schedule is not possible, or ends otherwise, if something continues when it can between two moves."""
    since, until = between
    play = Play(program, refuted.schedule[:since])
    for number, (move, place) in enumerate(movers[since:], since):
        while number < until and not play.faults:
            flight = next((each for each in play.state.flights if _name(each) == who), None)
            if not (play.advance(who) if isinstance(who, int) else flight is not None and play.land_one(flight)):
                break
        if play.faults:
            break
        if isinstance(move, Flight):
            if not play.land_one(move) and _name(move) != who:
                return True
        elif _place(play.state, move.who) <= place:
            while _place(play.state, move.who) < place and play.advance(move.who):  # what it did in fewer moves
                pass
            if attempt(program, play.state, move) is None:
                return True
            play.make(move)
    if refuted.fault is not None:
        return all(fault[:3] != refuted.fault[:3] for fault in play.faults)
    return play.deadlock is None or refuted.deadlock is None or play.deadlock.blocked != refuted.deadlock.blocked


def _place(state: State, agent: int) -> tuple[int, bool]:
    """Where an agent is, and whether it has arrived at the meeting there."""
    return state.pcs[agent], bool(state.holds[agent])


def _able(program: Program, state: State) -> dict[Hashable, str]:
    """What can continue, each with its line."""
    able: dict[Hashable, str] = {}
    for agent, pc in enumerate(state.pcs):
        if not finished(program, state, agent) and stepped(program, state, agent) is not None:
            able[agent] = program.line(agent, pc)
    for flight in state.flights:
        if can_land(program, state, flight):
            able[_name(flight)] = program.line(flight.agent, flight.pc)
    return able


def _name(flight: Flight) -> Hashable:
    return flight.agent, flight.pc, flight.first


def _done(state: State) -> tuple[int, ...]:
    return tuple(barrier.done for barrier in state.barriers)


def _laps(program: Program, before: tuple[int, ...], after: tuple[int, ...]) -> tuple[str, int]:
    """The group of which every stage completed the most phases between two states, and how many."""
    least: dict[tuple[str, int], int] = {}
    for barrier, was, now in zip(program.barriers, before, after, strict=False):
        key = barrier.name, barrier.cta
        least[key] = min(least.get(key, now - was), now - was)
    (name, _), laps = max(least.items(), key=lambda each: each[1], default=(("", 0), 0))
    return (name, laps) if laps > 0 else ("", 0)
