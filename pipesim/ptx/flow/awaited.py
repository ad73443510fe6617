"""Loops that wait for a word of global memory: that they end is for whoever stores it, which nothing here follows."""

from __future__ import annotations

from collections.abc import Collection

from pipesim.ptx.flow.graph import Graph
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


def _may_change(each: Instruction) -> bool:
    if each.has_any("shared", "shared::cta", "shared::cluster"):
        return False
    return each.opcode == "atom" or (each.opcode == "ld" and each.has_any(*_STRONG))
