"""Whether atomics on several words may return what no order of all accesses shows.

In PTX's memory model two agents may each miss what the other has written to another word ("store buffering"), and one
may see the second of two words written and not the first ("message passing"). Where that is so, accesses to words form
a circle: from one access the order of memory leads to another one, of another word; that one is observed by, or comes
before, an access of another agent, and so on. A step from agent to agent that the order of memory has as well, by
release and acquire, goes one way only. So a circle has two steps or more that it does not have, or is ruled out; as
one is where a ``fence.sc`` lies between each two (PTX ISA, "Memory Consistency Model": causality order, Fence-SC).
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

from pipesim.model.groups import FENCE, MAY_ACQUIRE
from pipesim.model.ops import Fence, Op, Operation, Order, Scope, operand, order_of, scope_of
from pipesim.model.words import GlobalWord, WordWait, WordWrite
from pipesim.prove.happens_before.snapshot import Clock, Knowledge
from pipesim.prove.memory_order.comparison import is_acquire

MISSED = "atomics on several words may miss what others wrote, which fence.sc would rule out"
_MOST_PAIRS = 1 << 22  #: of accesses
_MOST_WAYS = 1 << 15  #: from word to word that are looked at
_RELEASES = (Order.RELEASE, Order.ACQ_REL)


class RunOfWords(Protocol):
    """What is known of a run: ``moments`` before operations of agents, and what wide fences there have before them."""

    moments: dict[tuple[int, int], Knowledge]
    fenced: dict[tuple[int, int], Clock]


class _WordAccess(NamedTuple):
    word: int
    does: WordWrite | WordWait

    @property
    def asks(self) -> bool:
        """Whether something depends on what it sees."""
        return isinstance(self.does, WordWait) or self.does.observed


class _Leg(NamedTuple):
    """The order of memory leads from an access to a write of another word. ``releases``: what comes before the first is
    before all that acquires the write; ``acquires``: what releases what the first sees is before the write; ``full``:
    there is a ``fence.sc`` between.
    """

    first: int
    last: int
    releases: bool
    acquires: bool
    full: bool


def may_miss_each_other(code: Sequence[Sequence[Operation]], words: Sequence[GlobalWord], run: RunOfWords) -> bool:
    """Whether there is such a circle in the one run of a program that represents its schedules.

    What is only waited for is not missed: a wait ends at some time.
    """
    acts = (_WordAccess(n, each) for n, word in enumerate(words) for each in word.acts)
    every = [
        e for e in acts if (isinstance(e.does, WordWrite) or e.does.passes is not None) and _place(e) in run.moments
    ]
    writes = [k for k, e in enumerate(every) if isinstance(e.does, WordWrite)]
    if len(words) < 2 or not any(every[k].asks for k in writes):
        return False
    if len(every) * len(writes) > _MOST_PAIRS:
        return True
    steps = {f: [k for k, e in enumerate(every) if _is_open(every[f], e, run)] for f in writes}
    legs: dict[int, list[_Leg]] = {k: [] for found in steps.values() for k in found}
    for k in legs:
        legs[k] = [_leg(code, every, k, f, run) for f in writes if steps[f] and _leads(every[k], every[f], run)]
    open_: list[tuple[_Leg, ...]] = [(each,) for found in legs.values() for each in found]
    looked_at = 0
    while open_ and looked_at < _MOST_WAYS:
        way, looked_at = open_.pop(), looked_at + 1
        first, met = every[way[0].first].word, {every[leg.first].word for leg in way}
        for k in steps[way[-1].last]:
            if k == way[0].first and not _is_ruled_out(every, way):
                return True
            if first < every[k].word not in met:  # from each word once
                open_ += [(*way, leg) for leg in legs[k] if every[leg.last].word in met or every[leg.last].word > first]
    return bool(open_)


def _place(access: _WordAccess) -> tuple[int, int]:
    return access.does.agent, access.does.pc


def _leads(one: _WordAccess, other: _WordAccess, run: RunOfWords) -> bool:
    """Whether the order of memory leads from an access to one of another word, whatever scopes include."""
    return one.word != other.word and run.moments[_place(other)].ordered.covers(one.does.agent, one.does.last)


def _is_open(one: _WordAccess, other: _WordAccess, run: RunOfWords) -> bool:
    """Whether a write and another agent's access to its word are in no order of memory, and something depends on it."""
    write, then = one.does, other.does
    if one.word != other.word or write.agent == then.agent or not (one.asks or other.asks):
        return False
    before = run.moments[_place(other)].synced.covers(write.agent, write.last)
    return not before and not run.moments[_place(one)].synced.covers(then.agent, then.last)


def _leg(code: Sequence[Sequence[Operation]], every: Sequence[_WordAccess], k: int, f: int, run: RunOfWords) -> _Leg:
    first, last = every[k].does, every[f].does
    here, at = run.moments[_place(every[f])], (first.agent, first.last)
    mine = code[first.agent]
    fence = next((pc for pc in range(first.last + 1, len(mine)) if _is_wide_fence(mine[pc])), len(mine))
    acquires = any(
        op[0] in MAY_ACQUIRE and is_acquire(operand(op, "semantics")) for op in mine[first.pc : first.last + 1]
    )
    write = code[last.agent][last.last]
    releases = write[0] == Op.ARRIVE and order_of(operand(write, "semantics")) in _RELEASES
    return _Leg(
        k,
        f,
        releases or run.fenced[_place(every[f])].covers(*at),
        acquires or here.ordered.covers(first.agent, fence),
        here.full is not None and here.full.before.covers(*at),
    )


def _is_wide_fence(op: Operation) -> bool:
    kinds = op[0] == Op.FENCE and op[FENCE] in (Fence.ACQ_REL, Fence.SC)
    return kinds and scope_of(operand(op, "semantics")) is not Scope.CTA


def _is_ruled_out(every: Sequence[_WordAccess], circle: Sequence[_Leg]) -> bool:
    """By the order of memory. What release and acquire order is one part of it."""
    ends = list(_ends(every, circle))
    twice = (*circle, *circle)
    parts = [twice[a + 1 : b + 1] for a, b in pairwise((*ends, *(n + len(circle) for n in ends[:1])))]
    return len(ends) < 2 or all(any(leg.full for leg in part) for part in parts)


def _ends(every: Sequence[_WordAccess], circle: Sequence[_Leg]) -> Iterator[int]:
    """The legs after which release and acquire do not order what comes before them before what follows."""
    for n, leg in enumerate(circle):
        after = circle[(n + 1) % len(circle)]
        if not (leg.releases and after.acquires and every[after.first].asks):
            yield n
