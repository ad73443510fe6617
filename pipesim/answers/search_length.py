"""How many states of a program are searched for its verdict, where one run does not decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipesim.model.program import Program

USUAL_STATES = 200_000
#: Of a program read from PTX: seconds. One that is not decided by then has too many agents to be decided so.
LEAST_OF_A_KERNEL, MOST_OF_A_KERNEL = 5_000, 50_000


def states_of(given: int | None, program: Program) -> int:
    """The number that a person gave, else the usual one; of a kernel's program fewer, the longer it is."""
    if given is not None:
        return given
    if not program.coverage.extracted:
        return USUAL_STATES
    by_length = 10_000_000 // max(1, sum(map(len, program.code)))
    return min(MOST_OF_A_KERNEL, max(LEAST_OF_A_KERNEL, by_length))
