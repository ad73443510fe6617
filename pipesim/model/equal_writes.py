"""Writes of one item to the same bytes by several agents: whatever their order, memory holds the same in the end.

PTX calls two such writes a race as well, but none of its axioms lets a read tell which of them it sees, and kernels
rely on it: every warp of a group stores the same address or the same scalar. A read must still come after them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipesim.model.ops import Op, Operation
from pipesim.model.positions import ACCESS, ITEM

Written = tuple[int, int]  #: an access and the item that is left there


def written_alike(code: Sequence[Sequence[Operation]]) -> Mapping[Written, int]:
    """What more than one agent writes, each with a number of its own."""
    by_agent = [{(op[ACCESS], op[ITEM]) for op in each if op[0] == Op.WRITE and op[ITEM] >= 0} for each in code]
    seen: set[Written] = set()
    several: set[Written] = set()
    for written in by_agent:
        several |= seen & written
        seen |= written
    return {written: number for number, written in enumerate(sorted(several))}
