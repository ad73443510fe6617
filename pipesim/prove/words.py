"""Doubts and schedules by the program's names: who, which operation, on what, and the author's line."""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.prove.doubt import Doubt
from pipesim.prove.moves import Kind, Move
from pipesim.prove.play import Play
from pipesim.unfold.operation_words import landing_in_words, operation_in_words

_MARKS = frozenset({Op.LOOP_BEGIN, Op.LOOP_NEXT, Op.LOOP_END})


@dataclass(frozen=True)
class Line:
    """One step of a schedule: its number from 1 on, the agent, what it does, and the author's line."""

    number: int
    agent: str
    what: str
    line: str


@dataclass(frozen=True)
class DoubtLine:
    """One doubt: why, the operation with its agent and line, and the other one if there are two ("" if not)."""

    why: str
    what: str
    line: str
    other: str = ""
    other_line: str = ""


def doubt_line(program: Program, doubt: Doubt) -> DoubtLine:
    """A doubt in words."""
    if doubt.agent < 0:
        return DoubtLine(doubt.why.value, program.barrier_name(doubt.where), "")
    what, line = _operation(program, doubt.agent, doubt.pc), program.line(doubt.agent, doubt.pc)
    if doubt.other_agent < 0:
        return DoubtLine(doubt.why.value, what, line)
    other = _operation(program, doubt.other_agent, doubt.other_pc)
    return DoubtLine(doubt.why.value, what, line, other, program.line(doubt.other_agent, doubt.other_pc))


def schedule_lines(program: Program, schedule: tuple[Move, ...]) -> tuple[Line, ...]:
    """Every step of a schedule but loop marks, numbered as in the schedule."""
    play = Play(program)
    found = []
    for number, move in enumerate(schedule, 1):
        agent, pc = _of(play, move)
        if move.kind != Kind.STEP or program.code[agent][pc][0] not in _MARKS:
            found.append(Line(number, program.agent_name(agent), _what(program, play, move), program.line(agent, pc)))
        play.make(move)
    return tuple(found)


def _of(play: Play, move: Move) -> tuple[int, int]:
    if move.kind == Kind.LAND:
        flight = play.state.flights[move.who]
        return flight.agent, flight.pc
    return move.who, play.state.pcs[move.who]


def _what(program: Program, play: Play, move: Move) -> str:
    agent, pc = _of(play, move)
    words = operation_in_words(program, program.code[agent][pc])
    match move.kind:
        case Kind.OPEN:
            return f"{words} begins"
        case Kind.FAIL:
            return f"{words}: says no"
        case Kind.LAND:
            flight = play.state.flights[move.who]
            return landing_in_words(program, program.code[agent][pc], flight.barrier, move.nbytes, flight.remaining)
        case _:
            return words


def _operation(program: Program, agent: int, pc: int) -> str:
    return f"{program.agent_name(agent)}: {operation_in_words(program, program.code[agent][pc])}"
