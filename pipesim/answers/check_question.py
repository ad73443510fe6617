"""The question of a check: a program with its sizes, and how far it is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipesim.answers.every_size.classes import AnyWord
from pipesim.model.program import Program
from pipesim.prove.check import MOST_STATES
from pipesim.targets import Target

EVERY_RANGE = 1 << 10


@dataclass(frozen=True)
class CheckQuestion:
    """What is asked about a program.

    ``max_states`` are searched where one run does not decide. ``most_ranges``: trip counts of which every value is
    looked at; the others keep their values. ``quick``: the verdict alone. ``any_words``: words of a kernel's parameters
    of which the verdict is to hold for every value.
    """

    target: Target
    params: Mapping[str, int]
    program: Program
    ctas: int | None = None
    max_states: int = MOST_STATES
    most_ranges: int = EVERY_RANGE
    quick: bool = False
    any_words: tuple[AnyWord, ...] = ()
