"""Whether a change leaves more bytes that no agent reads than were left: then a fault is gone with its work."""

from __future__ import annotations

from collections import Counter

from pipesim.model.groups import READS_MEMORY, TOUCHES_MEMORY
from pipesim.model.ops import Space, operand
from pipesim.model.program import Program
from pipesim.prove.counterexample.leftovers import bytes_left


def leaves_more(before: Program, after: Program) -> bool:
    """True if more bytes are written that no agent reads at any time, or are read that none writes, or more of them
    are unread at the end.

    Of the end of a program that hangs nothing is known.
    """
    if any(now > was for now, was in zip(_of_one_side(after), _of_one_side(before), strict=True)):
        return True
    left = bytes_left(before)
    return left is not None and (bytes_left(after) or 0) > left


def _of_one_side(program: Program) -> list[int]:
    """How many bytes of the CTAs' memory operations write and none reads, and how many they read and none writes; then
    the same of accesses that have nothing else, as often as they are executed.
    """
    written, read, bounds = Counter[tuple[int, ...]](), Counter[tuple[int, ...]](), program.cell_bounds
    for op in (op for op in program.operations if op[0] in TOUCHES_MEMORY):
        if program.accesses[operand(op, "access")].space is not Space.GLOBAL:
            used = (cell for each in program.accesses_of(op) for cell in range(*program.cells[each]))
            (read if op[0] in READS_MEMORY else written)[tuple(used)] += 1
    found, often = [], []
    for one, other in ((written, read), (read, written)):
        alone = {cell for used in one for cell in used}.difference(*other)
        found.append(sum(bounds[cell + 1] - bounds[cell] for cell in alone))
        often.append(
            sum(n * (bounds[c + 1] - bounds[c]) for used, n in one.items() if alone.issuperset(used) for c in used)
        )
    return found + often
