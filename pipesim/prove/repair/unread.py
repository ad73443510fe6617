"""Whether a change leaves more bytes that no agent reads than were left: then a fault is gone with its work."""

from __future__ import annotations

from pipesim.model.groups import READS_MEMORY, TOUCHES_MEMORY
from pipesim.model.ops import Space, operand
from pipesim.model.program import Program
from pipesim.prove.counterexample.leftovers import bytes_left


def leaves_more(before: Program, after: Program) -> bool:
    """True if more bytes are written that no agent reads at any time, or more of them are unread at the end.

    Of the end of a program that hangs nothing is known.
    """
    if _never_read(after) > _never_read(before):
        return True
    left = bytes_left(before)
    return left is not None and (bytes_left(after) or 0) > left


def _never_read(program: Program) -> int:
    """How many bytes of the CTAs' memory operations write and none reads."""
    written, read, bounds = set[int](), set[int](), dict[int, int]()
    for access, (first, end) in zip(program.accesses, program.cells, strict=True):
        bounds |= {first: access.offset, end: access.offset + access.nbytes}
    for op in (op for op in program.operations if op[0] in TOUCHES_MEMORY):
        if program.accesses[operand(op, "access")].space is not Space.GLOBAL:
            used = (cell for each in program.accesses_of(op) for cell in range(*program.cells[each]))
            (read if op[0] in READS_MEMORY else written).update(used)
    return sum(bounds[cell + 1] - bounds[cell] for cell in written - read)
