"""Tiles by what the source calls them: the destination that a copy's line names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from pipesim.model.ops import Space
from pipesim.model.tables import Tile
from pipesim.ptx.names.guarded import values_copied
from pipesim.ptx.names.paths import group_of, short_names
from pipesim.ptx.names.resolve import Resolver
from pipesim.ptx.text.instruction import Instruction


class CopyInto(NamedTuple):
    """A copy into a range: its position, the offset of the barrier on which it completes, which time it does so."""

    position: int
    barrier: int
    turn: int


def tiles_named_by_source(
    copies: Mapping[tuple[int, int, int], Collection[CopyInto]], body: Sequence[Instruction], resolver: Resolver
) -> Iterator[Tile]:
    """One tile for each array that copies write and each of its CTAs, its slots by address.

    ``copies``: CTA, offset and bytes of each range, and the copies into it. Ranges that lie one after the other are one
    where they complete together on a barrier. The CTAs of a cluster have their arrays at the same places, of which each
    may write a part. An array is left out whose slots are not at equal distances or not written to the end of the last,
    or that is not apart from ranges that have another name or none.
    """
    values = values_copied([[each.position for each in copied] for copied in copies.values()], body, resolver)
    paths: dict[str, str] = {}
    arrays: dict[str, dict[int, int]] = defaultdict(dict)
    ctas: dict[str, set[int]] = defaultdict(set)
    ways: dict[str, dict[tuple[int, int], list[int]]] = defaultdict(lambda: defaultdict(list))
    together: dict[str, dict[tuple[int, int], dict[int, int]]] = defaultdict(lambda: defaultdict(dict))
    for (cta, offset, nbytes), copied in sorted(copies.items(), key=itemgetter(0)):
        positions = {each.position for each in copied}
        sites = [body[at] for at in positions if (source := body[at].source) is not None and source.sure]
        found = {group_of(path)[0]: path for each in sites for path in resolver.paths(each, tile=True)}
        found = found or {values[at]: f"{values[at]}[]" for at in positions if at in values}
        name = next(iter(found)) if len(found) == 1 else ""
        paths |= found if name else {}
        ranges = arrays[name]
        ranges[offset] = max(ranges.get(offset, 0), nbytes)
        ctas[name].add(cta)
        for at in positions:
            ways[name][cta, at].append(offset)
        for each in copied:
            together[name][each[1:]][offset] = nbytes
    shown = short_names(paths)
    for name, ranges in arrays.items():
        begins = _joined(together[name].values())
        wholes: dict[int, int] = defaultdict(int)
        for offset, nbytes in ranges.items():
            first = begins.get(offset, offset)
            wholes[first] = max(wholes[first], offset + nbytes - first)
        on: dict[int, set[int]] = defaultdict(set)
        for (barrier, _), parts in together[name].items():
            on[barrier] |= {begins.get(offset, offset) for offset in parts}
        joined = [[begins.get(offset, offset) for offset in way] for way in ways[name].values()]
        own = all(len(each) == 1 for each in on.values())  # each slot has a barrier
        slots = _slots(wholes, () if own else joined, one="[" not in paths[name]) if name else None
        if slots is not None:
            step, count = slots
            begin, end = min(ranges), min(ranges) + step * count
            rest = ((o, o + nbytes) for other, each in arrays.items() if other != name for o, nbytes in each.items())
            written = end <= max(offset + nbytes for offset, nbytes in ranges.items())
            apart = not any(begin < last and first < end for first, last in rest)
            if written and apart and (count > 1 or not {begin - step, end} & arrays.get("", {}).keys()):
                yield from (Tile(shown[name], Space.SHARED, cta, begin, step, count) for cta in sorted(ctas[name]))


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
