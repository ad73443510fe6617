"""Both searches against one that asks the machine for every move of every state, and footprints against the machine."""

from __future__ import annotations

import runpy
from collections import deque
from itertools import combinations
from pathlib import Path

import pytest

from pipesim.model.machine import State, finished, initial_state
from pipesim.model.program import Program
from pipesim.prove.footprint import Footprints
from pipesim.prove.moves import Kind, Move, canonical, make, moves
from pipesim.prove.parts import Parts
from pipesim.prove.refutation import End
from pipesim.prove.search import explore

PROGRAM = runpy.run_path(str(Path(__file__).resolve().parent / "programs.py"))["program"]
FEW = 1_500


def states_of(program: Program, most: int = FEW) -> tuple[list[State], set[object], set[State], int] | None:
    """Every state, what is wrong, the ends and the number of moves; None if there are too many states."""
    start = canonical(initial_state(program))
    seen, queue = {start: None}, deque([start])
    wrong: set[object] = set()
    ends: set[State] = set()
    steps = 0
    while queue:
        state = queue.popleft()
        possible = moves(program, state)
        if not possible and all(finished(program, state, agent) for agent in range(len(program.agents))):
            ends.add(state._replace(registers=()))
        elif not possible:
            wrong.add((End.DEADLOCK, state.pcs))
        for move in possible:
            steps += 1
            result = make(program, state, move)
            wrong |= {(fault.kind, (fault.agent, fault.pc)) for fault in result.faults}
            if not result.faults and result.state not in seen:
                seen[result.state] = None
                queue.append(result.state)
        if len(seen) > most:
            return None
    return list(seen), wrong, ends, steps


@pytest.mark.parametrize("first", range(0, 80, 40))
def test_both_searches_see_what_asking_for_every_move_sees(first: int) -> None:
    judged = fewer = more = 0
    for seed in range(first, first + 40):
        program = PROGRAM(seed)
        every = states_of(program)
        if every is None:
            continue
        states, wrong, ends, steps = every
        plain, reduced = explore(program, reduced=False), explore(program)
        assert (plain.states, plain.steps, plain.wrong, plain.outcomes) == (len(states), steps, wrong, len(ends)), seed
        assert (reduced.wrong, reduced.outcomes) == (wrong, len(ends)), seed
        assert reduced.states <= plain.states, seed
        judged, fewer, more = judged + 1, fewer + reduced.states, more + plain.states
    assert judged >= 25
    assert 3 * fewer < more, "less than a third is looked at, although small ones are among them"


@pytest.mark.parametrize("seed", range(0, 60, 6))
def test_moves_that_touch_nothing_in_common_can_be_exchanged(seed: int) -> None:
    """In every state, any two moves whose footprints do not meet lead to the same state in either order."""
    program = PROGRAM(seed)
    every = states_of(program, 300)
    states = every[0] if every is not None else []
    parts = Parts(program)
    prints = Footprints(program, parts)
    for state in states[:300]:
        for one, other in combinations(moves(program, state), 2):
            if _who(state, one) == _who(state, other):
                continue
            a, b = _touch(program, parts, prints, state, one), _touch(program, parts, prints, state, other)
            if a.noticed(b) or a.adds & b.adds or _landings(one, other):
                continue
            assert _then(program, state, one, other) == _then(program, state, other, one), (seed, one, other)


def _landings(one: Move, other: Move) -> bool:
    """Two landings: after one of them the other has another place."""
    return one.kind == other.kind == Kind.LAND


def _who(state: State, move: Move) -> tuple[bool, int]:
    return move.kind == Kind.LAND, move.who


def _touch(program: Program, parts: Parts, prints: Footprints, state: State, move: Move):
    if move.kind == Kind.LAND:
        return prints.of_flight(state.flights[move.who])
    return prints.of_agent(move.who, parts.value(parts.row(state), parts.local[move.who]))


def _then(program: Program, state: State, first: Move, second: Move) -> tuple[State, frozenset[object]]:
    """The state after both moves and the kinds of what they do wrong; a landing keeps its flight."""
    result = make(program, state, first)
    faults = {(fault.kind, fault.agent) for fault in result.faults}
    if second.kind == Kind.LAND:
        flight = state.flights[second.who]
        same = [n for n, f in enumerate(result.state.flights) if _named(f) == _named(flight)]
        second = second._replace(who=same[_rank(state, second.who)])
    result = make(program, result.state, second)
    return result.state, frozenset(faults | {(fault.kind, fault.agent) for fault in result.faults})


def _named(flight) -> tuple[int, ...]:
    return flight.agent, flight.pc, flight.barrier, flight.first


def _rank(state: State, place: int) -> int:
    return [n for n, f in enumerate(state.flights) if _named(f) == _named(state.flights[place])].index(place)
