"""The order in which the operations of a schedule take their turns on the hardware."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipesim.model.machine import finished, initial_state
from pipesim.model.moves import Kind, Move, canonical, make
from pipesim.model.program import Program
from pipesim.model.state import OWN

LANDS = 1 << 31  #: in a turn: what was issued before has had the time to land


@dataclass(frozen=True)
class Turns:
    """For each agent and operation its turn, from 1 on, with :data:`LANDS`; what follows the schedule has the last.

    ``last``: of the schedule. ``ends``: where each agent is at its end. ``exact``: the hardware can only follow it: no
    try says no of a phase that is complete, and nothing that has landed in the kernel may still be under way in it.
    """

    numbers: tuple[tuple[int, ...], ...]
    last: int
    ends: tuple[int, ...]
    exact: bool


def turns_of(program: Program, schedule: Sequence[Move]) -> Turns:
    """The turns of a schedule's operations, in the order of the moves in which they begin."""
    state = canonical(initial_state(program))
    found = [[0] * len(code) for code in program.code]
    last, lands, exact = 0, 0, True
    for move in schedule:
        pcs = state.pcs
        late = move.kind != Kind.LAND and any(flight.engine != OWN for flight in state.flights)
        state = make(program, state, move).state
        if move.kind == Kind.LAND:
            lands = LANDS
        elif move.kind != Kind.OPEN:
            exact = exact and move.kind != Kind.FAIL and not late
            agent, pc = move.who, pcs[move.who]
            if not found[agent][pc]:
                last += 1
                found[agent][pc], lands = last | lands, 0
    rest = last + 1 | lands
    numbers = tuple(tuple(number or rest for number in mine) for mine in found)
    ends = tuple(len(program.code[a]) if finished(program, state, a) else pc for a, pc in enumerate(state.pcs))
    return Turns(numbers, last, ends, exact)
