"""Loops that wait for a word of memory which another thread stores: of global memory, or a flag in shared memory.

That the first end is for whoever stores the word; of the second, what the flag orders is not followed.
"""

from __future__ import annotations

from collections.abc import Collection

from pipesim.ptx.flow.graph import Graph
from pipesim.ptx.flow.opcodes import synchronises
from pipesim.ptx.text.instruction import Instruction
from pipesim.ptx.text.module import Function

_STRONG = ("volatile", "acquire", "relaxed", "mmio")  #: a load that another thread's store may change


def awaiting(function: Function, graph: Graph, followed: Collection[int]) -> tuple[int, ...]:
    """The first position of each loop with such a load that a branch leaves which is not ``followed``."""
    loads = {graph.block_of[each.position] for each in function.body if _may_change(each)}
    if not loads:
        return ()
    found = []
    for loop in graph.loops:
        ends = [graph.blocks[b].end - 1 for b in loop.blocks if not loop.blocks.issuperset(graph.blocks[b].successors)]
        if not loads.isdisjoint(loop.blocks) and ends and not all(end in followed for end in ends):
            found.append(graph.blocks[loop.header].first)
    return tuple(found)


def on_flags(function: Function, graph: Graph) -> tuple[int, ...]:
    """The first position of each loop that loads a word of shared memory so, and synchronises nothing."""
    body = function.body
    loads = {graph.block_of[each.position] for each in body if _is_flag(each)}
    return tuple(
        graph.blocks[loop.header].first
        for loop in (graph.loops if loads else ())
        if not loads.isdisjoint(loop.blocks)
        and not any(
            synchronises(each) for b in loop.blocks for each in body[graph.blocks[b].first : graph.blocks[b].end]
        )
    )


def _is_flag(each: Instruction) -> bool:
    return each.opcode == "ld" and each.has_any(*_STRONG) and each.has_any("shared", "shared::cta", "shared::cluster")


def _may_change(each: Instruction) -> bool:
    if each.has_any("shared", "shared::cta", "shared::cluster"):
        return False
    return each.opcode == "atom" or (each.opcode == "ld" and each.has_any(*_STRONG))
