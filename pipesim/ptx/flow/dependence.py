"""Control dependence: the branches that decide whether a block runs (Ferrante, Ottenstein and Warren, 1987)."""

from __future__ import annotations

from pipesim.ptx.flow.graph import Graph


def control_dependence(graph: Graph) -> tuple[tuple[int, ...], ...]:
    """For each block, the blocks whose last instruction decides whether it runs, in ascending order."""
    found: list[list[int]] = [[] for _ in graph.blocks]
    for number, block in enumerate(graph.blocks):
        if len(block.successors) < 2:
            continue
        meeting = graph.post_dominators[number]
        for after in block.successors:
            at = after
            while at not in (meeting, graph.exit):
                if not found[at] or found[at][-1] != number:
                    found[at].append(number)
                at = graph.post_dominators[at]
    return tuple(map(tuple, found))
