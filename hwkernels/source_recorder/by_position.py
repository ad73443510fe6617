"""Reads the records of format 2: what they do not say themselves is what the program says about their place.

Either encoding shows that a record was lost, or that the agent did other things than its program says, or in another
order: then TraceFormatError, which names the first record concerned.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hwkernels.records.encodings import Flag, first_gap, split_tags
from hwkernels.source_recorder.description import Stream
from hwkernels.source_recorder.table import Table
from pipesim.errors import TraceFormatError
from pipesim.trace.schema import Column, EventKind

_WAITED = (EventKind.WAIT_ENTER, EventKind.WAIT_RETURN, EventKind.TRY)
_CAUSE = "a record was lost, or the kernel does other things than its program, or in another order"
_CORRECTION = "capture it with --encoding tagged, whose trace shows where they part"


class Read(NamedTuple):
    """The columns of an agent's records, but for those of time, and the words of their clocks, (records, 1)."""

    columns: dict[str, Column]
    clocks: npt.NDArray[np.uint32]


def read_positional(words: npt.NDArray[np.uint32], stream: Stream, place: str) -> Read:
    """The records of a positional stream, (words, 1): the clocks, the hash of each lap, and a hash at the end.

    A stream may end before its program does, as where a wait gave up: the last word is then the hash up to there.
    """
    found = words[: len(stream.words), 0]
    meant = stream.words[: len(found)].copy()
    made = int((meant[:-1] >= 0).sum())
    meant[-1:] = -made - 1
    hashed = np.flatnonzero(meant < 0)
    wrong = found[hashed] != stream.hashes[-meant[hashed] - 1]
    if wrong.any():
        first = int(np.argmax(wrong))
        after = int(-meant[hashed[first - 1]] - 1) if first else 0
        upto = int(-meant[hashed[first]] - 2)
        raise TraceFormatError(
            f"the sites executed, or their stages and parities, are not those of the program in its records "
            f"{min(after, upto)} to {max(after - 1, upto)}",
            place=place,
            cause=_CAUSE,
            correction=_CORRECTION,
        )
    if len(words) != len(found) or not len(found):
        raise TraceFormatError(
            f"{len(words)} words, but the program makes {len(stream.words)}", place=place, cause=_CAUSE,
            correction=_CORRECTION,
        )  # fmt: skip
    return Read(_columns(stream, np.arange(made)), words[meant >= 0])


def read_full(words: npt.NDArray[np.uint32], stream: Stream, table: Table, place: str) -> Read:
    """The records of a full stream, (records, 2): clocks and tags."""
    tags = split_tags(words[:, 1])
    gap = first_gap(tags.sequence)
    if gap is not None:
        raise TraceFormatError(
            f"a record has the running number {int(tags.sequence[gap])}", place=f"{place}, record {gap}",
            cause="a record before it was lost, or they were moved",
        )  # fmt: skip
    columns = _columns(stream, np.array(_follow(tags.site, stream, place), dtype=np.int64))
    kinds = np.array([int(site.kind) for site in table.sites], dtype=np.int64)[columns["site"]]
    waited = np.isin(kinds, [int(kind) for kind in _WAITED])
    columns["parity"] = np.where(waited, (tags.flags & Flag.PARITY) // Flag.PARITY, -1)
    tried = kinds == EventKind.TRY
    columns["value"] = np.where(tried, (tags.flags & Flag.PASSED) // Flag.PASSED, columns["value"])
    return Read(columns, words[:, :1])


def _follow(sites: npt.NDArray[np.int64], stream: Stream, place: str) -> list[int]:
    """The place in the program of each record; waits that a successful try makes unnecessary may be left out."""
    found: list[int] = []
    at = 0
    for row, site in enumerate(sites.tolist()):
        while at < len(stream.records) and stream.optional[at] and stream.records[at].site != site:
            at += 1
        if at == len(stream.records) or stream.records[at].site != site:
            other = f"has site {stream.records[at].site}" if at < len(stream.records) else "has ended"
            raise TraceFormatError(
                f"a record names site {site} where the program {other}", place=f"{place}, record {row}", cause=_CAUSE,
                correction=_CORRECTION,
            )  # fmt: skip
        found.append(at)
        at += 1
    return found


def _columns(stream: Stream, places: npt.NDArray[np.int64]) -> dict[str, Column]:
    """What the program says about these of its records; iterations are passes of the site."""
    columns = {name: values[places] for name, values in stream.columns.items()}
    iteration = np.zeros(len(places), dtype=np.int64)
    for site in np.unique(columns["site"]):
        rows = columns["site"] == site
        iteration[rows] = np.arange(int(rows.sum()))
    return columns | {"iteration": iteration}
