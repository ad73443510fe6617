"""The order in which the CTAs of a launch wrote words of global memory, from its records.

Where answers of atomics decide what a warp does, its path is that of the order in which the CTAs came. Full records
name their sites, so that the accesses to words can be read without the path: those of one lane in their order, the
atomics that count on one word by what they returned, all else by its time. The program is then read with the writes in
this order; whether it is what the kernel did is decided after that, by every value.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

from hwkernels.records.encodings import FULL_SEQUENCE, FULL_SITE, SEQUENCE_PERIOD
from hwkernels.rewriter.instrument import RewrittenPtx
from hwkernels.rewriter.layout import StreamKey
from hwkernels.rewriter.sites import PAYLOAD, WordAccess
from hwkernels.rewriter.streams import NOTHING, LaneStream
from hwkernels.rewriter.word_sites import followed_grid

_MHZ = 1_980  #: of an SM, where its own rate is not known


@dataclass(frozen=True)
class _Write:
    """A write that a stream shows. ``counts``: an atomic that adds, whose answer says how many came before it."""

    cta: int
    address: int
    value: int
    time: int
    counts: bool


def in_turn(kernel: RewrittenPtx, streams: Mapping[StreamKey, LaneStream]) -> RewrittenPtx:
    """The kernel with its words written in the order of these streams; as it is where no path depends on that."""
    found = kernel.extraction.words
    if found is None or not kernel.words or not found.observed:
        return kernel
    each = [list(writes(kernel, key, stream)) for key, stream in streams.items()]
    turns = tuple(_in_order(each))
    grid = followed_grid(kernel.kernel, turns)
    if grid is None:
        return kernel
    paths = tuple(grid.cluster.recorder.streams)
    return replace(
        kernel, kernel=grid.kernel, extraction=grid.extraction, streams=paths, words=grid.steps, names=grid.names,
        writers=kernel.writers_of(paths),
    )  # fmt: skip


def writes(kernel: RewrittenPtx, key: StreamKey, stream: LaneStream) -> Iterator[_Write]:
    """What a stream shows of writes to words, in its order."""
    at, count, began = 0, 0, int(stream.frame["begin_timer"])
    clock = int(stream.frame["begin_clock"])
    while at // 4 + 1 < len(stream.words):
        tag = int(stream.words[at // 4 + 1])
        here = kernel.run_of.get(tag & ((1 << FULL_SITE[1]) - 1))
        if tag == NOTHING or here is None or tag >> FULL_SEQUENCE[0] != count % SEQUENCE_PERIOD:
            return  # the end, or records that were written over others
        run, index = here
        site = run.sites[index]
        words = [int(stream.words[at // 4 + 2 * n]) for n in range(site.records)]
        if site.word is not None and site.word is not WordAccess.READ:
            value, low, high = words[-PAYLOAD:]
            since = (words[0] - clock & NOTHING) * 1_000 // _MHZ
            body = kernel.kernel.entry.body
            counts = site.word is WordAccess.CHANGE and body[site.position].has_any("add", "inc")
            yield _Write(key.rank, high << 32 | low, value, began + since, counts)
        at += 8 * site.records
        count += site.records
        if index == len(run.sites) - 1 and run.lap:
            at &= ~stream.size


def _in_order(each: Sequence[Sequence[_Write]]) -> Iterator[int]:
    """The CTAs of the writes: each stream in its order, counts by what they found, and the earliest first of others."""
    counts: dict[int, list[int]] = {}
    for write in (write for mine in each for write in mine if write.counts):
        counts.setdefault(write.address, []).append(write.value)
    next_of = {address: sorted(values) for address, values in counts.items()}
    heads = [(mine[0].time, n, 0) for n, mine in enumerate(each) if mine]
    heapify(heads)
    late: list[tuple[int, int, int]] = []
    while heads:
        head = heappop(heads)
        _, n, at = head
        write = each[n][at]
        wanted = next_of.get(write.address, [])
        if write.counts and wanted and wanted[0] != write.value and heads:
            late.append(head)
            continue
        if write.counts and wanted:
            wanted.pop(0)
        yield write.cta
        if at + 1 < len(each[n]):
            heappush(heads, (each[n][at + 1].time, n, at + 1))
        for one in late:
            heappush(heads, one)
        late.clear()
