"""Which registers of a loop follow from the answer of a try in it and from nothing else that the loop changes."""

from __future__ import annotations

from collections.abc import Sequence

from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.text.instruction import Instruction

#: Opcodes whose result depends on nothing but their operands, as compilers pass an answer on.
_PASS_ON = frozenset({"and", "cvt", "mov", "not", "or", "selp", "setp", "shfl", "vote", "xor"})


def follow_from(position: int, loop: frozenset[int], body: Sequence[Instruction], uses: Uses) -> frozenset[str]:
    """The results of the try at this position, and what is made of them alone; each has one writer in the loop. None
    of a try that is in no loop.
    """
    if position not in loop:
        return frozenset()
    writers: dict[str, int] = {}
    for p in loop:
        for name in uses.writes[p]:
            writers[name] = writers.get(name, 0) + 1
    found = {name for name in uses.writes[position] if writers[name] == 1}
    ahead = True
    while ahead:
        ahead = False
        for p in loop:
            made, read = uses.writes[p], uses.reads[p]
            if body[p].opcode not in _PASS_ON or body[p].guard is not None or not read or found.issuperset(made):
                continue
            if found.issuperset(read) and all(writers[name] == 1 for name in made):
                found.update(made)
                ahead = True
    return frozenset(found)
