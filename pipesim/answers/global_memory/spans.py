"""Bytes that clusters access, as arrays of half-open ranges: which of them meet those of another cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipesim.trace.arrays import np

MOST_SPANS = 1 << 22  #: of one memory that are compared


class TooManyError(Exception):
    """More ranges than are compared, or boxes at places that have no numbers."""


class Spans(NamedTuple):
    """Ranges from ``start`` to before ``end``, each of the cluster ``owner``; arrays of one length."""

    start: np.ndarray
    end: np.ndarray
    owner: np.ndarray

    def __bool__(self) -> bool:
        return bool(len(self.start))

    def take(self, chosen: np.ndarray) -> Spans:
        """Some of them, by number or by truth."""
        return Spans(self.start[chosen], self.end[chosen], self.owner[chosen])


class ContestedBytes(NamedTuple):
    """Two clusters that access the same bytes, from ``low`` to before ``high``."""

    one: int
    other: int
    low: int
    high: int


def joined(parts: Sequence[Spans]) -> Spans:
    """All ranges, where those of one cluster that overlap or touch are one."""
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return Spans(none, none, none)
    start, end, owner = (np.concatenate(each) for each in zip(*parts, strict=True))
    if not len(start):
        return Spans(start, end, owner)
    low = int(start.min())
    names, rank = np.unique(owner, return_inverse=True)
    shift = rank * (int(end.max()) - low + 1) - low  # the ranges of each cluster in a part of their own
    first, last = start + shift, end + shift
    order = np.argsort(first, kind="stable")
    first, last = first[order], np.maximum.accumulate(last[order])
    new = np.ones(len(first), dtype=bool)
    new[1:] = first[1:] > last[:-1]
    heads = np.flatnonzero(new)
    ends = np.concatenate((heads[1:], [len(first)])) - 1
    back = shift[order][heads]
    return Spans(first[heads] - back, last[ends] - back, names[rank[order][heads]])


def contested(agents: Sequence[tuple[Spans, Spans, Spans]]) -> Spans:
    """The bytes that two agents of a cluster access, one of which writes, and one in an ordinary way.

    For each agent all that it accesses, what it writes, and what it accesses in an ordinary way, in all clusters.
    """
    every = joined([spans for spans, _, _ in agents])
    if not every:
        return every
    low, width = int(every.start.min()), int(every.end.max() - every.start.min()) + 1
    names = np.unique(every.owner)

    def apart(spans: Spans) -> tuple[np.ndarray, np.ndarray]:
        shift = np.searchsorted(names, spans.owner) * width - low
        return spans.start + shift, spans.end + shift

    edges = np.unique(np.concatenate([each for parts in agents for spans in parts for each in apart(spans)]))

    def counted(n: int) -> np.ndarray:
        found = np.zeros(len(edges) + 1, dtype=np.int64)
        for each in agents:
            start, end = apart(each[n])
            np.add.at(found, np.searchsorted(edges, start), 1)
            np.add.at(found, np.searchsorted(edges, end), -1)
        total: np.ndarray = np.cumsum(found)[: len(edges) - 1]
        return total

    met = np.flatnonzero((counted(0) > 1) & (counted(1) > 0) & (counted(2) > 0))
    rank = edges[met] // width
    return joined([Spans(edges[met] - rank * width + low, edges[met + 1] - rank * width + low, names[rank])])


def met_by_each_other(spans: Spans) -> ContestedBytes | None:
    """Two clusters with common bytes, None if there are none. ``spans``: as :func:`joined` makes them."""
    order = np.lexsort((spans.owner, spans.start))
    found = spans.take(order)
    furthest = np.maximum.accumulate(found.end)
    bad = np.flatnonzero(found.start[1:] < furthest[:-1])
    if not len(bad):
        return None
    at = int(bad[0]) + 1
    before = int(np.argmax(found.end[:at]))
    low, high = int(found.start[at]), int(min(found.end[at], found.end[before]))
    return ContestedBytes(int(found.owner[before]), int(found.owner[at]), low, high)


def met_by_others(apart: Spans, others: Spans) -> ContestedBytes | None:
    """A range of ``apart`` and one of another cluster with common bytes. No two ranges of ``apart`` overlap."""
    if not apart or not others:
        return None
    held = apart.take(np.argsort(apart.start, kind="stable"))
    low = np.searchsorted(held.end, others.start, side="right")
    high = np.searchsorted(held.start, others.end, side="left")
    changes = np.concatenate(([0], np.cumsum(held.owner[1:] != held.owner[:-1])))
    low_, last = np.minimum(low, len(changes) - 1), np.maximum(high - 1, 0)
    bad = (high > low) & ((held.owner[low_] != others.owner) | (changes[last] != changes[low_]))
    first = np.flatnonzero(bad)
    if not len(first):
        return None
    at = int(first[0])
    met = next(n for n in range(int(low[at]), int(high[at])) if held.owner[n] != others.owner[at])
    begin, end = max(held.start[met], others.start[at]), min(held.end[met], others.end[at])
    return ContestedBytes(int(held.owner[met]), int(others.owner[at]), int(begin), int(end))


def met_by_any(spans: Spans, others: Spans) -> ContestedBytes | None:
    """As :func:`met_by_others`, where ranges of ``spans`` may overlap. TooManyError where that is not decided."""
    if not spans or not others:
        return None
    held = spans.take(np.argsort(spans.start, kind="stable"))
    furthest = np.maximum.accumulate(held.end)
    heads = np.flatnonzero(np.concatenate(([True], held.start[1:] >= furthest[:-1])))
    ends = furthest[np.concatenate((heads[1:], [len(held.start)])) - 1]
    low, high = np.minimum.reduceat(held.owner, heads), np.maximum.reduceat(held.owner, heads)
    found = met_by_others(Spans(held.start[heads], ends, np.where(low == high, low, -1)), others)
    if found is None or found.one >= 0:
        return found
    shared = (held.start < found.high) & (held.end > found.low) & (held.owner != found.other)
    if not shared.any():
        raise TooManyError
    at = int(np.flatnonzero(shared)[0])
    begin, end = max(found.low, int(held.start[at])), min(found.high, int(held.end[at]))
    return ContestedBytes(int(held.owner[at]), found.other, begin, end)
