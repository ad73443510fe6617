"""The corrections that are offered for a wrong program, each looked for once in a run of the tests."""

from __future__ import annotations

import re
from functools import lru_cache

from pipesim.model.program import Program
from pipesim.protocols.broken import BROKEN
from pipesim.protocols.broken.hopper import MISTAKES
from pipesim.prove.check import check
from pipesim.prove.repair.correction import Correction, corrections
from tests.support.blind import KERNELS
from tests.support.more_mistakes import MORE


@lru_cache(maxsize=256)
def offered_for(name: str) -> tuple[Program, tuple[Correction, ...]]:
    """The wrong program of this name, and what is offered for each of its findings."""
    if name in BROKEN:
        program = BROKEN[name]().flatten()
    else:
        program = (MISTAKES[name].wrong if name in MISTAKES else MORE[name][0])().flatten()
    return program, offered_for_program(program)


@lru_cache(maxsize=256)
def offered_for_slip(kernel: str, slip: str) -> tuple[Program, tuple[Correction, ...]]:
    """A kernel of ``tests.support.blind`` with this slip, and what is offered for each of its findings."""
    program = KERNELS[kernel][0](slip).flatten()
    return program, offered_for_program(program)


def offered_for_program(program: Program) -> tuple[Correction, ...]:
    """What is offered for each finding of a wrong program."""
    found = check(program, max_states=3000)
    every = [c for refuted in found.refutations for c in corrections(program, refuted, program)]
    return tuple(dict.fromkeys(every))


def without_places(said: str) -> str:
    """A sentence without the lines in it."""
    return re.sub(r" \([\w.]+:\d+\)", "", said)
