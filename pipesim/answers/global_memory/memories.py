"""The memories that a kernel accesses: bytes at a pointer of the launch, and the tensor of a tensor map.

Both are lines of numbers here. Of a tensor, boxes of a map that begin at multiples of their size are cells, which have
numbers; in one dimension they may begin anywhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from pipesim.answers.every_cta.conditions import Evaluation, completed
from pipesim.answers.every_cta.kinds import EveryCta
from pipesim.answers.global_memory.reading import GlobalReading, read_global
from pipesim.answers.global_memory.spans import MOST_SPANS, Spans, TooManyError, joined
from pipesim.ptx.emit.record import Range
from pipesim.ptx.emulate.global_memory.global_accesses import GlobalAccess
from pipesim.ptx.emulate.memory import merge_ranges
from pipesim.ptx.free.forms import Form, Terms
from pipesim.ptx.prepare import Kernel, on_global_memory
from pipesim.trace.arrays import np

Chosen = tuple[int, GlobalAccess]  #: the number of a kind of clusters, and an access of theirs


@dataclass(frozen=True)
class Kinds:
    """The clusters of each kind, and the values of expressions in them."""

    clusters: list[np.ndarray]
    evaluations: list[Evaluation]

    def values(self, kind: int, form: Form, only: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Clusters of a kind with the value of an expression in each: two for all where it is constant."""
        clusters, found = self.clusters[kind], self.evaluations[kind].sum(form)
        if only is not None:
            at = int(np.searchsorted(clusters, only))
            return clusters[at : at + 1], np.broadcast_to(found, len(clusters))[at : at + 1]
        if not form.terms:
            return clusters[:2], np.full(min(len(clusters), 2), found)
        return clusters, np.broadcast_to(found, len(clusters))


class Memory:
    """What all kinds of clusters access in one memory. ``name``: in words. ``exact``: what meets is in the memory."""

    def __init__(self, name: str, *, exact: bool = True) -> None:
        self.name, self.exact = name, exact
        self.accesses: list[Chosen] = []

    def spans(self, kinds: Kinds, chosen: Iterable[Chosen], only: int | None = None) -> Spans:
        """The bytes of some accesses; ``only``: of one cluster. TooManyError."""
        groups: dict[tuple[int, Terms], list[tuple[int, int]]] = defaultdict(list)
        for kind, access in chosen:
            groups[kind, access.terms] += access.ranges
        parts, count = [], 0
        for (kind, terms), ranges in groups.items():
            clusters, base = kinds.values(kind, Form(0, terms), only)
            merged = merge_ranges(ranges)
            count += len(clusters) * len(merged)
            if count > MOST_SPANS:
                raise TooManyError
            parts.append(_spread(clusters, base, merged))
        return joined(parts)

    def parts(
        self, kinds: Kinds, chosen: Sequence[Chosen], also: Callable[[GlobalAccess], bool], only: int | None = None
    ) -> tuple[Spans, Spans, Spans]:
        """The bytes of some accesses, of those that write, and of those of which this holds. TooManyError."""
        those = [each for each in chosen if each[1].kind.writes], [each for each in chosen if also(each[1])]
        every, wrote, rest = (self.spans(kinds, part, only) for part in (chosen, *those))
        return every, wrote, rest

    def accessing(self, kinds: Kinds, cluster: int, low: int, high: int) -> Iterator[tuple[Chosen, int, int]]:
        """The accesses of a cluster to some bytes, each with those of them that it accesses first."""
        of_cluster = {n for n, mine in enumerate(kinds.clusters) if cluster in mine}
        for each in self.accesses:
            if each[0] in of_cluster:
                for start, end, _ in zip(*self.spans(kinds, [each], cluster), strict=True):
                    if start < high and end > low:
                        yield each, max(int(start), low), min(int(end), high)

    def in_words(self, low: int, high: int) -> str:
        """``bytes 0 to 127 at parameter 0 (out)``."""
        return f"bytes {low:,} to {high - 1:,} at {self.name}" if high - low > 1 else f"byte {low:,} at {self.name}"


class PointedMemory(Memory):
    """Bytes at a pointer, from address ``base`` on."""

    def __init__(self, name: str, base: int) -> None:
        super().__init__(name)
        self.base = base

    def in_words(self, low: int, high: int) -> str:
        """From the pointer on."""
        return super().in_words(low - self.base, high - self.base)


def _spread(clusters: np.ndarray, base: np.ndarray, ranges: Sequence[tuple[int, int]]) -> Spans:
    bases = np.repeat(base.astype(np.int64), len(ranges))
    start, end = (bases + np.resize(np.array(each, dtype=np.int64), len(bases)) for each in zip(*ranges, strict=True))
    return Spans(start, end, np.repeat(clusters, len(ranges)))


class MappedMemory(Memory):
    """The tensor of a map with boxes of this size; ``dims``: its own sizes, () where they are not known."""

    def __init__(self, name: str, box: tuple[int, ...], dims: tuple[int, ...]) -> None:
        super().__init__(name, exact=bool(dims))
        self._box, self._dims = box, dims
        self._axes: list[_BoxAxis] = []

    def number(self, kinds: Kinds) -> None:
        """Find numbers for the places of its boxes. TooManyError where they begin anywhere in two dimensions."""
        every = [self._corners(kinds, chosen, None)[1] for chosen in self.accesses]
        for n, size in enumerate(self._box):
            found = np.concatenate([corners[n] for corners in every])
            rests = np.unique(found % size)
            low, high = int(found.min()), int(found.max())
            if len(rests) == 1:
                self._axes.append(_BoxAxis(size, low, 1 + (high - low) // size, cells=True))
            else:
                self._axes.append(_BoxAxis(size, low, high - low + size, cells=False))
        if sum(not axis.cells for axis in self._axes) > 1:
            raise TooManyError

    def spans(self, kinds: Kinds, chosen: Iterable[Chosen], only: int | None = None) -> Spans:
        """The numbers of boxes, without those outside of the tensor. TooManyError."""
        parts, count = [], 0
        for each in chosen:
            clusters, corners = self._corners(kinds, each, only)
            inside = np.ones(len(clusters), dtype=bool)
            for corner, size, end in zip(corners, self._box, self._dims, strict=False):
                inside &= (corner < end) & (corner + size > 0)
            start, length = np.zeros(len(clusters), dtype=np.int64), 1
            for axis, corner in sorted(zip(self._axes, corners, strict=True), key=lambda pair: not pair[0].cells):
                start = start * axis.count + (corner - axis.low) // (axis.size if axis.cells else 1)
                length = 1 if axis.cells else axis.size
            count += len(start)
            if count > MOST_SPANS:
                raise TooManyError
            parts.append(Spans(start, start + length, clusters).take(inside))
        return joined(parts)

    def in_words(self, low: int, high: int) -> str:
        """``the box at (64, 0) of parameter 0 (out)``: the first of these numbers."""
        del high
        at = [0] * len(self._axes)
        for n in sorted(range(len(at)), key=lambda n: (self._axes[n].cells, -n)):
            axis = self._axes[n]
            low, part = divmod(low, axis.count)
            at[n] = axis.low + part * (axis.size if axis.cells else 1)
        return f"the box at ({', '.join(map(str, at))}) of {self.name}"

    def _corners(self, kinds: Kinds, chosen: Chosen, only: int | None) -> tuple[np.ndarray, list[np.ndarray]]:
        kind, access = chosen
        found = [kinds.values(kind, each, only) for each in access.corner]
        clusters = max((each for each, _ in found), key=len)
        return clusters, [np.resize(_signed(corner), len(clusters)) for _, corner in found]


@dataclass(frozen=True)
class _BoxAxis:
    """A dimension: the size of a box, the least corner, and how many numbers it has: of ``cells``, or of elements."""

    size: int
    low: int
    count: int
    cells: bool


def _signed(value: np.ndarray) -> np.ndarray:
    """A coordinate, which has 32 bits with a sign."""
    found: np.ndarray = ((value.astype(np.int64) + (1 << 31)) & ((1 << 32) - 1)) - (1 << 31)
    return found


_MOST_KINDS = 16
_STORING = frozenset({"st", "red", "atom", "cp", "multimem"})


def writers(kernel: Kernel, words: Sequence[Range]) -> frozenset[int] | None:
    """The positions of what writes these bytes in some CTA; None where that is not known."""
    found = _writes(kernel, words)
    return None if found is None else frozenset(position for position, _ in found)


def written_elsewhere(kernel: Kernel, words: Sequence[Range]) -> bool:
    """Whether another cluster than that of the launch may write these bytes."""
    launch = kernel.launch
    found = _writes(replace(kernel, launch=replace(launch, cta=None, turns=())), words)
    x, y, z = (at // size for at, size in zip(launch.first_cta, launch.cluster, strict=True))
    mine = (z * launch.grid[1] // launch.cluster[1] + y) * (launch.grid[0] // launch.cluster[0]) + x
    return found is None or any(owner != mine for _, owner in found)


def _writes(kernel: Kernel, words: Sequence[Range]) -> set[tuple[int, int]] | None:
    """What writes these bytes: positions, with the numbers of clusters, of which one represents more that are alike."""
    first = read_global(on_global_memory(kernel))
    every = EveryCta(first, asked=False, most=_MOST_KINDS, instructions=_MOST_KINDS * (first.instructions + 1_000))
    stores = {each.position for each in kernel.function.body if each.opcode in _STORING}
    readings = list[GlobalReading]()
    for reading in chain((first,), every):
        if reading.cut or not stores.isdisjoint(reading.left_open):
            return None
        readings.append(reading)
    if not every.complete:
        return None
    clusters, found = every.clusters_of_kinds(), set[tuple[int, int]]()
    kinds = Kinds(clusters, [Evaluation(completed(first.inputs, every.places(each))) for each in clusters])
    try:
        for n, reading in enumerate(readings):
            for access in reading.accesses if len(clusters[n]) else ():
                if access.kind.writes and access.ranges:
                    spans = Memory("").spans(kinds, [(n, access)])
                    for start, end in words:
                        owners = spans.take((spans.start < end) & (spans.end > start)).owner
                        found |= {(access.position, int(owner)) for owner in owners}
    except TooManyError:
        return None
    return found
