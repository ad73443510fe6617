"""The places of a program's text that synchronise: what one line does to one thing, in all agents and iterations.

Left out is what the proof does not judge, so that removing it could never be seen to be wrong: ``tcgen05.fence``,
``fence.sc``, the proxy of tensor maps (docs/memory-order.md). Of a kernel's PTX also waits for groups of the tensor
cores and ``bar.warp.sync``: its reader has used them to follow registers and lanes, and the program no longer shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from pipesim.model.groups import BLOCKING_WAITS, CLUSTER, COMMITS, DELAYED_ARRIVALS, ON_NAMED_BARRIER
from pipesim.model.ops import Engine, Fence, Op, Operation, operand
from pipesim.model.program import NAMED_BARRIERS, Program


class SyncKind(Enum):
    """What a site does. In the order of what removing it gains: what waits before what only issues."""

    NAMED = "named barrier"  #: bar.sync and bar.arrive
    CLUSTER = "cluster barrier"  #: barrier.cluster.arrive and wait
    WAIT = "wait"  #: for a phase of an mbarrier
    GROUP_WAIT = "group wait"  #: for a group of transfers of the own thread
    ARRIVE = "arrive"  #: on an mbarrier, also by a commit or by cp.async
    FENCE = "fence"


class SyncSite(NamedTuple):
    """One source line and what it synchronises. ``what``: the mbarrier's name, or a number as the operation has it."""

    kind: SyncKind
    line: str
    what: str


Place = tuple[int, int]  #: an agent and the position of an operation in its code

_JUDGED_FENCES = frozenset({Fence.MBARRIER_INIT, Fence.PROXY_ASYNC, Fence.ACQ_REL})
_TENSOR_CORES = frozenset({Engine.WGMMA, Engine.TCGEN05})


def sites(program: Program) -> Mapping[SyncSite, Sequence[Place]]:
    """Every site with the operations that it records, in the order in which agents come to them."""
    found: dict[SyncSite, list[Place]] = {}
    for agent, code in enumerate(program.code):
        for pc, op in enumerate(code):
            kind = kind_of(program, op)
            if kind is not None:
                found.setdefault(SyncSite(kind, program.line(agent, pc), _what(program, kind, op)), []).append(
                    (agent, pc)
                )
    return found


def is_of_kernel(program: Program) -> bool:
    """True for a program that was read from a kernel's PTX."""
    return bool(program.coverage.extracted)


def kind_of(program: Program, op: Operation) -> SyncKind | None:
    """What an operation synchronises; None if nothing that may be left out and is judged."""
    if op[0] in BLOCKING_WAITS:
        return SyncKind.WAIT
    if op[0] == Op.WAIT_GROUP:
        read_by_thread = is_of_kernel(program) and operand(op, "engine") in _TENSOR_CORES
        return None if read_by_thread else SyncKind.GROUP_WAIT
    if op[0] == Op.FENCE:
        return SyncKind.FENCE if operand(op, "fence") in _JUDGED_FENCES else None
    if op[0] in ON_NAMED_BARRIER:
        of_lanes = program.named_barriers[operand(op, "named_barrier")][1] >= NAMED_BARRIERS
        return None if of_lanes and is_of_kernel(program) else SyncKind.NAMED
    if op[0] in CLUSTER:
        return SyncKind.CLUSTER
    return SyncKind.ARRIVE if arrives_only(op) else None


def arrives_only(op: Operation) -> bool:
    """True for an arrive that expects no bytes and whose state token is dropped."""
    if op[0] == Op.ARRIVE:
        return not operand(op, "expect") and operand(op, "register") < 0
    if op[0] in COMMITS:
        return operand(op, "barrier") >= 0
    return op[0] in DELAYED_ARRIVALS


def _what(program: Program, kind: SyncKind, op: Operation) -> str:
    match kind:
        case SyncKind.WAIT | SyncKind.ARRIVE:
            return program.barriers[operand(op, "barrier")].name
        case SyncKind.GROUP_WAIT:
            return str(operand(op, "engine"))
        case SyncKind.FENCE:
            return str(operand(op, "fence"))
        case SyncKind.NAMED:
            return str(program.named_barriers[operand(op, "named_barrier")][1])
        case SyncKind.CLUSTER:
            return ""
