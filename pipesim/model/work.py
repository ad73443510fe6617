"""What a role does between its barrier operations: named work, in amounts of a few classes, without any time.

A work belongs to operations of a program through their source line (``Work.line``): every edit that keeps an
operation's line keeps its work. How long an amount takes is a latency profile's business (``pipesim.timed.work``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

#: Class of work → what one unit of it is. All amounts are of one warp.
WORK_CLASSES: dict[str, str] = {
    "rounds": "accesses to shared memory that each need the result of the one before: batches of loads with their use",
    "fma": "warp instructions of floating-point arithmetic",
    "alu": "warp instructions of integer arithmetic, comparisons, conversions and moves",
    "exp2": "warp instructions on the special-function unit: exponentials, reciprocals",
    "shuffles": "warp shuffles that each need the one before",
    "shared_bytes": "bytes read from and written to shared memory",
    "global_accesses": "accesses to global memory that each need the result of the one before",
    "global_bytes": "bytes written to global memory",
    "global_lines": "lines of 128 bytes that accesses to global memory touch, each access apart",
    "copies": "instructions that start a bulk copy, beyond those that are operations of the program",
    "fresh_copies": "bulk copies of data that was written since the SM's side of the L2 cache read it last",
    "shared_copies": "bulk copies of data that other CTAs load at about the same time",
    "streamed_copies": "bulk copies of data that no other CTA loads, and this one once",
    "cluster_fences": "arrives at cluster scope, which take effect when all earlier accesses are done",
    "fences_beside": "other warps whose arrives at cluster scope may be under way at the same time",
    "proxy_fences": "fences between proxies that wait for accesses to shared memory before them",
    "mma": "multiply-adds of a warp's part of a matrix multiplication by its warp group",
    "mma_registers": "the same where one operand is in registers, not in shared memory",
    "warp_products": "256 multiply-adds of 16-bit operands by one warp alone (mma.sync)",
    "products": "instructions that these multiply-adds are divided among",
    "instructions": "instructions between two operations of a program that was read from PTX: the others say which",
    "unrecorded_alu": "warp instructions as of `alu` that only a launch executes that records nothing",
    "recorded": "not 0: only a launch that is recorded does the work; the compiler orders its instructions differently",
    "unrecorded": "not 0: only a launch that records nothing does it",
    "spin": "cycles that the work takes at least, because it reads the clock until they have passed",
}

_MOST_OF_NAME = 60  #: characters of a kernel's name in the names of its works
_NO_NAME = re.compile(r"[^a-z0-9_]+")


def kernel_in_names(name: str) -> str:
    """A kernel's name as the names of its works begin with it: small letters, digits and _."""
    return _NO_NAME.sub("_", name.lower())[:_MOST_OF_NAME].strip("_") or "kernel"


@dataclass(frozen=True)
class Work:
    """Side table: what the operations of one line do.

    ``line`` is an index of ``Program.sources``; ``name`` is ``kernel/work``, by which a profile knows it; ``amounts``
    are pairs of a class of :data:`WORK_CLASSES` and a number of its units. Of an operation that takes time by itself
    (READ, WRITE, WORK, ENGINE_WORK) the work is all that it does, and of a wait on an mbarrier what it takes if its
    phase is complete already; of any other one it comes after it.
    """

    line: int
    name: str
    amounts: tuple[tuple[str, int], ...] = ()

    def amount(self, kind: str) -> int:
        """How many units of this class, 0 if it has none."""
        return dict(self.amounts).get(kind, 0)

    def without(self, kind: str) -> Work:
        """The same with no unit of this class."""
        return replace(self, amounts=tuple(each for each in self.amounts if each[0] != kind))
