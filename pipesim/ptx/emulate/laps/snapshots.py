"""What the warps of a cluster compute with at a moment: snapshots that share what did not change between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

from pipesim.ptx.emulate.values import OpenAnswer, Value
from pipesim.ptx.free.varying import identity

if TYPE_CHECKING:
    from pipesim.ptx.emulate.cluster import Cluster
    from pipesim.ptx.emulate.memory import Bytes
    from pipesim.ptx.emulate.warp import EmulatedWarp

_PART = 64  #: values that are shared, or are stored again together
Slot = tuple[Any, Any]  #: what holds a value, and its key there
Part = tuple[Value, ...]
KnownBytes = tuple[dict[object, object], ...]


class RegisterSnapshot(NamedTuple):
    """All values at a moment, in the order of :func:`slots_of`, and the other known bytes of shared memory."""

    parts: tuple[Part, ...]
    known: KnownBytes

    def is_like(self, other: RegisterSnapshot) -> bool:
        """Whether both have as many values of each warp."""
        return list(map(len, self.parts)) == list(map(len, other.parts))

    def values(self) -> list[Value]:
        """All values, one after the other."""
        return [value for part in self.parts for value in part]

    def mapped(self, change: Callable[[Value], Value]) -> RegisterSnapshot:
        """With a function of each value that is not a plain number."""
        return self._replace(
            parts=tuple(
                part if set(map(type, part)) == {int} else tuple([v if v.__class__ is int else change(v) for v in part])
                for part in self.parts
            )
        )


class RegisterSnapshots:
    """Takes the snapshots of one run: a large kernel has 70,000 registers, of which few change between two moments."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._parts: dict[EmulatedWarp, tuple[Part, ...]] = {}
        self._known: KnownBytes = ()
        self.stored = 0  #: values that no earlier snapshot shares

    def take(self) -> RegisterSnapshot:
        """What is there now."""
        cluster = self._cluster
        for warp in cluster.warps:
            if warp in cluster.moved or warp not in self._parts:
                self._parts[warp] = self._parts_of(warp)
        cluster.moved.clear()
        known = known_bytes(cluster)
        if known != self._known:
            self._known = known
        parts = tuple(part for warp in cluster.warps for part in self._parts[warp])
        counts = tuple(held[key] for held, key in _counts(cluster))
        return RegisterSnapshot((*parts, counts), self._known)

    def all_moved(self) -> None:
        """Values may have changed that no warp computed."""
        self._cluster.moved.update(self._cluster.warps)

    def _parts_of(self, warp: EmulatedWarp) -> tuple[Part, ...]:
        before, now = self._parts.get(warp, ()), []
        values = _with_named_answers(warp, [held[key] for held, key in _slots_of_warp(warp)])
        for number, first in enumerate(range(0, len(values), _PART)):
            part = tuple(values[first : first + _PART])
            last = before[number] if number < len(before) else ()
            if len(last) == len(part) and all(map(is_, last, part)):
                part = last
            else:
                self.stored += len(part)
            now.append(part)
        return tuple(now)


def known_bytes(cluster: Cluster) -> KnownBytes:
    """The known bytes of shared memory that are in no stored integer, where these are, and what was written over tensor
    maps.
    """
    found = list(map(_bytes_alone, cluster.bytes))
    return (*found, {at: dict(fields) for at, fields in cluster.written_maps.items()}, cluster.maps.snapshot())


def _bytes_alone(memory: Bytes) -> dict[object, object]:
    stored = memory.stored()
    inside = {at + i for at, size in stored.items() for i in range(size)}
    found: dict[object, object] = {at: identity(value) for at, value in memory.known.items() if at not in inside}
    return found | {"stored": tuple(stored.items())}


def slots_of(cluster: Cluster) -> Iterator[Slot]:
    """Where the values are that the warps compute with, in an order that the same moment of two laps shares."""
    for warp in cluster.warps:
        yield from _slots_of_warp(warp)
    yield from _counts(cluster)


def values_of(cluster: Cluster) -> list[Value]:
    """What is in these places, as snapshots have it."""
    found = list[Value]()
    for warp in cluster.warps:
        found += _with_named_answers(warp, [held[key] for held, key in _slots_of_warp(warp)])
    return found + [held[key] for held, key in _counts(cluster)]


def put_values(cluster: Cluster, values: list[Value]) -> None:
    """Let these be in the places; an open answer stays what it is there."""
    for (holder, key), value in zip(slots_of(cluster), values, strict=True):
        if value.__class__ is not OpenAnswer:
            holder[key] = value


def _slots_of_warp(warp: EmulatedWarp) -> Iterator[Slot]:
    for register in range(len(warp.R)):
        yield warp.R, register
    for held in _beside_registers(warp):
        for key in sorted(held):
            yield held, key


def _with_named_answers(warp: EmulatedWarp, values: list[Value]) -> list[Value]:
    """With each open answer named by its order there and by what was asked, which the same moment of two laps shares:
    tries are counted on.
    """
    if OpenAnswer not in map(type, values):
        return values
    names: dict[int, int] = {}
    for asked in (
        *(asked for frame in warp.frames for asked in frame.asked),
        *(v.asked for v in values if isinstance(v, OpenAnswer)),
    ):
        position, cta, offset, parity = warp.tries.get(asked, (0, 0, 0, 0))
        names.setdefault(
            asked, -1 - sum(part << 40 * n for n, part in enumerate((len(names), position, cta, offset, parity)))
        )
    return [OpenAnswer(names[v.asked], v.if_false, v.if_true) if v.__class__ is OpenAnswer else v for v in values]


def _counts(cluster: Cluster) -> Iterator[Slot]:
    """Those of integers in shared memory, of votes at named barriers, of counters in global memory, and of the tiles of
    which any number is handed out.
    """
    for memory in cluster.bytes:
        for address in memory.stored():
            yield memory, address
    for named in cluster.named.values():
        for votes in (named.votes, *named.results.values()):
            yield from ((votes, n) for n in range(len(votes)))
        yield from ((named.reduced, generation) for generation in named.reduced)
    for address in cluster.globals.counted:
        yield cluster.globals.counted, address
    if cluster.image.laps_of_tiles and cluster.image.free_tiles is not None:
        yield cluster.tiles.taken, cluster.image.free_tiles.free.name


def _beside_registers(warp: EmulatedWarp) -> Iterator[dict[Any, Value]]:
    for frame in warp.frames:
        yield from (frame.saved, *(done for _, done in frame.done))
    yield from (warp.local.words, warp.local.whole, warp.local.small)
