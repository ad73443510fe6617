"""From the words that a traced kernel left in memory to the event table. No CUDA: numpy only.

Placing events. Each CTA read both clocks together twice, at an edge of ``%globaltimer`` before and after its records;
its events lie between, on the straight line through these two anchors, with its strict bound
(:mod:`hwkernels.records.clocks`). A timestamp of ``%globaltimer`` is placed where it says, with two of the timer's
steps as its error.
"""

from dataclasses import dataclass, replace
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from hwkernels.records.clocks import Line, read_line, scale
from hwkernels.records.encodings import Encoding
from hwkernels.source_recorder.by_position import read_full, read_positional
from hwkernels.source_recorder.description import Stream
from hwkernels.source_recorder.record_format import (
    RECORD_WORDS,
    TAG_ITERATION,
    TAG_PARITY,
    TAG_SITE,
    TAG_STAGE,
    TAG_VALUE,
)
from hwkernels.source_recorder.table import Table
from pipesim.errors import TraceFormatError
from pipesim.trace.schema import COLUMNS, ON_GROUPS, ON_NAMED_BARRIER, Anchor, Column, CtaInfo, EventKind, Events

_WAITED = (EventKind.WAIT_ENTER, EventKind.WAIT_RETURN, EventKind.TRY)  # kinds whose parity means something
# kinds whose value is in the record
_COUNTED = (EventKind.ARRIVE, EventKind.TRY, EventKind.CP_ASYNC_ARRIVE, EventKind.GROUP_ENTER, EventKind.GROUP_RETURN)
_NO_STAGE = ON_NAMED_BARRIER | ON_GROUPS  # what a record says about these is not the stage of an mbarrier
_WARP = 32
_NONE: Column = np.zeros(0, dtype=np.int64)

TIMER_STEPS = 2  #: how many of its usual steps a reading of %globaltimer may be old: it skips one now and then


@dataclass(frozen=True)
class DecodedRecording:
    """Events and headers of the recorded CTAs."""

    events: Events
    ctas: tuple[CtaInfo, ...]


@dataclass(frozen=True)
class DecodeContext:
    """What the words of a recording do not say themselves.

    ``clock``: what timestamped them, as in the schema. ``nbytes``: the bytes that an EXPECT or COPY moves, by the value
    in its record. ``first``: the first iteration that was kept. ``counted``: whether a record's iteration must be how
    often its site was passed, as in a kernel without a fault. ``khz``: the SM clock, for a CTA that lacks its second
    anchor because a trap ended it (0: then that is an error). ``stray_ns``: how far the SM clock may be off the line
    through the anchors besides. ``encoding``: what a record is; ``streams``: if it is of format 2, what the program
    says about each agent, by its CTAs, which those of the launch repeat.
    """

    clock: str
    nbytes: tuple[int, ...]
    first: int = 0
    counted: bool = True
    khz: int = 0
    stray_ns: int = 0
    encoding: Encoding = Encoding.TAGGED
    streams: tuple[tuple[Stream, ...], ...] = ()


def decode(
    headers: npt.NDArray[Any], records: npt.NDArray[np.uint32], table: Table, coding: DecodeContext
) -> DecodedRecording:
    """The events of the CTAs 0 .. n-1.

    ``headers``: (n,) of ``layout.HEADER``. ``records``: (n, agents, capacity, words a record). The time line begins
    at the earliest first anchor. Raises TraceFormatError if the words contradict each other.
    """
    clock, step = coding.clock, timer_step_ns(headers)
    lines = [
        replace(read_line(header["anchors"], f"CTA {cta}", coding.khz), stray_ps=1000 * coding.stray_ns)
        for cta, header in enumerate(headers)
    ]
    origin = min((line.timers[0] for line in lines), default=0)
    each = np.array([sum(1 for site in table.sites if site.role == agent.role) for agent in table.agents])
    parts: list[dict[str, Column]] = []
    ctas: list[CtaInfo] = []
    for cta, (header, line) in enumerate(zip(headers, lines, strict=True)):
        counts = header["counts"][: len(table.agents)].astype(np.int64)
        for agent in range(len(table.agents)):
            place = f"CTA {cta}, agent {agent}"
            written = int(counts[agent, 0])
            if written > records.shape[2]:
                raise TraceFormatError(f"{written} records in a buffer of {records.shape[2]}", place=place)
            part, clocks = _record_columns(records[cta, agent, :written], table, (cta, agent), coding, place)
            part |= _times(clocks, line, clock, (origin, step), place)
            part["cta"] = np.full(len(clocks), cta, dtype=np.int64)
            part["agent"] = np.full(len(clocks), agent, dtype=np.int64)
            parts.append(part)
            counts[agent, 0] = len(clocks)  # the device counts words of a positional stream
        counts[:, 1] *= each  # the device counts iterations
        ctas.append(_info(cta, header, line, origin, counts))
    columns = (np.concatenate([_NONE, *(part[name] for part in parts)]) for name in COLUMNS)
    return DecodedRecording(Events(*columns), tuple(ctas))


def _record_columns(
    words: npt.NDArray[np.uint32], table: Table, whose: tuple[int, int], coding: DecodeContext, place: str
) -> tuple[dict[str, Column], npt.NDArray[np.uint32]]:
    """What the records of this CTA and agent say besides their times, and the words of their clocks."""
    cta, agent = whose
    match coding.encoding:
        case Encoding.TAGGED:
            if words.shape[1] != RECORD_WORDS[coding.clock]:
                raise TraceFormatError(
                    f"records of {words.shape[1]} words cannot be of clock {coding.clock!r}", place=place
                )
            return _tags(words[:, 1].astype(np.int64), table, agent, coding, place), words
        case Encoding.FULL:
            return read_full(words, coding.streams[cta % len(coding.streams)][agent], table, place)
        case Encoding.POSITIONAL:
            return read_positional(words, coding.streams[cta % len(coding.streams)][agent], place)
        case unreachable:
            assert_never(unreachable)


def sm_khz(headers: npt.NDArray[Any]) -> int:
    """The SM clock under this load: the median of all lines; 0 without a CTA that reached its second anchor."""
    ended = [cta for cta, header in enumerate(headers) if header["anchors"][1]["globaltimer"]]
    lines = [read_line(headers[cta]["anchors"], f"CTA {cta}") for cta in ended]
    return int(np.median([line.span * 10**9 // line.ps for line in lines])) if lines else 0


def timer_step_ns(headers: npt.NDArray[Any]) -> int:
    """The smallest step of ``%globaltimer`` that the anchors saw; 0 without CTAs."""
    anchors = headers["anchors"][headers["anchors"]["globaltimer"] > 0]
    return int((anchors["globaltimer"] - anchors["globaltimer_before"]).min()) if anchors.size else 0


def _info(cta: int, header: npt.NDArray[Any], line: Line, origin: int, counts: Column) -> CtaInfo:
    anchors = tuple(
        Anchor(timer - origin, cycle - line.cycles[0], line.in_ps(slack))
        for which, (timer, cycle, slack) in enumerate(zip(line.timers, line.cycles, line.slack, strict=True))
        if header["anchors"][which]["globaltimer"]  # one that was really taken
    )
    return CtaInfo(cta, int(header["smid"]), anchors, tuple(counts[:, 0].tolist()), tuple(counts[:, 1].tolist()))


def _field(tags: Column, field: tuple[int, int]) -> Column:
    shift, width = field
    return (tags >> shift) & ((1 << width) - 1)


def _tags(tags: Column, table: Table, agent: int, coding: DecodeContext, place: str) -> dict[str, Column]:
    """The columns that an agent's tags hold, with the iterations counted out and compared."""
    site = _field(tags, TAG_SITE)
    role = table.agents[agent].role
    own = np.array([number for number, s in enumerate(table.sites) if s.role == role], dtype=np.int64)
    _refuse(~np.isin(site, own), site, "a record names site {}, which does not belong to its role", place)
    iteration = np.zeros(len(tags), dtype=np.int64)
    value = np.zeros(len(tags), dtype=np.int64)
    parity = np.full(len(tags), -1, dtype=np.int64)
    stage = _field(tags, TAG_STAGE)
    for number in own:
        rows = site == number
        iteration[rows] = np.arange(np.count_nonzero(rows)) + coding.first
        kind = table.sites[number].kind
        if kind in _COUNTED:
            value[rows] = _field(tags[rows], TAG_VALUE)
        elif kind in {EventKind.EXPECT, EventKind.COPY}:
            said = _field(tags[rows], TAG_VALUE)
            _refuse(
                said >= len(coding.nbytes),
                said,
                "a record has bytes of kind {}, which this kernel does not have",
                place,
            )
            value[rows] = np.array(coding.nbytes, dtype=np.int64)[said]
        elif kind in ON_NAMED_BARRIER:
            value[rows] = _WARP * _field(tags[rows], TAG_VALUE)
        if kind in _NO_STAGE:
            stage[rows] = -1
        if kind in _WAITED:
            parity[rows] = _field(tags[rows], TAG_PARITY)
    low = _field(tags, TAG_ITERATION)
    wrong = low != iteration & ((1 << TAG_ITERATION[1]) - 1)
    _refuse(
        wrong & coding.counted,
        low,
        "a record has iteration {} (low bits), which does not match the passes of its site",
        place,
    )
    return {
        "site": site,
        "stage": stage,
        "parity": parity,
        "iteration": iteration,
        "value": value,
    }


def _refuse(wrong: npt.NDArray[np.bool_], values: Column, fact: str, place: str) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise TraceFormatError(
            fact.format(values[row]),
            place=f"{place}, record {row}",
            cause="the buffer is damaged, or belongs to another table",
        )


def _times(
    words: npt.NDArray[np.uint32], line: Line, clock: str, timer: tuple[int, int], place: str
) -> dict[str, Column]:
    """The columns of time; ``timer`` is the origin and the step of ``%globaltimer``, in nanoseconds."""
    origin, step = timer
    direct = np.full(len(words), -1, dtype=np.int64)
    if clock != "clock":
        direct = _unwrap(words[:, 0 if clock == "globaltimer" else 2], line.timers, place) - origin
    if clock == "globaltimer":
        since = direct - (line.timers[0] - origin)
        cycle = scale(since, line.span * 1000, line.ps)
        time_ps = direct * 1000
        error = np.full(len(words), TIMER_STEPS * step * 1000, dtype=np.int64)
    else:
        cycle = _unwrap(words[:, 0], line.limits, place) - line.cycles[0]
        time_ps, error = line.place(cycle, origin), line.error_ps(cycle)
    return {
        "cycle": cycle,
        "time_ps": time_ps,
        "error_ps": error,
        "globaltimer_ns": direct,
    }


def _unwrap(stamps: npt.NDArray[np.uint32], limits: tuple[int, int], place: str) -> Column:
    """An agent's 32-bit timestamps as full ones: they never run backwards, and lie between ``limits``.

    A gap of 2^32 or more between two records of one agent cannot be seen; it would end before the second limit.
    """
    start = np.uint32(limits[0] & 0xFFFFFFFF)
    steps = np.diff(stamps.astype(np.uint32), prepend=start).astype(np.int64)
    full: Column = limits[0] + np.cumsum(steps)
    if len(full) and full[-1] > limits[1]:
        row = int(np.argmax(full > limits[1]))
        raise TraceFormatError(
            "a timestamp is later than the CTA's last anchor",
            place=f"{place}, record {row}",
            cause="its clock went backwards",
        )
    return full
