"""What a correction adds to a program, where it is one operation beside one line of the author's source."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pipesim.model.ops import Operation
from pipesim.model.program import Program


@dataclass(frozen=True)
class AddedLine:
    """An operation that is added after the operations of a line, or ``before`` them, or between them (``within``);
    ``number``: its named barrier.

    ``places``: agents, and the number of their operation that follows it.
    """

    op: Operation
    number: int
    places: tuple[tuple[int, int], ...]
    line: str = ""
    before: bool = False
    within: bool = False


def added_line(program: Program, changed: Program) -> AddedLine | None:
    """The operation that agents have more, without a line yet; None if it is not one."""
    places: dict[tuple[int, int], Operation] = {}
    for agent, (code, now) in enumerate(zip(program.code, changed.code, strict=True)):
        at = 0
        for op in now if now != code else ():
            if at < len(code) and op == code[at]:
                at += 1
            else:
                places[agent, at] = op
        if now != code and at < len(code):
            return None
    ops = set(places.values())
    if len(ops) != 1:
        return None
    op = ops.pop()
    return AddedLine(op, changed.named_barrier(op), tuple(places))


def beside(added: AddedLine | None, line: Callable[[int, int, int], str]) -> AddedLine | None:
    """With the one line that it comes after at all places, else before; None where there is none.

    ``line``: of the second operation of an agent, beside the third.
    """
    if added is None:
        return None
    after, before = ({line(agent, at - step, at + step - 1) for agent, at in added.places} for step in (1, 0))
    for lines in (after, before):
        if len(lines) == 1 and any(lines):
            return replace(added, line=next(iter(lines)), before=lines is before, within=after == before)
    return None


def line_of(program: Program) -> Callable[[int, int, int], str]:
    """The author's line of an operation, "" beyond an agent's code."""
    return lambda agent, pc, _: program.line(agent, pc) if 0 <= pc < len(program.code[agent]) else ""
