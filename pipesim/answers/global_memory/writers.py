"""Which instructions of a kernel write some bytes of global memory in any CTA of the grid."""

from __future__ import annotations

from collections.abc import Sequence

from pipesim.answers.every_cta.conditions import Evaluation, completed
from pipesim.answers.every_cta.kinds import EveryCta
from pipesim.answers.global_memory.memories import Kinds, Memory
from pipesim.answers.global_memory.reading import read_global
from pipesim.answers.global_memory.spans import TooManyError
from pipesim.ptx.emit.record import Range
from pipesim.ptx.emulation import Kernel, on_global_memory

_MOST_KINDS = 16


def writers(kernel: Kernel, words: Sequence[Range]) -> frozenset[int] | None:
    """The positions of what writes these bytes in some CTA; None where that is not known."""
    first = read_global(on_global_memory(kernel))
    every = EveryCta(first, asked=False, most=_MOST_KINDS, instructions=_MOST_KINDS * (first.instructions + 1_000))
    readings = [first, *every]
    stores = {each.position for each in kernel.function.body if each.opcode in ("st", "red", "atom", "cp")}
    if not every.complete or any(each.cut or not stores.isdisjoint(each.left_open) for each in readings):
        return None
    clusters, found = every.clusters_of_kinds(), set[int]()
    kinds = Kinds(clusters, [Evaluation(completed(first.inputs, every.places(each))) for each in clusters])
    try:
        for n, reading in enumerate(readings):
            for access in reading.accesses if len(clusters[n]) else ():
                if access.kind.writes and access.ranges:
                    spans = Memory("").spans(kinds, [(n, access)])
                    if any(((spans.start < end) & (spans.end > start)).any() for start, end in words):
                        found.add(access.position)
    except TooManyError:
        return None
    return frozenset(found)
