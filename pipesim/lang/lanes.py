"""Where a described role rests on its lanes being together, which PTX does not promise.

A role is recorded as if the lanes of each of its warps executed in step. PTX lets threads of a warp run independently:
they are together at ``.aligned`` instructions and at ``bar.warp.sync`` (PTX ISA, "bar.warp.sync"; "Independent Thread
Scheduling" in the CUDA programming guide). In between, an elected lane may be ahead of the others, or late.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from pipesim.model.groups import ACCESSES, HANDS_ON, MEETINGS, PRIVATE
from pipesim.model.ops import Operation
from pipesim.model.positions import ACCESS
from pipesim.model.warp_shape import executes_as_warp_group

Narrowed = Sequence[tuple[int, int]]  #: first and end of operations that only some lanes execute, in order


def rests_on_lanes(
    code: Sequence[Operation], narrowed: Narrowed, meets: Sequence[int], aligned: Set[int] = frozenset()
) -> list[int]:
    """The places of operations before which the lanes are taken to be together, and PTX does not say so.

    Of all lanes after some of them have done something alone; and of some lanes, where it signals others what all lanes
    have done before: read, written, or waited for, since who waits late misses a phase that has gone by. ``meets``:
    where ``bar.warp.sync`` comes before an operation. ``aligned``: accesses of tensor memory, whose instructions are.
    """
    found: list[int] = []
    parted = unsignalled = False
    intervals, together = iter((*narrowed, (len(code), len(code)))), frozenset(meets)
    first, end = next(intervals)
    for pc, op in enumerate(code if narrowed else ()):
        while pc >= end:
            first, end = next(intervals)
        if pc in together:
            parted = unsignalled = False
        if op[0] in PRIVATE:
            continue
        if pc >= first:
            if unsignalled and op[0] in HANDS_ON:
                found.append(pc)
                unsignalled = False
            parted = True
        elif op[0] in MEETINGS or executes_as_warp_group(op) or (op[0] in ACCESSES and op[ACCESS] in aligned):
            parted = unsignalled = False
        else:
            if parted:
                found.append(pc)
            parted, unsignalled = False, True
    return found
