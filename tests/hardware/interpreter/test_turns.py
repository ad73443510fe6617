"""The turns of a schedule, taken one after the other, lead where the schedule leads."""

import pytest

from hwkernels.interpreter.turns import LANDS, Turns, turns_of
from pipesim.model.ending import Ending
from pipesim.model.machine import State, initial_state, land
from pipesim.model.moves import Kind, Move, canonical, landing_flights, make, opens, stepped
from pipesim.model.program import Program
from pipesim.prove.check import check
from tests.support.random_programs import FAMILIES
from tests.support.small_programs import build


def landed(program: Program, state: State) -> State:
    """All that is under way has landed."""
    while found := landing_flights(program, state):
        _, flight = found[0]
        state = canonical(land(program, state, flight, flight.remaining).state)
    return state


def taken(program: Program, turns: Turns) -> tuple[int, ...]:
    """Where every agent is when each operation has had its turn, and the rest all that can happen."""
    order = sorted((n & ~LANDS, a, pc) for a, mine in enumerate(turns.numbers) for pc, n in enumerate(mine))
    state = canonical(initial_state(program))
    for turn, agent, pc in order:
        if turn > turns.last:
            break
        state = landed(program, state)
        while state.pcs[agent] < pc:  # what it waited for at a barrier of threads has come
            state = stepped(program, state, agent).state  # type: ignore[union-attr]
        if opens(program, state, agent):
            state = make(program, state, Move(Kind.OPEN, agent)).state
        state = stepped(program, state, agent).state  # type: ignore[union-attr]
    while True:
        state = landed(program, state)
        moved = next((m for a in range(len(program.code)) if (m := _moved(program, state, a)) is not None), None)
        if moved is None:
            return tuple(state.pcs)
        state = moved


def _moved(program: Program, state: State, agent: int) -> State | None:
    if state.pcs[agent] == len(program.code[agent]):
        return None
    if opens(program, state, agent):
        state = make(program, state, Move(Kind.OPEN, agent)).state
    result = stepped(program, state, agent)
    return None if result is None or result.state == state else result.state


def test_a_story() -> None:
    program = build("INIT; WRITE item=1; ARRIVE", "WAIT; READ item=1; WAIT parity=1")
    step, begin = Kind.STEP, Kind.OPEN
    order = [(step, 0), (begin, 0), (step, 0), (step, 0), (step, 1), (begin, 1), (step, 1)]
    found = turns_of(program, [Move(kind, agent) for kind, agent in order])
    assert found == Turns(((1, 2, 3), (4, 5, 6)), 5, (3, 2), exact=True)
    assert taken(program, found) == found.ends


def test_a_turn_after_a_landing_gives_it_the_time() -> None:
    program = build("TMA_LOAD item=0; WORK", barriers=1)
    found = turns_of(program, [Move(Kind.STEP, 0), Move(Kind.LAND, 0, 64), Move(Kind.STEP, 0)])
    assert found.numbers == ((1, 2 | LANDS),)
    assert found.exact
    assert not turns_of(program, [Move(Kind.STEP, 0), Move(Kind.STEP, 0)]).exact  # it lands later than the work


@pytest.mark.slow
@pytest.mark.parametrize("family", ["rings", "operations", "lives"])
def test_deadlocks_of_random_programs(family: str) -> None:
    followed = 0
    for seed in range(40):
        program = FAMILIES[family](seed)
        found = check(program, max_states=1_000)
        dead = next((each for each in found.refutations if each.end is Ending.DEADLOCK), None)
        if dead is None or program.register_pools is not None:
            continue
        turns = turns_of(program, dead.schedule)
        if not turns.exact:
            continue
        followed += 1
        assert taken(program, turns) == turns.ends, seed
    assert followed, family
