"""The cases of the experiment on least latencies: which paths, how many bytes, how often. Data only."""

from __future__ import annotations

from enum import IntEnum

ARRIVALS_RUNS, COPIES_RUNS = 1024, 256  #: of each CTA; 128 go through every pair of warps and both kinds of wait


class Path(IntEnum):
    """From what to what the time was taken."""

    ARRIVE = 0
    ARRIVE_EXPECT_TX = 1
    ARRIVE_OWN_CLUSTER = 2  #: of the own CTA, by its cluster address
    CP_ASYNC_NOINC = 3  #: cp.async.mbarrier.arrive.noinc without a copy before it
    CP_ASYNC_16_NOINC = 4  #: after one of 16 bytes
    COPY = 5  #: one or several bulk copies, issued by one lane
    COPIES_APART = 6  #: several, issued by a warp each; the time counts from the first
    MULTICAST = 7  #: to both CTAs of a cluster, until the issuer's own wait returns
    MULTICAST_THERE_AND_BACK = 8  #: until the wait of the other returns, and a remote arrive from there back here
    REMOTE_THERE_AND_BACK = 9  #: a remote arrive there, and one back when the wait there has returned


_NAMES = {
    Path.ARRIVE: "arrive",
    Path.ARRIVE_EXPECT_TX: "arrive.expect_tx",
    Path.ARRIVE_OWN_CLUSTER: "arrive, own CTA by cluster address",
    Path.CP_ASYNC_NOINC: "cp.async arrive, nothing to copy",
    Path.CP_ASYNC_16_NOINC: "cp.async of 16 B, then its arrive",
}
_SIZES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152, 65536, 98304)
_TOTALS = (2048, 8192, 16384, 32768, 65536, 98304)
_MULTICAST = (16, 256, 1024, 2048, 4096, 8192, 16384, 32768, 65536)


def latency_cases() -> tuple[tuple[str, dict[str, int]], ...]:
    """Each case by name, with its arguments."""
    found = [(name, _of(path, 0, 1, ARRIVALS_RUNS)) for path, name in _NAMES.items()]
    found += [(f"copy of {size:,} B", _of(Path.COPY, size, 1)) for size in _SIZES]
    for total in _TOTALS:
        for path, count in ((Path.COPY, 2), (Path.COPY, 4), (Path.COPY, 8), (Path.COPIES_APART, 4)):
            how = ", a warp each" if path is Path.COPIES_APART else ""
            found.append((f"{count} copies of {total // count:,} B{how}", _of(path, total // count, count)))
    for path, where in ((Path.MULTICAST, "to itself"), (Path.MULTICAST_THERE_AND_BACK, "to the other, and back")):
        found += [(f"multicast of {size:,} B {where}", _of(path, size, 1, cluster=2)) for size in _MULTICAST]
    for size, rank in ((2, 1), (4, 1), (4, 2), (4, 3)):
        arguments = _of(Path.REMOTE_THERE_AND_BACK, 0, rank, ARRIVALS_RUNS, cluster=size)
        found.append((f"remote arrive to rank {rank} of {size} and back", arguments))
    return tuple(found)


def _of(path: Path, nbytes: int, count: int, runs: int = COPIES_RUNS, *, cluster: int = 1) -> dict[str, int]:
    return {"path": path, "bytes": nbytes, "count": count, "runs": runs, "cluster": cluster}
