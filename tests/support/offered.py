"""The corrections that are offered for a wrong program, each looked for once in a run of the tests."""

import re
from functools import lru_cache

from pipesim.model.program import Program
from pipesim.prove.check import check
from pipesim.prove.repair.correction import Correction, corrections
from tests.support.mistakes.kernel_mistakes import KERNEL_MISTAKES
from tests.support.mistakes.ring_mistakes import RING_MISTAKES


@lru_cache(maxsize=256)
def offered_for(name: str) -> tuple[Program, tuple[Correction, ...]]:
    """The wrong program of this name, and what is offered for each of its findings."""
    program = (RING_MISTAKES | KERNEL_MISTAKES)[name].wrong().flatten()
    return program, offered_for_program(program)


def offered_for_program(program: Program) -> tuple[Correction, ...]:
    """What is offered for each finding of a wrong program."""
    found = check(program, max_states=3000)
    every = [c for refuted in found.refutations for c in corrections(program, refuted, program)]
    return tuple(dict.fromkeys(every))


def without_places(said: str) -> str:
    """A sentence without the lines in it."""
    return re.sub(r" \([\w.]+:\d+\)", "", said)
