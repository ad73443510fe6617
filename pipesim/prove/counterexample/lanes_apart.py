"""``--strict-lanes``: where a program from PTX takes lanes of a warp that parted to go on together."""

from __future__ import annotations

from pipesim.model.ending import Ending
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.moves import Move
from pipesim.model.program import Program
from pipesim.prove.counterexample.play import Play
from pipesim.prove.refutation import Refutation


def lanes_apart(program: Program) -> tuple[Refutation, ...]:
    """A finding at the first operation after each such place, with a way to it; none without the rule."""
    if not program.strictness.lanes:
        return ()
    found: dict[tuple[int, int], Refutation] = {}
    for place in program.coverage.rejoined:
        agent, pc = _at(program, place.partition(" ")[0])
        if (agent, pc) not in found:
            found[agent, pc] = Refutation(
                Ending.FAULT, _way(program, agent, pc), Fault(FaultKind.LANES_APART, agent, pc)
            )
    return tuple(found.values())


def _at(program: Program, line: str) -> tuple[int, int]:
    """The first operation of this source line, else of the program: a place may have none of its own."""
    for agent, code in enumerate(program.code):
        for pc in range(len(code)):
            if program.line(agent, pc) == line:
                return agent, pc
    return 0, 0


def _way(program: Program, agent: int, pc: int) -> tuple[Move, ...]:
    """Moves after which the agent stands there, as far as one plain schedule comes."""
    play = Play(program)
    order = [agent, *(other for other in range(len(program.agents)) if other != agent)]
    while play.state.pcs[agent] < pc and not play.faults:
        if not (play.advance(agent) or any(play.advance(other) for other in order[1:]) or play.land()):
            break
    return tuple(play.moves)
