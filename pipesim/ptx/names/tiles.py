"""Tiles by what the source calls them: the destination that a copy's line names."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from pipesim.model.ops import Space
from pipesim.model.tables import Tile
from pipesim.ptx.names.guarded import values_copied
from pipesim.ptx.names.paths import group_of, short_names
from pipesim.ptx.names.resolve import Resolver
from pipesim.ptx.text.instruction import Frame, Instruction


class CopyInto(NamedTuple):
    """A copy into a range: its position, the offset of the barrier on which it completes, which time it does so."""

    position: int
    barrier: int
    turn: int


Range: TypeAlias = tuple[int, int, int]  #: CTA, offset, bytes


class _Array:
    """What copies write under one name: how many bytes at each offset, and in which CTAs."""

    def __init__(self) -> None:
        self.ranges: dict[int, int] = {}
        self.ctas: set[int] = set()
        self._ways: dict[tuple[int, int], list[int]] = defaultdict(list)  # of each copy of a CTA
        self._together: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)  # that completes on a barrier

    def add(self, place: Range, copied: Iterable[CopyInto]) -> None:
        """Copies also write this range."""
        cta, offset, nbytes = place
        self.ranges[offset] = max(self.ranges.get(offset, 0), nbytes)
        self.ctas.add(cta)
        for at in {each.position for each in copied}:
            self._ways[cta, at].append(offset)
        for each in copied:
            self._together[each[1:]][offset] = nbytes

    def slots(self, *, one: bool) -> tuple[int, int] | None:
        """Bytes of a slot and how many there are; None where it is not certain. ``one``: no element is named."""
        begins = _joined(self._together.values())
        wholes: dict[int, int] = defaultdict(int)
        for offset, nbytes in self.ranges.items():
            first = begins.get(offset, offset)
            wholes[first] = max(wholes[first], offset + nbytes - first)
        on: dict[int, set[int]] = defaultdict(set)
        for (barrier, _), parts in self._together.items():
            on[barrier] |= {begins.get(offset, offset) for offset in parts}
        joined = [[begins.get(offset, offset) for offset in way] for way in self._ways.values()]
        own = all(len(each) == 1 for each in on.values())  # each slot has a barrier
        return _slots(wholes, () if own else joined, one=one)

    def ends_with(self, end: int) -> bool:
        """Whether it is written as far as to this offset."""
        return end <= max(offset + nbytes for offset, nbytes in self.ranges.items())

    def meets(self, begin: int, end: int) -> bool:
        """Whether some of it lies there."""
        return any(begin < offset + nbytes and offset < end for offset, nbytes in self.ranges.items())


def tiles_named_by_source(
    copies: Mapping[Range, Collection[CopyInto]],
    body: Sequence[Instruction],
    resolver: Resolver,
    barriers: Mapping[int, tuple[str, int]],
) -> Iterator[Tile]:
    """One tile for each array that copies write and each of its CTAs, its slots by address.

    ``copies``: those into each range; ``barriers``: array and element of each, by offset. Ranges that lie one after the
    other are one where they complete together on a barrier. The CTAs of a cluster have their arrays at the same places,
    of which each may write a part. An array is left out whose slots are not at equal distances or not written to the
    end of the last, or that is not apart from ranges that have another name or none.
    """
    said = _names_of_ranges(copies, body, resolver, barriers)
    paths: dict[str, str] = {}
    arrays: dict[str, _Array] = defaultdict(_Array)
    for place, copied in sorted(copies.items(), key=itemgetter(0)):
        name = next(iter(said[place])) if len(said[place]) == 1 else ""
        paths |= said[place] if name else {}
        arrays[name].add(place, copied)
    shown = short_names(paths)
    unnamed = arrays[""].ranges.keys()
    for name, path in paths.items():
        array = arrays[name]
        slots = array.slots(one="[" not in path)
        if slots is None:
            continue
        step, count = slots
        begin = min(array.ranges)
        end = begin + step * count
        apart = not any(other.meets(begin, end) for other in arrays.values() if other is not array)
        if array.ends_with(end) and apart and (count > 1 or not {begin - step, end} & unnamed):
            yield from (Tile(shown[name], Space.SHARED, cta, begin, step, count) for cta in sorted(array.ctas))


def _names_of_ranges(
    copies: Mapping[Range, Collection[CopyInto]],
    body: Sequence[Instruction],
    resolver: Resolver,
    barriers: Mapping[int, tuple[str, int]],
) -> Mapping[Range, Mapping[str, str]]:
    """The names that the source has for each range, with the path of each: one, several where it is not clear, none."""
    said: dict[Range, Mapping[str, str]] = {}
    sure = _with_sure_places({each.position for copied in copies.values() for each in copied}, body)
    positions = {place: {each.position for each in copied} for place, copied in copies.items()}
    for place, mine in positions.items():
        sites = [body[at] for at in mine & sure]
        said[place] = {group_of(path)[0]: path for each in sites for path in resolver.paths(each, tile=True)}
    if not all(said.values()):
        values = values_copied(list(positions.values()), body, resolver)
        of_values = ({values[at]: f"{values[at]}[]" for at in mine if at in values} for mine in positions.values())
        said = {place: said[place] or named for place, named in zip(positions, of_values, strict=True)}
    rings = list(_rings(copies, barriers))
    said |= dict(_shared(said, copies, rings, body, resolver))
    return said | dict(_as_on_other_elements(said, rings))


def _with_sure_places(positions: Collection[int], body: Sequence[Instruction]) -> set[int]:
    """The copies of which it is sure into which places their line was inlined.

    Also where the text says it once for what a copy's function computes and for the copy: it is the first copy since,
    and the function's earlier places have had theirs.
    """
    found: set[int] = set()
    had: set[tuple[Frame, ...]] = set()
    functions = {source.frames[-1].function for at in positions if (source := body[at].source) and not source.sure}
    places: dict[str, set[tuple[Frame, ...]]] = defaultdict(set)
    for at in range(max(positions, default=-1) + 1):
        source = body[at].source
        if source is None:
            continue
        for n, frame in enumerate(source.frames if functions else ()):
            if frame.function in functions:
                places[frame.function].add(source.frames[:n])
        if at in positions:
            outer = source.frames[:-1]
            if source.sure or (outer not in had and places[source.frames[-1].function] <= had | {outer}):
                found.add(at)
            had.add(outer)
    return found


def _rings(
    copies: Mapping[Range, Collection[CopyInto]], barriers: Mapping[int, tuple[str, int]]
) -> Iterator[list[list[Range]]]:
    """The ranges whose copies complete on one element of an array of barriers, in the order of the code, element by
    element of those that have as many bytes in each range.
    """
    on: dict[tuple[int, int], dict[int, Range]] = defaultdict(dict)
    for place, copied in copies.items():
        for each in copied:
            on[place[0], each.barrier][each.position] = place
    alike: dict[tuple[int, str, tuple[int, ...]], list[list[Range]]] = defaultdict(list)
    for (cta, barrier), at in on.items():
        ranges = list(dict.fromkeys(at[position] for position in sorted(at)))
        if barrier in barriers:
            alike[cta, barriers[barrier][0], tuple(place[2] for place in ranges)].append(ranges)
    yield from alike.values()


def _shared(
    said: Mapping[Range, Mapping[str, str]],
    copies: Mapping[Range, Collection[CopyInto]],
    rings: Iterable[Sequence[Sequence[Range]]],
    body: Sequence[Instruction],
    resolver: Resolver,
) -> Iterator[tuple[Range, Mapping[str, str]]]:
    """The names of rings of which a slot is written under several: ``k+v``, of stages that take turns.

    Also by lines that are not sure, if one of the names is, and none is surely that of another ring's ranges.
    """
    lines = {
        place: {
            group_of(path)[0]: None
            for at in sorted({each.position for each in copied})
            for path in resolver.paths(body[at], tile=True) or ("",)
        }
        for place, copied in copies.items()
    }
    for ring in rings:
        mine = {place for ranges in ring for place in ranges}
        found = {name: None for ranges in ring for place in ranges for name in lines[place]}
        sure = {name for place in mine for name in said[place]}
        elsewhere = {name for place, known in said.items() if place not in mine for name in known}
        in_all = all(
            {name for place in column for name in lines[place]} == found.keys() for column in zip(*ring, strict=True)
        )
        shared = any(len(lines[place]) > 1 for place in mine)
        if shared and in_all and sure and sure <= found.keys() and not found.keys() & {"", *elsewhere}:
            joined = "+".join(found)
            yield from ((place, {joined: f"{joined}[]"}) for place in mine)


def _as_on_other_elements(
    said: Mapping[Range, Mapping[str, str]], rings: Iterable[Sequence[Sequence[Range]]]
) -> Iterator[tuple[Range, Mapping[str, str]]]:
    """The names of ranges of which no line is sure, as of a loop that nvcc unrolled.

    They are those of the ranges whose copies, in the same order and of as many bytes, complete on another element of
    the same array of barriers.
    """
    for elements in rings:
        named = [[said[place] for place in ranges] for ranges in elements]
        whole = {tuple(map(tuple, known)): known for known in named if all(len(found) == 1 for found in known)}
        for model in whole.values() if len(whole) == 1 else ():
            for ranges, known in zip(elements, named, strict=True):
                if all(not own or own.keys() == found.keys() for own, found in zip(known, model, strict=True)):
                    yield from ((at, found) for at, own, found in zip(ranges, known, model, strict=True) if not own)


def _joined(together: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Where the whole begins of which a range is a part, by offset, of ranges that complete together."""
    begins: dict[int, int] = {}
    for parts in together:
        if all(offset + parts[offset] == after for offset, after in pairwise(parts)):
            begins |= dict.fromkeys(parts, min(parts))
    return begins


def _slots(ranges: Mapping[int, int], ways: Iterable[Sequence[int]], *, one: bool) -> tuple[int, int] | None:
    """Bytes of a slot and how many there are; None where it is not certain. ``one``: no element is named.

    An instruction that writes several ranges writes one of each slot, of which others may write the rest.
    """
    begin, end = min(ranges), max(offset + nbytes for offset, nbytes in ranges.items())
    if one:
        return end - begin, 1
    repeated = {after - before for each in ways for before, after in pairwise(sorted(set(each)))}
    steps = repeated or {after - before for before, after in pairwise(ranges)} or {end - begin}
    step = min(steps)
    if len(steps) > 1 or any((offset - begin) % step + nbytes > step for offset, nbytes in ranges.items()):
        return None
    return step, -(-(end - begin) // step)
