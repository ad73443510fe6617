"""Whether the barriers of a ring are used again: what shows that their counts are right.

The first wait for an *empty* barrier passes by itself, as its parity says; a wrong count shows in the second one. So a
ring that is gone through less than twice proves nothing about the counts of its barriers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from pipesim.model.groups import (
    BARRIER,
    BLOCKING_WAITS,
    BY_PARITY,
    COMMITS,
    LIFE,
    LOOP_MARKS,
    PARITY,
    SUPPLIES_HERE,
    TRIP_BEGINS,
)
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.tables import ProgramData

Repeats = Callable[[int, int], bool]  #: whether an agent's operation is in a loop


_SUPPLIES = (SUPPLIES_HERE - LIFE) | COMMITS


def never_wrapped(code: Sequence[Sequence[Operation]], repeats: Repeats) -> tuple[int, ...]:
    """The mbarriers that are used in loops, and that every agent waits for with one parity only, or one state token.

    Also those that are initialised and not used at all, where others are used in loops: a longer loop may reach them.
    """
    asked: set[tuple[int, int, int]] = set()  # barrier, agent, parity or position
    looped: set[int] = set()
    used: set[int] = set()
    made: set[int] = set()
    for agent, mine in enumerate(code):
        for pc, op in enumerate(mine):
            if op[0] == Op.INIT:
                made.add(op[BARRIER])
            elif op[0] in BLOCKING_WAITS or op[0] in _SUPPLIES:
                bar = operand(op, "barrier")
                used.add(bar)
                if bar not in looped and repeats(agent, pc):
                    looped.add(bar)
            if op[0] in BLOCKING_WAITS:
                asked.add((op[BARRIER], agent, op[PARITY] if op[0] in BY_PARITY else pc))
    waits = Counter((bar, agent) for bar, agent, _ in asked)
    again = {bar for (bar, _), n in waits.items() if n > 1}
    return tuple(sorted((looped & {bar for bar, _ in waits} - again) | (made - used if looped else set())))


def never_wrapped_in(program: ProgramData) -> list[tuple[str, int]]:
    """Those of a described program, each by group and stage."""
    repeated = tuple(_repeated(program, agent) for agent in range(len(program.code)))
    found = never_wrapped(program.code, lambda agent, pc: pc in repeated[agent])
    return [(program.barriers[bar].name, program.barriers[bar].stage) for bar in found]


def _repeated(program: ProgramData, agent: int) -> frozenset[int]:
    """The agent's operations in a marked loop, or at a line that it executes more than once."""
    return frozenset(_in_marked_loops(program.code[agent])) | frozenset(_at_repeated_lines(program, agent))


def _in_marked_loops(code: Sequence[Operation]) -> Iterator[int]:
    depth = 0
    for pc, op in enumerate(code):
        if op[0] in LOOP_MARKS:
            depth += (op[0] == Op.LOOP_BEGIN) - (op[0] not in TRIP_BEGINS)
        elif depth:
            yield pc


def _at_repeated_lines(program: ProgramData, agent: int) -> Iterator[int]:
    lines = list(zip((op[0] for op in program.code[agent]), program.lines[agent], strict=True))
    often = Counter(lines)
    return (pc for pc, line in enumerate(lines) if often[line] > 1)
