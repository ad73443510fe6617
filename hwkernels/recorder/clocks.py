"""Placing the clocks of SMs on one time line, with strict bounds. No CUDA: numpy only.

One SM. Both clocks are read together twice, at an edge of ``%globaltimer`` before and after everything that is placed.
A timestamp lies on the straight line through the two edges. The error is a strict bound for an SM clock that stays near
its mean in between: half the distance of the two clock readings that enclose an edge, one cycle for the grain of a
timestamp, rounding, and DRIFT_PERMILLE of the time to the nearer edge; more where a kernel's load moves the clock.

Several SMs. A message (an arrive on another CTA's barrier, and the wait that returns because of it) proves that its
sending is earlier than its receipt. Each line may be off by an offset, for which its anchors give an interval; every
message bounds the difference of two offsets. The intervals that all messages leave are the shortest paths of these
difference constraints; then the order itself, of messages and of each agent's events, narrows the bound of each event.
Where nothing is left, the clocks contradict the messages: that is an error, never an average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pipesim.errors import ClockError, TraceFormatError
from pipesim.trace.schema import Column, CtaInfo, Events

#: How far the SM clock may stray from its mean between two anchors. On a full chip whose load has just begun it was
#: seen 6.1 permille off over the first 2 µs of 39 (H100; 1.2 on an H200, next to nothing with one CTA).
DRIFT_PERMILLE = 10
CLOCK_SKEW_CYCLES = 20  #: bound on the difference of %clock between the warps of an SM
_ROUNDING_PS = 2
_FOR_EVER = (1 << 63) - 1


@dataclass(frozen=True)
class Line:
    """An SM's clock between two edges. Cycles are those of the SM, nanoseconds those of ``%globaltimer``."""

    cycles: tuple[int, int]  #: of the two edges, each the middle of the readings that enclose it
    timers: tuple[int, int]
    slack: tuple[int, int]  #: half distances of the enclosing readings, in cycles
    limits: tuple[int, int]  #: clock readings that enclose all records
    open_end: bool = False  #: the second edge was never seen: the first and the rate represent it
    stray_ps: int = 0  #: how far the clock may be off the line besides, wherever: where it is known not to be constant

    @property
    def ps(self) -> int:
        """Picoseconds between the edges."""
        return (self.timers[1] - self.timers[0]) * 1000

    @property
    def span(self) -> int:
        """Cycles between the edges."""
        return self.cycles[1] - self.cycles[0]

    def in_ps(self, cycles: int) -> int:
        """A number of cycles in picoseconds, rounded up."""
        return -(-cycles * self.ps // self.span)

    def place(self, cycles: Column, origin_ns: int = 0) -> Column:
        """The times in picoseconds since ``origin_ns`` of timestamps that count from the first edge, rounded down."""
        return scale(cycles, self.ps, self.span) + (self.timers[0] - origin_ns) * 1000

    def drift_ps(self, cycles: Column) -> Column:
        """How far the clock may have strayed at these timestamps, which count from the first edge."""
        away = np.abs(cycles)  # to the nearer edge
        if not self.open_end:
            away = np.minimum(away, np.abs(cycles - self.span))
        return scale(away, DRIFT_PERMILLE * self.ps, 1000 * self.span) + self.stray_ps

    def error_ps(self, cycles: Column) -> Column:
        """The strict bound of :meth:`place`, to either side."""
        return self.drift_ps(cycles) + self.in_ps(max(self.slack) + 1) + _ROUNDING_PS

    def offset_ps(self) -> int:
        """How far the middle of the line may be off, to either side: the mean of its edges' errors."""
        return -(-sum(self.slack) * self.ps // (2 * self.span)) + 1

    def rest_ps(self, cycles: Column) -> Column:
        """What is left of the error once the offset of the line's middle is known: grain, drift, and the tilt."""
        tilt = scale(np.abs(2 * cycles - self.span), sum(self.slack) * self.ps, 2 * self.span * self.span)
        return self.drift_ps(cycles) + tilt + self.in_ps(1) + _ROUNDING_PS + 2


@dataclass(frozen=True)
class Message:
    """Sent by the SM of line ``sender`` after its timestamp ``sent``, known at line ``receiver`` before ``received``.

    Timestamps are in cycles since the line's first edge; ``place`` is what an error calls the message.
    """

    sender: int
    sent: int
    receiver: int
    received: int
    place: str = ""


@dataclass(frozen=True)
class Offsets:
    """Of each line, between which picoseconds the true time minus the placed time of its middle lies.

    ``to_first``: the same for the difference of its offset to that of line 0.
    """

    bounds: tuple[tuple[int, int], ...]
    to_first: tuple[tuple[int, int], ...]


def _with_second(anchors: npt.NDArray[Any], khz: int) -> npt.NDArray[Any]:
    """Anchors whose second is where the first leads in a second at this clock: the bound grows from the first on."""
    both = anchors.copy()
    for name, later in (("globaltimer", 10**9), ("clock", khz * 1000)):
        for field in (f for f in both.dtype.names or () if f.startswith(name)):
            both[1][field] = both[0][field] + later
    return both


def read_line(anchors: npt.NDArray[Any], place: str, khz: int = 0) -> Line:
    """The line through the two anchors that a kernel wrote. Raises TraceFormatError if they contradict themselves.

    ``khz``: the SM clock, which replaces a second anchor that a trapped CTA did not come to.
    """
    open_end = bool(khz and not anchors[1]["globaltimer"])
    if open_end:
        anchors = _with_second(anchors, khz)
    middles, slack = [], []
    for anchor in anchors:
        before, after = int(anchor["clock_before"]), int(anchor["clock_after"])
        middle = (before + after) // 2
        middles.append(middle)
        slack.append(after - middle)
        if after <= before or anchor["globaltimer"] <= anchor["globaltimer_before"]:
            raise TraceFormatError(f"an anchor whose clocks do not advance: {anchor}", place=place)
    line = Line(
        (middles[0], middles[1]),
        (int(anchors[0]["globaltimer"]), int(anchors[1]["globaltimer"])),
        (slack[0], slack[1]),
        (int(anchors[0]["clock_after"]), _FOR_EVER if open_end else int(anchors[1]["clock_before"])),
        open_end,
    )
    if line.ps <= 0 or line.span <= 0:
        raise TraceFormatError("the second anchor is not later than the first", place=place)
    return line


def stored_line(header: CtaInfo) -> Line:
    """The line of a CTA of a trace file, whose timestamps count from its first edge. TraceFormatError without
    anchors.
    """
    place = f"CTA {header.cta}"
    if len(header.anchors) != 2:
        raise TraceFormatError(f"{len(header.anchors)} anchors; a clock is placed by two", place=place)
    first, last = header.anchors
    ps, span = (last.globaltimer_ns - first.globaltimer_ns) * 1000, last.cycle - first.cycle
    if ps <= 0 or span <= 0:
        raise TraceFormatError("the second anchor is not later than the first", place=place)
    slack = (first.error_ps * span // ps, last.error_ps * span // ps)  # the cycles that were rounded up to these
    cycles = (first.cycle, last.cycle)
    return Line(cycles, (first.globaltimer_ns, last.globaltimer_ns), slack, cycles)


def fit_offsets(lines: Sequence[Line], messages: Sequence[Message]) -> Offsets:
    """The offsets that all anchors and all messages allow.

    Raises ClockError, which names the messages, where they allow none.
    """
    timer = len(lines)  # the last node: the common time line itself
    slacks = {}  # (v, u): offset u - offset v is at most so much, and what says so
    for number, line in enumerate(lines):
        slacks[timer, number] = slacks[number, timer] = (line.offset_ps(), f"the anchors of clock {number}")
    for message, slack in zip(messages, _slack_of(lines, messages), strict=True):
        edge = (message.receiver, message.sender)
        if edge not in slacks or slack < slacks[edge][0]:
            slacks[edge] = (slack, _name(message, slack))
    _refuse_cycles(timer + 1, slacks)
    far = np.full((timer + 1, timer + 1), np.iinfo(np.int64).max // 4, dtype=np.int64)
    np.fill_diagonal(far, 0)
    for (v, u), (slack, _) in slacks.items():
        far[v, u] = min(far[v, u], slack)
    for k in range(timer + 1):
        far = np.minimum(far, far[:, k : k + 1] + far[k : k + 1, :])
    bounds = tuple((-int(far[a, timer]), int(far[timer, a])) for a in range(timer))
    return Offsets(bounds, tuple((-int(far[a, 0]), int(far[0, a])) for a in range(timer)))


def _slack_of(lines: Sequence[Line], messages: Sequence[Message]) -> list[int]:
    """Of each message: by how much the sender's offset may exceed the receiver's."""
    found = [0] * len(messages)
    origin = min((line.timers[0] for line in lines), default=0)
    for number, line in enumerate(lines):
        sent = [(n, message.sent) for n, message in enumerate(messages) if message.sender == number]
        received = [(n, message.received) for n, message in enumerate(messages) if message.receiver == number]
        for stamps, sign in ((sent, -1), (received, 1)):
            cycles = np.array([cycle for _, cycle in stamps], dtype=np.int64)
            slacks = sign * line.place(cycles, origin) + line.rest_ps(cycles)
            for (n, _), slack in zip(stamps, slacks.tolist(), strict=True):
                found[n] += slack
    return found


def _name(message: Message, slack: int) -> str:
    stamps = f"clock {message.sender} at {message.sent} → clock {message.receiver} at {message.received}"
    return f"{message.place or stamps} ({slack / 1000:+,.1f} ns)"


def _refuse_cycles(nodes: int, slacks: dict[tuple[int, int], tuple[int, str]]) -> None:
    """Raise ClockError for a cycle of constraints whose sum is negative (Bellman and Ford)."""
    reach, through = [0] * nodes, [-1] * nodes
    last = -1
    for _ in range(nodes):
        last = -1
        for (v, u), (slack, _) in slacks.items():
            if reach[v] + slack < reach[u]:
                reach[u], through[u], last = reach[v] + slack, v, u
        if last < 0:
            return
    for _ in range(nodes):  # back far enough to stand on the cycle
        last = through[last]
    names, total, node = [], 0, last
    while True:
        slack, name = slacks[through[node], node]
        names.append(name)
        total += slack
        node = through[node]
        if node == last:
            break
    raise ClockError(
        f"the clocks contradict the messages by {-total / 1000:,.1f} ns",
        place="; ".join(reversed(names)),
        cause="inconsistent timestamps, an SM clock drifted beyond the allowed bound, or the timers differ",
    )


def tighten(events: Events, ctas: Sequence[CtaInfo], pairs: npt.NDArray[np.int64]) -> Events:
    """The events with the bounds that messages between their CTAs leave: never wider, often off the straight line.

    ``pairs``: (n, 2) rows of the table, a sending (timestamped before it) and its receipt (timestamped after). For
    events that are timestamped by the SM's clock. Raises ClockError where pairs and bounds contradict each other.
    """
    numbers = {header.cta: number for number, header in enumerate(ctas)}
    lines = [stored_line(header) for header in ctas]
    line_of = [numbers[cta] for cta in events.cta.tolist()]
    cycles = events.cycle - np.array([lines[n].cycles[0] for n in line_of], dtype=np.int64)
    messages = [
        Message(
            line_of[sent], int(cycles[sent]), line_of[received], int(cycles[received]), _pair(events, sent, received)
        )
        for sent, received in pairs.tolist()
    ]
    offsets = fit_offsets(lines, messages)
    first, last = events.time_ps - events.error_ps, events.time_ps + events.error_ps
    for header, line, (low, high) in zip(ctas, lines, offsets.bounds, strict=True):
        rows = np.flatnonzero(events.cta == header.cta)
        placed, rest = line.place(cycles[rows]), line.rest_ps(cycles[rows])
        first[rows] = np.maximum(first[rows], placed + low - rest)
        last[rows] = np.minimum(last[rows], placed + high + rest)
    _order(events, pairs, first, last)
    return replace(events, time_ps=(first + last) // 2, error_ps=(last - first + 1) // 2)


def _pair(events: Events, sent: int, received: int) -> str:
    return f"event {sent} of CTA {events.cta[sent]} → event {received} of CTA {events.cta[received]}"


def _order(events: Events, pairs: npt.NDArray[np.int64], first: Column, last: Column) -> None:
    """Narrow the bounds, in place, by what must be earlier than what: the pairs, and each agent's own order."""
    agents = [
        np.flatnonzero((events.cta == cta) & (events.agent == agent))
        for cta, agent in sorted(set(zip(events.cta.tolist(), events.agent.tolist(), strict=True)))
    ]
    sent, received = pairs[:, 0], pairs[:, 1]
    while True:
        before = (first.copy(), last.copy())
        np.maximum.at(first, received, first[sent])
        np.minimum.at(last, sent, last[received])
        for rows in agents:
            first[rows] = np.maximum.accumulate(first[rows])
            last[rows] = np.minimum.accumulate(last[rows][::-1])[::-1]
        if (first > last).any():
            row = int(np.argmax(first > last))
            wrong = [_pair(events, a, b) for a, b in pairs.tolist() if before[0][a] > before[1][b]]
            raise ClockError(
                "the clocks contradict the order of events",
                place="; ".join(wrong) or f"event {row} of CTA {events.cta[row]}",
                cause="inconsistent timestamps, or an SM clock drifted beyond the allowed bound",
            )
        if np.array_equal(first, before[0]) and np.array_equal(last, before[1]):
            return


def scale(values: Column, numerator: int, denominator: int) -> Column:
    """``values * numerator // denominator``, exact: the products do not fit 64 bits."""
    return np.array([int(v) * numerator // denominator for v in values], dtype=np.int64)
