"""Both searches against one that asks the machine for every move of every state, and footprints against the machine."""

from collections import deque
from itertools import combinations

import pytest

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind
from pipesim.model.machine import State, finished, initial_state
from pipesim.model.moves import Kind, Move, canonical, make, moves
from pipesim.model.program import Program
from pipesim.prove.search.breadth_first import explore
from pipesim.prove.search.footprint import NOTHING, Footprints
from pipesim.prove.search.parts import Parts
from tests.support.lanes import slow_but
from tests.support.random_programs.all_operations import random_operations
from tests.support.random_programs.rings import random_ring

RANDOM = {"rings": random_ring, "operations": random_operations}
FEW = 1_500

#: What is wrong and where: a fault of an agent at an operation, or a deadlock and where the agents stand.
Wrongs = set[tuple[FaultKind | Ending, tuple[int, ...]]]


def states_of(program: Program, most: int = FEW) -> tuple[list[State], Wrongs, set[State], int] | None:
    """Every state, what is wrong, the ends and the number of moves; None if there are too many states."""
    start = canonical(initial_state(program))
    seen, queue = {start: None}, deque([start])
    wrong: Wrongs = set()
    ends: set[State] = set()
    steps = 0
    while queue:
        state = queue.popleft()
        possible = moves(program, state)
        if not possible and all(finished(program, state, agent) for agent in range(len(program.agents))):
            ends.add(state._replace(registers=()))
        elif not possible:
            wrong.add((Ending.DEADLOCK, state.pcs))
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


@pytest.mark.slow
@pytest.mark.parametrize("family", slow_but(["operations"], RANDOM))
def test_both_searches_see_what_asking_for_every_move_sees(family: str) -> None:
    judged = fewer = more = 0
    for seed in range(40):
        program = RANDOM[family](seed)
        every = states_of(program)
        if every is None:
            continue
        states, seen, ends, steps = every
        wrong = frozenset(seen)
        plain, reduced = explore(program, reduced=False), explore(program)
        assert (plain.states, plain.steps, plain.wrong, plain.outcomes) == (len(states), steps, wrong, len(ends)), seed
        assert (reduced.wrong, reduced.outcomes) == (wrong, len(ends)), seed
        assert reduced.states <= plain.states, seed
        judged, fewer, more = judged + 1, fewer + reduced.states, more + plain.states
    assert judged >= 30
    assert 2 * fewer < more, "less than half is looked at, although most are small, and wrong"


def test_a_wait_with_the_state_of_another_barrier_breaks_a_rule_where_it_stands() -> None:
    """Phase 1 of ``mine`` is no phase of ``other`` yet: it would only wait once that has completed one as well."""
    p = Protocol("foreign")
    mine, other = p.mbarriers("mine", 1, 1), p.mbarriers("other", 1, 1)

    @p.role("waits")
    def waits(w: Warp) -> None:
        with w.elect_one():
            mine[0].arrive()
            other[0].wait_state(mine[0].arrive())

    @p.role("arrives")
    def arrives(w: Warp) -> None:
        with w.elect_one():
            other[0].arrive()

    program = p.flatten()
    every = states_of(program)
    assert every is not None
    _, wrong, _, _ = every
    assert {kind for kind, _ in wrong} == {FaultKind.STALE_STATE, Ending.DEADLOCK}
    assert explore(program).wrong == explore(program, reduced=False).wrong == wrong


def test_the_seed_that_showed_it() -> None:
    program = random_operations(405_586)
    assert explore(program).wrong == explore(program, reduced=False).wrong


@pytest.mark.parametrize("seed", range(0, 60, 6))
@pytest.mark.parametrize("family", RANDOM)
def test_moves_that_touch_nothing_in_common_can_be_exchanged(family: str, seed: int) -> None:
    """In every state, any two moves whose footprints do not meet lead to the same state in either order."""
    assert disturbed(RANDOM[family](seed)) == []


def test_a_footprint_that_is_too_small_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: operations that are said not to touch their barrier."""
    monkeypatch.setattr("pipesim.prove.search.footprint.Footprints._signal", lambda *_, **__: NOTHING)
    assert any(disturbed(random_ring(seed)) for seed in range(0, 60, 6))


def disturbed(program: Program) -> list[tuple[Move, Move]]:
    """Pairs of moves that do not meet and lead elsewhere in the other order; nothing if there are too many states."""
    every = states_of(program, 300)
    parts = Parts(program)
    prints = Footprints(program, parts)
    found = []
    for state in every[0] if every is not None else []:
        for one, other in combinations(moves(program, state), 2):
            if _who(state, one) == _who(state, other) or _landings(one, other):
                continue
            a, b = _touch(program, parts, prints, state, one), _touch(program, parts, prints, state, other)
            if a.noticed(b) or a.adds & b.adds:
                continue
            if _then(program, state, one, other) != _then(program, state, other, one):
                found.append((one, other))
    return found


def _landings(one: Move, other: Move) -> bool:
    """Two landings: after one of them the other has another place."""
    return one.kind == other.kind == Kind.LAND


def _who(_: State, move: Move) -> tuple[bool, int]:
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
