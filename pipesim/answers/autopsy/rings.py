"""Rings of barriers without a name: those that one instruction of a warp goes through again and again, stage by stage.

That is the address arithmetic of the code, as far as it was followed: a loop that was unrolled by the number of stages
has an instruction for each, and shows no ring.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from pipesim.answers.autopsy.suppliers import WalkedWarp
from pipesim.answers.autopsy.walks import OFFSET
from pipesim.coredump.sass.sync import SassSync

_GOES = frozenset({
    SassSync.WAIT, SassSync.ARRIVE, SassSync.EXPECT, SassSync.CP_ASYNC_ARRIVE, SassSync.COPY, SassSync.TENSOR_COPY,
})  # fmt: skip
_WORD = 8  #: bytes of a barrier


class RingStage(NamedTuple):
    """Which element of which ring a barrier is. ``start``: the address of the first one."""

    start: int
    number: int
    of: int

    def __str__(self) -> str:
        return f"ring at {self.start:#x} [{self.number} of {self.of}]"


def stages_of(warps: Sequence[WalkedWarp]) -> dict[int, RingStage]:
    """The stages of rings by the addresses of their barriers in the shared memory of a CTA."""
    rings: list[range] = []
    for ring in sorted(_gone_through(warps), key=lambda each: (-len(each), each.start)):
        near = [n for n, each in enumerate(rings) if each.step == ring.step and not set(each).isdisjoint(ring)]
        if near:
            parts = [ring, *(rings[n] for n in near)]
            rings = [each for n, each in enumerate(rings) if n not in near]
            ring = range(min(each.start for each in parts), max(each.stop for each in parts), ring.step)
        elif any(not set(each).isdisjoint(ring) for each in rings):
            continue  # some stages of a longer one
        rings.append(ring)
    return {address: RingStage(each.start, n, len(each)) for each in rings for n, address in enumerate(each)}


def _gone_through(warps: Sequence[WalkedWarp]) -> Iterator[range]:
    """The barriers that single instructions of a warp go through with one stride, and from the last to the first."""
    ways: defaultdict[tuple[str, int, int], list[int]] = defaultdict(list)
    for warp in warps:
        for event in (*warp.walk.behind, *warp.walk.ahead):
            if event.sync.kind in _GOES and event.address is not None and not event.addresses:
                ways[warp.name, event.index, event.lanes].append(event.address & OFFSET)
    for way in ways.values():
        start, stop = min(way), max(way)
        step = min((each - start for each in set(way) - {start}), default=0)
        if step and not step % _WORD:
            ring = range(start, stop + step, step)
            turns = {(b - a) // step % len(ring) for a, b in pairwise(way)}
            if set(way) == set(ring) and len(turns) == 1:
                yield ring
