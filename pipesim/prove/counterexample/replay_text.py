"""A schedule as one line of text, and back: what ``check --replay`` and ``run --schedule`` walk again.

Moves are separated by dots: ``3`` is a step of agent 3, ``3o`` the begin of its access, ``3n`` its try that says no,
``~2:64`` lets 64 bytes of the flight at place 2 land. ``3*5`` is the same move five times.
"""

from __future__ import annotations

import re
from itertools import groupby
from reprlib import repr as brief  # of a word of any length

from pipesim.bounds import MAX_MOVES, MAX_SCHEDULE_DIGITS
from pipesim.errors import ParameterError
from pipesim.model.moves import Kind, Move, attempt
from pipesim.model.program import Program
from pipesim.prove.counterexample.play import Play
from pipesim.prove.refutation import Schedule

_MARKS = {Kind.STEP: "", Kind.OPEN: "o", Kind.FAIL: "n"}
_KINDS = {mark: kind for kind, mark in _MARKS.items()}
_NUMBER = rf"\d{{1,{MAX_SCHEDULE_DIGITS}}}"
_MOVE = re.compile(
    rf"(?:(?P<agent>{_NUMBER})(?P<mark>[on]?)|~(?P<place>{_NUMBER}):(?P<nbytes>{_NUMBER}))"
    rf"(?:\*(?P<times>(?!0){_NUMBER}))?",
    re.ASCII,
)


def to_text(schedule: Schedule) -> str:
    """The line of a schedule."""
    words = []
    for move, same in groupby(schedule):
        times = len(list(same))
        word = f"~{move.who}:{move.nbytes}" if move.kind == Kind.LAND else f"{move.who}{_MARKS[Kind(move.kind)]}"
        words.append(word if times == 1 else f"{word}*{times}")
    return ".".join(words)


def from_text(text: str) -> Schedule:
    """The schedule of a line, which may be broken into several. ParameterError naming a word that is not a move."""
    moves: list[Move] = []
    for number, word in enumerate("".join(text.split()).split("."), 1):
        match = _MOVE.fullmatch(word)
        if match is None:
            raise ParameterError(
                f"the schedule: word {number}, {brief(word)}, is not a move",
                cause="the text was cut or edited",
                correction="give the line that `pipesim check` prints at the end, or the field replay of its --json",
            )
        times = int(match["times"] or 1)
        if len(moves) + times > MAX_MOVES:
            raise ParameterError(
                f"the schedule: more than {MAX_MOVES:,} moves",
                cause="a move that is repeated very often",
                correction="give the line that `pipesim check` prints at the end, or the field replay of its --json",
            )
        if match["place"] is not None:
            moves += [Move(Kind.LAND, int(match["place"]), int(match["nbytes"]))] * times
        else:
            moves += [Move(_KINDS[match["mark"]], int(match["agent"]))] * times
    return tuple(moves)


def walk(program: Program, text: str) -> Play:
    """The play of a line's schedule. ParameterError for a move that is not possible where it is."""
    play = Play(program)
    for number, move in enumerate(from_text(text), 1):
        if play.faults or attempt(program, play.state, move) is None:
            raise ParameterError(
                f"the schedule: move {number} is not possible in {program.name} at these parameters",
                cause="the schedule belongs to another protocol, other parameters, or another version of it",
                correction="give the parameters that `pipesim check` printed with the schedule",
            )
        play.make(move)
    return play
