"""Ordinary accesses of a warp: between two operations that synchronise, the union of the bytes that its lanes touch."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pipesim.model.barrier import BarrierState
from pipesim.model.ops import Engine, Op, Space
from pipesim.ptx.emit.record import Place, Range, StreamRecorder
from pipesim.ptx.emulate.global_memory.global_accesses import AccessKind, kind_of, lanes_of_address
from pipesim.ptx.emulate.lanes.apart import LanesApart
from pipesim.ptx.emulate.memory import Items, merge_ranges
from pipesim.ptx.emulate.stop import Notes
from pipesim.ptx.emulate.values import Value
from pipesim.ptx.text.instruction import Instruction

Where = tuple[Space, int]
_MBARRIER_BYTES = 8
_MERGED = 1 << 10  #: ranges that are held as they come


@dataclass
class PendingAccesses:
    """What a warp has touched since its last operation. ``issued``: the transfers since then, so that each is one.

    ``read_bounds``, ``write_bounds``: the lowest and the highest byte of all that was read and written.
    """

    reads: dict[Where, list[Range]] = field(default_factory=dict)
    writes: dict[Where, list[Range]] = field(default_factory=dict)
    values: dict[Where, dict[int, object]] = field(default_factory=dict)
    stores: dict[Where, dict[int, int]] = field(default_factory=dict)  #: by first byte: the position that wrote it last
    copies: dict[Where, list[Range]] = field(default_factory=dict)  #: of cp.async
    read_bounds: dict[Where, Range] = field(default_factory=dict)
    write_bounds: dict[Where, Range] = field(default_factory=dict)
    position: int = -1  #: of the first of them; of the first copy:
    copied_at: int = -1
    maybe: int = 0  #: whether it is not sure that they happen: as of the warp
    issued: set[tuple[int, ...]] = field(default_factory=set)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to record."""
        return not (self.reads or self.writes or self.copies)


class RecordingCluster(Protocol):
    """What recording an access needs of the cluster."""

    recorder: StreamRecorder
    notes: Notes
    barriers: dict[Place, BarrierState]
    stored_by: dict[object, int]

    def item(self, value: object = None) -> int:
        """A number for what a range of bytes holds."""

    def items_of(self, space: Space, cta: int) -> Items:
        """The items of a memory."""


class AccessingWarp(Protocol):
    """What it needs of the warp."""

    agent: int
    pending: PendingAccesses
    stores: dict[tuple[tuple[int, ...], tuple[int, int, int]], int]
    mask: int
    apart: LanesApart

    @property
    def unsure(self) -> int:
        """Whether what it does may not happen, as in ``Program.unsure``; 0 where it is sure to."""


def bounds(ranges: list[Range]) -> Range:
    """The lowest byte of some ranges, and the one after the highest."""
    if len(ranges) == 1:
        return ranges[0]
    return min((first for first, _ in ranges), default=0), max((end for _, end in ranges), default=0)


def overlap(one: Range | None, other: Range) -> bool:
    """Whether two ranges share bytes."""
    return one is not None and one[0] < other[1] and other[0] < one[1]


def _share_bytes(held: list[Range], ranges: list[Range]) -> bool:
    if not held or not overlap(bounds(held), bounds(ranges)):
        return False
    one, other, both = (sum(end - first for first, end in merge_ranges(each)) for each in (held, ranges, held + ranges))
    return both < one + other


def _hull(one: Range | None, other: Range) -> Range:
    return other if one is None else (min(one[0], other[0]), max(one[1], other[1]))


def _extend(held: list[Range], ranges: list[Range]) -> None:
    before = len(held) // _MERGED
    held.extend(ranges)
    if len(held) // _MERGED > before:
        held[:] = merge_ranges(held)


def read(cluster: RecordingCluster, warp: AccessingWarp, where: Where, ranges: list[Range], position: int) -> None:
    """The warp loads these bytes."""
    pending, there = _pending(cluster, warp, position), bounds(ranges)
    if overlap(pending.write_bounds.get(where), there) or where in pending.copies:
        flush(cluster, warp)
    pending.position = position if pending.empty else pending.position
    _extend(pending.reads.setdefault(where, []), ranges)
    pending.read_bounds[where] = _hull(pending.read_bounds.get(where), there)


def _pending(cluster: RecordingCluster, warp: AccessingWarp, position: int) -> PendingAccesses:
    """What the warp has touched, all of it as sure as what comes now."""
    pending, unsure = warp.pending, warp.unsure
    if unsure != pending.maybe:
        flush(cluster, warp)
        pending.maybe = unsure
    warp.apart.access(warp.mask, position)
    return pending


def write(
    cluster: RecordingCluster,
    warp: AccessingWarp,
    where: Where,
    ranges: list[Range],
    starts: Iterable[int],
    value: object,
    position: int,
) -> None:
    """The warp stores these bytes; ``value``: what is stored from each of ``starts`` on, None if it is not known."""
    pending = _pending(cluster, warp, position)
    pending.position = position if pending.empty else pending.position
    _extend(pending.writes.setdefault(where, []), ranges)
    pending.write_bounds[where] = _hull(pending.write_bounds.get(where), bounds(ranges))
    starts = tuple(starts)
    pending.values.setdefault(where, {}).update(dict.fromkeys(starts, value))
    pending.stores.setdefault(where, {}).update(dict.fromkeys(starts, position))


def copy(cluster: RecordingCluster, warp: AccessingWarp, where: Where, ranges: list[Range], position: int) -> None:
    """The warp issues ``cp.async`` into these bytes. Nothing orders two of them."""
    pending = warp.pending
    warp.apart.access(warp.mask, position)
    if _share_bytes(pending.copies.get(where, []), ranges):
        flush(cluster, warp)
    pending.position = position if pending.empty else pending.position
    pending.copied_at = pending.copied_at if pending.copies else position
    _extend(pending.copies.setdefault(where, []), ranges)


def flush(cluster: RecordingCluster, warp: AccessingWarp) -> None:
    """Record what is pending: reads, then writes, then copies."""
    pending = warp.pending
    if pending.empty:
        return
    reads, writes, values, copies = pending.reads, pending.writes, pending.values, pending.copies
    stores, pending.stores = pending.stores, {}
    pending.reads, pending.writes, pending.values, pending.copies = {}, {}, {}, {}
    pending.read_bounds, pending.write_bounds = {}, {}
    record, at, agent = cluster.recorder, pending.position, warp.agent
    begin = len(record.streams[agent].code)
    for (space, cta), ranges in reads.items():
        if space == Space.SHARED:
            _record_reads(cluster, warp, at, cta, ranges)
            continue
        for first, end in merge_ranges(ranges):
            for low, high, item in cluster.items_of(space, cta).inside(first, end):
                record.add(agent, at, Op.READ, record.access(space, cta, low, high - low), item)
    for (space, cta), ranges in writes.items():
        stored, by = values[space, cta], stores[space, cta]
        starts = sorted(stored)
        for first, end in merge_ranges(ranges):
            here = starts[bisect_left(starts, first) : bisect_left(starts, end)]
            at = by[here[0]]
            if all(stored[a] is not None for a in here):
                item = cluster.item(("stored", tuple((a - first, stored[a]) for a in here)))
            else:
                item = _item_of_stores(cluster, warp, tuple({by[a]: None for a in here}), (cta, first, end))
            cluster.items_of(space, cta).store(first, end, item)
            record.add(agent, at, Op.WRITE, record.access(space, cta, first, end - first), item)
    for (space, cta), ranges in copies.items():
        for first, end in merge_ranges(ranges):
            item = cluster.item()
            cluster.items_of(space, cta).store(first, end, item)
            access = record.access(space, cta, first, end - first)
            record.add(agent, pending.copied_at, Op.TRANSFER_WRITE, Engine.CP_ASYNC, access, end - first, item)
    if pending.maybe:
        stream = record.streams[agent]
        stream.unsure |= dict.fromkeys(range(begin, len(stream.code)), pending.maybe)
    pending.issued.clear()


def _record_reads(cluster: RecordingCluster, warp: AccessingWarp, at: int, cta: int, ranges: list[Range]) -> None:
    """Reads of shared memory: neighbours, with what is between them, are one read where no answer can differ.

    That is where all bytes from the first to the last hold one item, and nothing is written to a part of them: then
    whatever conflicts with the whole conflicts with each range.
    """
    items, recorder, unsure = cluster.items_of(Space.SHARED, cta), cluster.recorder, warp.pending.maybe
    parts: list[Range] = []
    held = -1
    for first, end in merge_ranges(ranges):
        for low, high, item in items.inside(first, end):
            if item < 0 and _is_barrier(cluster, cta, low, high):
                continue
            if parts and item == held:
                begin = parts[0][0]
                if not recorder.is_cut(begin, high) and len(items.inside(begin, high)) == 1:
                    parts.append((low, high))
                    continue
            if parts:
                recorder.read_as_one(warp.agent, at, cta, parts, held, unsure)
            parts, held = [(low, high)], item
    if parts:
        recorder.read_as_one(warp.agent, at, cta, parts, held, unsure)


def _item_of_stores(
    cluster: RecordingCluster, warp: AccessingWarp, at: tuple[int, ...], where: tuple[int, int, int]
) -> int:
    """What stores of unknown values leave: the same for warps that run the same stores on just the same bytes.

    Compilers let several warps hold and store the same part of a tile. That their values are equal is an assumption,
    noted where it is needed.
    """
    count = warp.stores[at, where] = warp.stores.get((at, where), 0) + 1
    key = ("stores", at, where, count)
    owner = cluster.stored_by.setdefault(key, warp.agent)
    if owner != warp.agent:
        cluster.notes.equal_stores.update(at)
    return cluster.item(key)


def access_global(
    cluster: RecordingCluster, warp: AccessingWarp, each: Instruction, address: Value, size: int,
    operations: Sequence[Range], base: int,
) -> None:  # fmt: skip
    """An access of global memory as an operation, as far as it is one of the bytes, in order, that are ``operations``.

    What a bulk copy writes is complete when its group is; that it waits for its source alone is not an operation then.
    Offsets of operations are from ``base`` on, where the memory begins: an address may be above what a program has.
    """
    starts = sorted({int.__int__(one) for one in lanes_of_address(address, warp.mask)})
    where, kind = (Space.GLOBAL, 0), kind_of(each.opcode, each.modifiers)
    whole = [(start, start + size) for start in starts]
    ranges = list(_inside(whole if kind is AccessKind.ATOMIC else merge_ranges(whole), operations, base))
    if not ranges:
        return
    if warp.pending.position != each.position or kind not in (AccessKind.LOAD, AccessKind.STORE):
        flush(cluster, warp)
    if kind is AccessKind.LOAD:
        read(cluster, warp, where, ranges, each.position)
    elif kind is AccessKind.STORE:
        write(cluster, warp, where, ranges, [first for first, _ in ranges], None, each.position)
    for first, end in ranges if kind in (AccessKind.ATOMIC, AccessKind.BULK_STORE) else ():
        if kind is AccessKind.ATOMIC:
            write(cluster, warp, where, [(first, end)], [first], ("atomic",), each.position)
            flush(cluster, warp)
            continue
        item, access = cluster.item(), cluster.recorder.access(Space.GLOBAL, 0, first, end - first)
        cluster.items_of(*where).store(first, end, item)
        cluster.recorder.add(warp.agent, each.position, Op.TRANSFER_WRITE, Engine.BULK, access, end - first, item)


def _inside(ranges: Iterable[Range], operations: Sequence[Range], base: int) -> Iterator[Range]:
    """The parts of ranges that are operations, as offsets from ``base`` on."""
    for first, end in ranges:
        for low, high in operations[max(bisect_left(operations, (first + 1,)) - 1, 0) :]:
            if low >= end:
                break
            if first < high:
                yield max(first, low) - base, min(end, high) - base


def _is_barrier(cluster: RecordingCluster, cta: int, first: int, end: int) -> bool:
    """Whether these bytes are part of an mbarrier's: reading those is not an access to data."""
    return any((cta, at) in cluster.barriers for at in range(first & ~7, end, _MBARRIER_BYTES))


def record(cluster: RecordingCluster, warp: AccessingWarp, position: int, *operation: int) -> None:
    """An operation of the warp, after what it has touched before."""
    flush(cluster, warp)
    warp.pending.issued.clear()
    cluster.recorder.add(warp.agent, position, *operation)


def transfer(cluster: RecordingCluster, warp: AccessingWarp, position: int, *operation: int) -> bool:
    """A transfer of the warp; the same one again, with nothing in between that synchronises, is left out: False."""
    flush(cluster, warp)
    if operation in warp.pending.issued:
        return False
    warp.pending.issued.add(operation)
    cluster.recorder.add(warp.agent, position, *operation)
    return True
