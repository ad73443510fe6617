"""Loads that look at a word before the loop that waits for it: ``x = load(w); while (!x) { sleep(); x = load(w); }``.

What comes after such a look is what comes after the load of the loop, which writes the same registers. So it is taken
for the load of the wait: a run in which it sees a value that ends the loop is one of the kernel, and what the loop does
between two loads, such as a fence, is not done in it.
"""

from collections.abc import Sequence

from pipesim.ptx.flow.graph import Graph
from pipesim.ptx.flow.slice import is_word
from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.text.instruction import Instruction


def looks_before_loops(body: Sequence[Instruction], graph: Graph, uses: Uses) -> dict[int, int]:
    """The positions of these loads, each with that of the load in its loop."""
    loads: dict[object, list[int]] = {}
    for each in body:
        if each.opcode == "ld" and each.guard is None and is_word(each):
            loads.setdefault((each.mnemonic, each.operands), []).append(each.position)
    found: dict[int, int] = {}
    for alike in loads.values():
        for again in alike if len(alike) > 1 else ():
            inner = min(
                (each.blocks for each in graph.loops if graph.block_of[again] in each.blocks), key=len, default=None
            )
            next_ = _next(again, body, graph)
            if inner is None or graph.block_of[next_] not in inner:
                continue
            written = {name for p in graph.positions(inner) for name in uses.writes[p]}
            if written.isdisjoint(uses.reads[again]):  # else it may be another word
                looks = (p for p in alike if graph.block_of[p] not in inner and _next(p, body, graph) == next_)
                found |= dict.fromkeys(looks, again)
    return found


def _next(position: int, body: Sequence[Instruction], graph: Graph) -> int:
    """What is executed after an instruction, but for branches that are always taken."""
    p, seen = position + 1, set[int]()
    while p < len(body) and body[p].opcode == "bra" and body[p].guard is None and p not in seen:
        seen.add(p)
        p = graph.blocks[graph.blocks[graph.block_of[p]].successors[0]].first
    return min(p, len(body) - 1)
