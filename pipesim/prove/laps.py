"""Programs of one family laid side by side: a body more for each lap, and items that move on evenly."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import ne
from typing import NamedTuple

from pipesim.model.ops import OPERANDS, Op, Operation
from pipesim.model.program import Program

_EVEN = {op: names.index("item") + 1 for op, names in OPERANDS.items() if "item" in names}
_IDLE = {Op.WORK: 1, Op.ENGINE_WORK: 2, Op.LOOP_BEGIN: 2}  #: operands that no engine of the proof looks at


class Lap(NamedTuple):
    """One lap of a family: where each agent stands when it begins and when it ends."""

    begin: tuple[int, ...]
    end: tuple[int, ...]


class Outline:
    """A program without its items: ``code`` for comparisons, ``items`` beside it (0 where an operation has none)."""

    def __init__(self, program: Program) -> None:
        self.program = program
        known: dict[Operation, tuple[Operation, int]] = {}
        self.code: list[list[Operation]] = []
        self.items: list[list[int]] = []
        for code in program.code:
            pairs = [known.get(op) or known.setdefault(op, _split(op)) for op in code]
            self.code.append([bare for bare, _ in pairs])
            self.items.append([item for _, item in pairs])

    @property
    def lengths(self) -> tuple[int, ...]:
        """Operations of each agent."""
        return tuple(map(len, self.code))

    def begins_as(self, other: Outline, reached: Sequence[int]) -> bool:
        """True if both have the same operations up to and with those at which the agents stand."""
        return same_tables(self.program, other.program) and all(
            mine[: pc + 1] == theirs[: pc + 1] for mine, theirs, pc in zip(self.code, other.code, reached, strict=True)
        )


def same_tables(one: Program, other: Program) -> bool:
    """True if operands mean the same in both."""
    return all(
        getattr(one, table) == getattr(other, table)
        for table in ("agents", "barriers", "accesses", "named_barriers", "loops", "registers", "ctas")
    )


def _split(op: Operation) -> tuple[Operation, int]:
    at = _EVEN.get(Op(op[0]))
    if at is not None:
        return (*op[:at], *op[at + 1 :]), op[at]
    at = _IDLE.get(Op(op[0]))
    return (op, 0) if at is None else ((*op[:at], *op[at + 1 :]), 0)


def is_longer_inside(short: Outline, long: Outline) -> bool:
    """True if ``long`` is ``short`` with operations put in, all those of an agent at one place."""
    if not same_tables(short.program, long.program) or short.lengths == long.lengths:
        return False
    for mine, theirs in zip(short.code, long.code, strict=True):
        front = common(mine, theirs)
        if len(theirs) < len(mine) or mine[front:] != theirs[len(theirs) - len(mine) + front :]:
            return False
    return True


def common(mine: Sequence[object], theirs: Sequence[object]) -> int:
    """How many both begin with."""
    return next((n for n, differs in enumerate(map(ne, mine, theirs)) if differs), min(len(mine), len(theirs)))


def has_laps_more(short: Outline, long: Outline, lap: Lap, more: int) -> bool:
    """True if ``long`` is ``short`` with the lap ``more`` times again, items aside."""
    if not same_tables(short.program, long.program):
        return False
    for mine, theirs, begin, end in zip(short.code, long.code, lap.begin, lap.end, strict=True):
        body, at = mine[begin:end], end
        if theirs[:end] != mine[:end] or len(theirs) != len(mine) + more * len(body):
            return False
        for _ in range(more):
            if theirs[at : at + len(body)] != body:
                return False
            at += len(body)
        if theirs[at:] != mine[end:]:
            return False
    return True


def items_are_even(three: tuple[Outline, Outline, Outline], lap: Lap) -> bool:
    """True if the items of programs of no, one and two laps more are given by one affine rule.

    Before the lap and behind it an item may move on with the number of laps; in the laps, with the lap it is in, too.
    Then two items that agree in all three programs agree in every longer one.
    """
    for agent, (begin, end) in enumerate(zip(lap.begin, lap.end, strict=True)):
        none, one, two = (outline.items[agent] for outline in three)
        step = end - begin
        front = zip(none[:end], one[:end], two[:end], strict=True)
        back = zip(none[end:], one[end + step :], two[end + 2 * step :], strict=True)
        if any(a + c != 2 * b for a, b, c in (*front, *back)):
            return False
        laps = zip(
            one[begin:end], one[end : end + step], two[begin:end], two[end : end + step],
            two[end + step : end + 2 * step], strict=True,
        )  # fmt: skip
        if any(not b - a == d - c == e - d for a, b, c, d, e in laps):
            return False
    return True


def follows(short: Outline, shorter: Outline, long: Outline, lap: Lap, more: int) -> bool:
    """True if ``long`` is what the rule of :func:`items_are_even` gives: ``short`` with ``more`` laps, items and all.

    ``shorter`` has one lap less than ``short``; ``lap`` is the last that they have in common.
    """
    if not has_laps_more(short, long, lap, more):
        return False
    for agent, (begin, end) in enumerate(zip(lap.begin, lap.end, strict=True)):
        before, now, then = shorter.items[agent], short.items[agent], long.items[agent]
        step = end - begin
        front = zip(before[:end], now[:end], then[:end], strict=True)
        back = zip(before[end:], now[end + step :], then[end + (more + 1) * step :], strict=True)
        if any(c - b != more * (b - a) for a, b, c in (*front, *back)):
            return False
        pace = [b - a for a, b in zip(now[begin:end], now[end : end + step], strict=True)]
        laps = [then[at : at + step] for at in range(begin, end + (more + 1) * step, step)] if step else []
        for earlier, later in pairwise(laps):
            if any(b - a != by for a, b, by in zip(earlier, later, pace, strict=True)):
                return False
    return True
