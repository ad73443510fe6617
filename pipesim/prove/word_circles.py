"""Whether atomics on several words may return what no order of all accesses shows.

In PTX's memory model two agents may each miss what the other has written to another word ("store buffering"), and one
may see the second of two words written and not the first ("message passing"). Where that is so, accesses to words form
a circle: from one access the order of memory leads to another one, of another word; that one is observed by, or comes
before, an access of another agent, and so on. A step from agent to agent that the order of memory has as well, by
release and acquire, goes one way only. So a circle has two steps or more that it does not have, or is ruled out; as
one is where a ``fence.sc`` lies between each two (PTX ISA, "Memory Consistency Model": causality order, Fence-SC).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pipesim.model.words import GlobalWord, WordWait, WordWrite
from pipesim.prove.happens_before.snapshot import Knowledge

MISSED = "atomics on several words may miss what others wrote, which fence.sc would rule out"
_MOST_STEPS = 1 << 22  #: pairs of accesses that are looked at
Moments = Mapping[tuple[int, int], Knowledge]  #: before an operation of an agent
_Access = tuple[int, WordWrite | WordWait]  #: the number of its word


def may_miss_each_other(words: Sequence[GlobalWord], moments: Moments) -> bool:
    """Whether there is such a circle in the one run of a program that represents its schedules.

    What is only waited for is not missed: a wait ends at some time.
    """
    every: list[_Access] = [
        (n, each)
        for n, word in enumerate(words)
        for each in word.acts
        if (isinstance(each, WordWrite) or each.passes is not None) and (each.agent, each.pc) in moments
    ]
    writes = [k for k, (_, each) in enumerate(every) if isinstance(each, WordWrite)]
    if len(words) < 2 or not any(isinstance(each, WordWrite) and each.observed for _, each in every):
        return False
    if len(every) * len(writes) > _MOST_STEPS:
        return True
    legs = {k: [f for f in writes if _leads(every[k], every[f], moments)] for k in range(len(every))}
    steps = {f: [k for k in range(len(every)) if _is_open(every[f], every[k], moments)] for f in writes}
    # nodes: where a step ends at an access, 2k, and where a step begins at one, 2k + 1
    graph = {2 * k: [2 * f + 1 for f in found] for k, found in legs.items()}
    graph |= {2 * f + 1: [2 * k for k in found] for f, found in steps.items()}
    part = {node: n for n, nodes in enumerate(_connected(graph)) for node in nodes}
    pairs = ((k, f) for k, found in legs.items() for f in found if part[2 * k] == part[2 * f + 1])
    return any(not _is_full(every[k][1], every[f][1], moments) for k, f in pairs)


def _leads(one: _Access, other: _Access, moments: Moments) -> bool:
    """Whether the order of memory leads from an access to one of another word, whatever scopes include."""
    (word, first), (its, then) = one, other
    return word != its and moments[then.agent, then.pc].ordered.covers(first.agent, first.last)


def _is_open(one: _Access, other: _Access, moments: Moments) -> bool:
    """Whether a write and another agent's access to its word are in no order of memory, and something depends on it."""
    (word, write), (its, then) = one, other
    if word != its or write.agent == then.agent or not isinstance(write, WordWrite):
        return False
    depends = write.observed or isinstance(then, WordWait) or then.observed
    before = moments[then.agent, then.pc].synced.covers(write.agent, write.last)
    return depends and not before and not moments[write.agent, write.pc].synced.covers(then.agent, then.last)


def _is_full(first: WordWrite | WordWait, then: WordWrite | WordWait, moments: Moments) -> bool:
    """Whether a ``fence.sc`` is between two accesses."""
    fences = moments[then.agent, then.pc].full
    return fences is not None and fences.before.covers(first.agent, first.last)


def _connected(graph: Mapping[int, Sequence[int]]) -> Iterator[list[int]]:
    """The nodes of a graph in parts, in each of which each node is reached from each other one (S. R. Kosaraju)."""
    order, seen = list[int](), set[int]()
    for start in graph:
        open_ = [(start, iter(graph[start]))] if start not in seen else []
        seen.add(start)
        while open_:
            node, nexts = open_[-1]
            after = next((each for each in nexts if each not in seen), None)
            if after is None:
                order.append(node)
                open_.pop()
            else:
                seen.add(after)
                open_.append((after, iter(graph[after])))
    back: dict[int, list[int]] = {node: [] for node in graph}
    for node, nexts_of in graph.items():
        for after in nexts_of:
            back[after].append(node)
    left = set(graph)
    for start in reversed(order):
        part, open_nodes = list[int](), [start] if start in left else []
        left.discard(start)
        while open_nodes:
            part.append(open_nodes.pop())
            open_nodes += (more := [each for each in back[part[-1]] if each in left])
            left.difference_update(more)
        yield part
