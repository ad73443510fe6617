"""Immediate dominators of a graph of whole numbers.

By the method of Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm".
"""

from __future__ import annotations

from collections.abc import Sequence


def immediate_dominators(root: int, successors: Sequence[Sequence[int]]) -> list[int | None]:
    """The immediate dominator of each node that ``root`` reaches; None for the root and for all others."""
    order = _postorder(root, successors)
    number = {node: n for n, node in enumerate(order)}
    predecessors: list[list[int]] = [[] for _ in successors]
    for node in order:
        for after in successors[node]:
            predecessors[after].append(node)
    found: list[int | None] = [None] * len(successors)
    found[root] = root
    changed = True
    while changed:
        changed = False
        for node in reversed(order):
            if node == root:
                continue
            known = [before for before in predecessors[node] if found[before] is not None]
            best = known[0]
            for other in known[1:]:
                best = _common(best, other, found, number)
            if found[node] != best:
                found[node], changed = best, True
    found[root] = None
    return found


def _common(one: int, other: int, dominator: Sequence[int | None], number: dict[int, int]) -> int:
    """The nearest node that dominates both."""
    while one != other:
        while number[one] < number[other]:
            one = dominator[one]  # type: ignore[assignment]  # every node on the way has one
        while number[other] < number[one]:
            other = dominator[other]  # type: ignore[assignment]
    return one


def _postorder(root: int, successors: Sequence[Sequence[int]]) -> list[int]:
    """The nodes that the root reaches, each after those that are reached only through it."""
    order: list[int] = []
    seen = {root}
    waiting = [(root, iter(successors[root]))]
    while waiting:
        node, rest = waiting[-1]
        after = next((each for each in rest if each not in seen), None)
        if after is None:
            order.append(node)
            waiting.pop()
        else:
            seen.add(after)
            waiting.append((after, iter(successors[after])))
    return order
