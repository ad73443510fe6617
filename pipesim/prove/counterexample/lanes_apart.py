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


def _at(program: Program, place: str) -> tuple[int, int]:
    """The first operation of this source line, else of the next line of the file that has one, else of the last."""
    file, line = _file_and_line(place)
    found: dict[tuple[bool, bool, int], tuple[int, int]] = {}
    for agent, code in enumerate(program.code):
        for pc in range(len(code)):
            other, at = _file_and_line(program.line(agent, pc))
            found.setdefault((other != file, at < line, abs(at - line)), (agent, pc))
    return found[min(found)] if found else (0, 0)


def _file_and_line(place: str) -> tuple[str, int]:
    """Of ``kernel.cu:12``; -1 for a place without a line."""
    file, _, line = place.rpartition(":")
    return file, int(line) if line.isdecimal() else -1


def _way(program: Program, agent: int, pc: int) -> tuple[Move, ...]:
    """Moves after which the agent stands there, as far as one plain schedule comes."""
    play = Play(program)
    order = [agent, *(other for other in range(len(program.agents)) if other != agent)]
    while play.state.pcs[agent] < pc and not play.faults:
        if not (play.advance(agent) or any(play.advance(other) for other in order[1:]) or play.land()):
            break
    return tuple(play.moves)
