"""Data in global memory that CTAs which are followed together hand to each other, as accesses of a flat program.

Only bytes that one CTA writes and another one accesses: accesses within a CTA are not looked at here.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement, pairwise, product

from pipesim.model.ops import Engine, Op, Operation, Space
from pipesim.model.tables import Tile
from pipesim.ptx.emit.record import Range
from pipesim.ptx.emit.weak_loads import is_weak_load
from pipesim.ptx.emulate.cluster import Cluster
from pipesim.ptx.emulate.effects.operands import bytes_of
from pipesim.ptx.emulate.global_memory.global_accesses import AccessKind, GlobalAccess, kind_of, strength_of
from pipesim.ptx.emulate.global_memory.word_memory import STRONG
from pipesim.ptx.emulate.memory import merge_ranges
from pipesim.ptx.text.instruction import Instruction

_MOST_ACCESSES, _MOST_REDUCTIONS = 1 << 14, 64
_BY_BULK_GROUP = (AccessKind.BULK_STORE, AccessKind.BULK_REDUCTION)
_FOLLOWED = (AccessKind.LOAD, AccessKind.STORE, AccessKind.ATOMIC, *_BY_BULK_GROUP)


@dataclass
class GlobalData:
    """The accesses. ``before``: for each agent by the number of its operation those that come before it.

    ``first``: what the launch has written before all of them; ``tiles``: names of the memory. ``open``: a position at
    which it is not known what is accessed, or how, -1 if all is known. ``strong``: strong accesses meet, and are no
    operations. ``unsure``: of an agent's accesses by position why they may not happen, as in ``Program.unsure``.
    """

    before: dict[int, dict[int, list[tuple[Operation, int]]]] = field(default_factory=dict)
    first: list[Operation] = field(default_factory=list)
    tiles: tuple[Tile, ...] = ()
    open: int = -1
    strong: bool = False
    unsure: dict[int, dict[int, int]] = field(default_factory=dict)


def data_between_ctas(cluster: Cluster, talked: list[Range]) -> GlobalData:
    """The accesses to bytes that CTAs share, but for the words by which they talk (``talked``).

    Where two strong accesses meet, they are no race without an order either, but what is read may depend on it, and
    what a store leaves beside atomics: ``open``, unless the launch says that they have to be ordered.
    """
    # what a tensor map loads by which nothing is stored is other memory than what pointers lead to
    recorder, accesses, found = cluster.recorder, cluster.global_accesses, GlobalData()
    assert accesses is not None
    found.unsure = accesses.unsure
    each, read = [one for one in accesses if one.ranges], cluster.code.regions.observations.read
    stored = {one.map for one in accesses if one.map is not None and one.kind.writes}
    others = (one for one in accesses if one.kind.writes or one.map is None or one.map in stored)
    unclear = {one.position for one in others if not one.ranges or one.terms or not one.sure}
    unclear |= accesses.left_open.keys()
    found.open = min(unclear, default=-1 if not accesses.limited else 0)
    body = cluster.code.body
    for one in each:
        weak = not one.kind.writes and not (one.kind is AccessKind.LOAD and body[one.position].has_any(*STRONG))
        weak = weak and not is_weak_load(one, body[one.position])
        if weak and next(_clipped(one.ranges, talked), None) is not None:
            found.open = one.position  # how a copy of a word is ordered with what others do to it
    met = _ordered_bytes(cluster, each, talked, found)
    if not met:
        return found
    base = {cluster.image.pointer_to(first): first for first, _ in met}
    names: dict[str, int] = {}
    for (name, offset), at in base.items():
        names.setdefault(name, at - offset)
    lowest = min(names.values())
    count, copies, width = 0, False, met[-1][1] - lowest
    places, copied = _places_of_reductions(each, met, body)
    several, alike = _of_several(cluster, each), {id(one) for one in each if _alike(cluster, one, of_several=True)}
    ends = sorted({at for one in each if id(one) in alike and not one.terms for part in one.ranges for at in part})
    for one in each:
        clipped = [] if one.terms else list(_clipped(one.ranges, met))
        if id(one) in alike:  # no race is of writes to the same bytes: each is cut where another one ends
            clipped = [part for first, end in clipped for part in _cut(first, end, ends)]
        mine = places.get(id(one), copied)
        count += len(clipped)
        left = one.kind not in _FOLLOWED or (one.kind is AccessKind.BULK_REDUCTION and id(one) not in places)
        if count > _MOST_ACCESSES or (clipped and (left or body[one.position].has("nc"))):
            found.open = one.position
            continue
        for (first, end), n in product(clipped, mine):
            access = recorder.access(Space.GLOBAL, 0, first - lowest + n * width, end - first)
            of_several = any(in_both([(first, end)], several))
            item = cluster.item(_alike(cluster, one, of_several=of_several)) if one.kind.writes else -1
            op: Operation = (int(Op.WRITE if one.kind.writes else Op.READ), access, item)
            if one.kind in _BY_BULK_GROUP:
                op = int(Op.TRANSFER_WRITE), int(Engine.BULK), access, end - first, item
                copies = True
            asks = cluster.launch.strong_data and one.kind.is_atomic and one.position in read
            before = found.before.setdefault(one.agent, {}).setdefault(one.index, [])
            before += [((int(Op.READ), access, -1), one.position)] * asks + [(op, one.position)]
    for n, (first, end) in product(copied, met):
        access = recorder.access(Space.GLOBAL, 0, first - lowest + n * width, end - first)
        found.first.append((int(Op.WRITE), access, cluster.item()))
    tiles = product(copied, _tiles(names, met, lowest))
    found.tiles = tuple(replace(tile, offset=tile.offset + n * width) for n, tile in tiles)
    if copies:
        _leave_out_sources(cluster)
    return found


def _places_of_reductions(
    accesses: list[GlobalAccess], met: list[Range], body: Sequence[Instruction]
) -> tuple[dict[int, list[int]], range]:
    """In which copies of all bytes each bulk reduction is, by its ``id``; and the copies: any other access is in all.

    It has one of its own, so that it meets all but reductions of elements as large as its own. None is in one where
    they are too many.
    """
    bulk = (one for one in accesses if one.kind is AccessKind.BULK_REDUCTION)
    reduced = [one for one in bulk if any(in_both(sorted(one.ranges), met))]
    if len(reduced) > _MOST_REDUCTIONS:
        return {}, range(1)
    sizes = [_element(one, body) for one in reduced]
    places = {
        id(one): [n + 1 for n, other in enumerate(reduced) if other is one or sizes[n] != size]
        for one, size in zip(reduced, sizes, strict=True)
    }
    return places, range(len(reduced) + 1)


def _ordered_bytes(
    cluster: Cluster, accesses: list[GlobalAccess], talked: list[Range], found: GlobalData
) -> list[Range]:
    """The bytes of which accesses have to be ordered; what else CTAs share is ``open``."""
    known = [one for one in accesses if not one.terms]
    met, strong = (list(_less(ranges, talked)) for ranges in _met(cluster, known))
    if cluster.launch.strong_data:
        return merge_ranges([*met, *strong])
    if strong and found.open < 0:
        clipped = (one.position for one in known if next(_clipped(one.ranges, strong), None) is not None)
        found.open, found.strong = next(clipped), True
    return list(_less(met, strong))


def _leave_out_sources(cluster: Cluster) -> None:
    """Groups of bulk stores are complete where what they write is, not where their source is free.

    When the source may be used again is checked with the CTA alone.
    """
    for stream in cluster.recorder.streams:
        for n, (op, position) in enumerate(zip(stream.code, stream.positions, strict=True)):
            each = cluster.code.body[position]
            reads = op[0] == Op.TRANSFER_READ and kind_of(each.opcode, each.modifiers) in _BY_BULK_GROUP
            if reads or (op[0] == Op.WAIT_GROUP and each.has("read")):
                stream.code[n] = int(Op.WORK), 0


def _tiles(names: dict[str, int], met: list[Range], lowest: int) -> Iterator[Tile]:
    """The memory of each pointer, as far as it is shared."""
    starts = sorted((at, name) for name, at in names.items())
    for n, (at, name) in enumerate(starts):
        after = starts[n + 1][0] if n + 1 < len(starts) else 1 << 62
        end = max((end for _, end in met if at < end <= after), default=at)
        if end > at:
            yield Tile(name or "memory", Space.GLOBAL, 0, at - lowest, end - at, 1)


def _met(cluster: Cluster, accesses: list[GlobalAccess]) -> tuple[list[Range], list[Range]]:
    """The bytes that a CTA writes and another one reads or writes, and those where both do so by strong accesses.

    Where both do so by stores that are strong, or by atomics, they need no order; an atomic whose answer is used is a
    load as well.
    """
    streams, body, uses = cluster.recorder.streams, cluster.code.body, cluster.code.regions.uses
    by_agent = _warps_talk(cluster)
    of = (lambda agent: agent) if by_agent else (lambda agent: streams[agent].cta)
    read = frozenset(name for names in uses.reads for name in names)
    kinds: dict[tuple[AccessKind, int, int], dict[int, list[Range]]] = {}  # the last number: how far it is strong
    for one in accesses:
        does = AccessKind.LOAD if not one.kind.writes else AccessKind.STORE
        does = AccessKind.ATOMIC if one.kind.is_atomic else does
        strong = _is_strong(one, body[one.position]) + (one.kind.is_atomic or body[one.position].has_any(*STRONG))
        kinds.setdefault((does, _element(one, body), strong), {}).setdefault(of(one.agent), []).extend(one.ranges)
        if does is AccessKind.ATOMIC and not read.isdisjoint(uses.writes[one.position]):
            answers = kinds.setdefault((AccessKind.LOAD, _element(one, body), strong), {})
            answers.setdefault(of(one.agent), []).extend(one.ranges)
    merged = {key: {cta: merge_ranges(each) for cta, each in kind.items()} for key, kind in kinds.items()}
    found: tuple[list[Range], list[Range]] = [], []
    for (first, ones), (second, others) in combinations_with_replacement(merged.items(), 2):
        (one_does, one_size, one_strong), (does, size, strong) = first, second
        pairs = product(ones.items(), others.items()) if one_does.writes or does.writes else ()
        for (who, mine), (other, its) in pairs:
            needs = 1 if by_agent and streams[who].cta == streams[other].cta else 2
            both = min(one_strong, strong) >= needs and one_size == size
            if who != other and not (one_does is does and both):
                found[both].extend(in_both(mine, its))
    return merge_ranges(found[0]), merge_ranges(found[1])


def _warps_talk(cluster: Cluster) -> bool:
    """Whether several warps of a CTA use words by which CTAs talk: what these warps share has to be ordered as well."""
    words, streams = cluster.words, cluster.recorder.streams
    asked = words.asked if words is not None else ()
    agents = {e.agent for e in (words.events if words is not None else ()) if e.address in asked}
    return len({streams[agent].cta for agent in agents}) < len(agents)


def _is_strong(one: GlobalAccess, each: Instruction) -> bool:
    """Whether an access is strong for threads of other CTAs."""
    return (one.kind.is_atomic or each.has_any(*STRONG)) and not strength_of(each).is_narrow


def _of_several(cluster: Cluster, accesses: list[GlobalAccess]) -> list[Range]:
    """The bytes that atomics or strong stores of several CTAs change."""
    by_cta: dict[int, list[Range]] = {}
    for one in accesses:
        if one.kind.writes and _is_strong(one, cluster.code.body[one.position]):
            by_cta.setdefault(cluster.recorder.streams[one.agent].cta, []).extend(one.ranges)
    found, seen = list[Range](), list[Range]()
    for ranges in map(merge_ranges, by_cta.values()):
        found, seen = [*found, *in_both(seen, ranges)], merge_ranges([*seen, *ranges])
    return merge_ranges(found)


def _alike(cluster: Cluster, one: GlobalAccess, *, of_several: bool) -> str | None:
    """What writes have in common that are strong for each other, so that they need no order: those of one CTA, or
    of several; None of one that is not.
    """
    each, cta = cluster.code.body[one.position], cluster.recorder.streams[one.agent].cta
    stores = one.kind is AccessKind.STORE and each.has_any(*STRONG) and not cluster.launch.strong_data
    if not stores and one.kind is not AccessKind.ATOMIC:
        return None
    return f"{'all' if of_several and _is_strong(one, each) else cta} {_element(one, cluster.code.body)}"


def _element(one: GlobalAccess, body: Sequence[Instruction]) -> int:
    """The bytes of an element, below 0 where it is not that of a bulk reduction.

    Accesses that overlap in part, as those of one element and of two packed ones, and a bulk reduction and what is of
    another proxy, are not morally strong (PTX ISA, "Morally strong operations", "Packed Data-types").
    """
    size = bytes_of(body[one.position].modifiers[-1].removesuffix("x2"))
    return size if one.kind is AccessKind.BULK_REDUCTION else -size


def _cut(first: int, end: int, ends: list[int]) -> Iterator[Range]:
    """The parts of a range that lie between such places."""
    return pairwise([first, *ends[bisect_right(ends, first) : bisect_left(ends, end)], end])


def in_both(one: list[Range], other: list[Range]) -> Iterator[Range]:
    """The bytes of both, of ranges in order."""
    i = j = 0
    while i < len(one) and j < len(other):
        first, end = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if first < end:
            yield first, end
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1


def _less(ranges: list[Range], taken: list[Range]) -> Iterator[Range]:
    """The ranges without some bytes."""
    for first, end in ranges:
        for a, b in taken:
            if a < end and first < b:
                if first < a:
                    yield first, a
                first = max(first, b)
        if first < end:
            yield first, end


def _clipped(ranges: Iterable[Range], met: list[Range]) -> Iterator[Range]:
    """As much of the ranges as lies in those that are met."""
    starts = [first for first, _ in met]
    for first, end in ranges:
        for a, b in met[max(bisect_right(starts, first) - 1, 0) :]:
            if a >= end:
                break
            if max(a, first) < min(b, end):
                yield max(a, first), min(b, end)
