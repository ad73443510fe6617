"""Tiles by what the source calls them: the destination that a copy's line names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter

from pipesim.model.ops import Space
from pipesim.model.tables import Tile
from pipesim.ptx.names.paths import group_of, short_names
from pipesim.ptx.names.resolve import Resolver
from pipesim.ptx.text.instruction import Instruction


def tiles_named_by_source(
    copies: Mapping[tuple[int, int, int], Collection[int]], body: Sequence[Instruction], resolver: Resolver
) -> Iterator[Tile]:
    """One tile for each array that copies write and each of its CTAs, its slots by address.

    ``copies``: CTA, offset and bytes of each range, and the positions of the copies into it. The CTAs of a cluster have
    their arrays at the same places, of which each may write a part. An array is left out whose slots are not at equal
    distances or not written to the end of the last, or that is not apart from ranges that have another name or none.
    """
    paths: dict[str, str] = {}
    arrays: dict[str, dict[int, int]] = defaultdict(dict)
    ctas: dict[str, set[int]] = defaultdict(set)
    ways: dict[str, dict[tuple[int, int], list[int]]] = defaultdict(lambda: defaultdict(list))
    for (cta, offset, nbytes), positions in sorted(copies.items(), key=itemgetter(0)):
        sites = [body[at] for at in positions if (source := body[at].source) is not None and source.sure]
        found = {group_of(path)[0]: path for each in sites for path in resolver.paths(each, tile=True)}
        name = next(iter(found)) if len(found) == 1 else ""
        paths |= found if name else {}
        ranges = arrays[name]
        ranges[offset] = max(ranges.get(offset, 0), nbytes)
        ctas[name].add(cta)
        for at in positions:
            ways[name][cta, at].append(offset)
    shown = short_names(paths)
    for name, ranges in arrays.items():
        slots = _slots(ranges, ways[name].values(), one="[" not in paths[name]) if name else None
        if slots is not None:
            step, count = slots
            begin, end = min(ranges), min(ranges) + step * count
            rest = ((o, o + nbytes) for other, each in arrays.items() if other != name for o, nbytes in each.items())
            written = end <= max(offset + nbytes for offset, nbytes in ranges.items())
            apart = not any(begin < last and first < end for first, last in rest)
            if written and apart and (count > 1 or not {begin - step, end} & arrays.get("", {}).keys()):
                yield from (Tile(shown[name], Space.SHARED, cta, begin, step, count) for cta in sorted(ctas[name]))


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
