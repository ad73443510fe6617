"""From the words of a buffer to what each warp did: the path that the program says, step by step, with its clocks.

The path is not assumed. Full records name their site, and carry a running number and the parity with which a wait was
executed. Positional timestamps are compared with the hash that the kernel kept of the sites it executed: one that is
missing, or executed in another order, leaves another hash.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hwkernels.records.encodings import (
    FIRST_BLOCK,
    FULL_FLAGS,
    FULL_SEQUENCE,
    FULL_SITE,
    HASH_START,
    SEQUENCE_PERIOD,
    Flag,
    hash_step,
)
from hwkernels.rewriter.instrument import RewrittenPtx
from hwkernels.rewriter.layout import FRAME, FRAME_BYTES
from hwkernels.rewriter.sites import PAYLOAD, RecordedSite, WordAccess
from hwkernels.rewriter.writers import writer
from pipesim.errors import TraceFormatError
from pipesim.model.words import WordAct, WordEvent
from pipesim.ptx.emit.record import IF_COMPLETE, IF_NOT_YET, MEET, PathStep

NOTHING = 0xFFFFFFFF  #: a word that the kernel has not written
_HALF = 1 << 31


@dataclass(frozen=True)
class StepRecord:
    """What the records say about a step: 32-bit clocks before and after it (-1: not recorded), and a try's answer.

    ``parity``: with which it was executed, -1 where the record does not say. ``gave_up``: the wait was ended.
    ``value`` and ``address``: of a word of global memory, the low 32 bits of what was read, stored or added.
    """

    before: int
    after: int
    passed: bool = True
    parity: int = -1
    gave_up: bool = False
    value: int = -1
    address: int = -1


@dataclass
class LaneStream:
    """The records of one lane, read in order. ``cut``: the kernel did not end by itself, and the records may stop."""

    words: npt.NDArray[np.uint32]
    frame: npt.NDArray[np.void]
    size: int
    place: str
    at: int = 0  #: bytes from the stream's beginning
    count: int = 0
    hash: int = HASH_START
    last: int = -1  #: the latest clock that was read
    pending: int = 0  #: records of the present site that were read

    @property
    def ended(self) -> bool:
        """Whether the lane reached the end of the kernel."""
        return int(self.frame["end_timer"]) != NOTHING << 32 | NOTHING

    @property
    def cursor(self) -> int:
        """Where the lane would have stored its next record when it ended, from the stream's beginning."""
        return int(self.frame["cursor"]) & (2 * self.size - 1)

    def word(self, offset: int) -> int:
        """The word this many bytes after the cursor."""
        return int(self.words[(self.at + offset) // 4])


@dataclass
class Walk:
    """One agent's way along its path. ``done``: what was recorded, by step of the path; ``cut``: records end before."""

    kernel: RewrittenPtx
    agent: int
    lanes: dict[int, LaneStream]
    done: dict[int, StepRecord] = field(default_factory=dict)
    cut: bool = False
    _answers: dict[int, bool] = field(default_factory=dict)

    def run(self) -> None:
        """Read everything. TraceFormatError where the records are not those of the path."""
        path = self.kernel.streams[self.agent].path
        number = 0
        while number < len(path) and not self.cut:
            step = path[number]
            if step.position == IF_NOT_YET:
                number = _step_after(path, number, IF_COMPLETE) if self._answers.get(step.asked, False) else number + 1
            elif step.position == IF_COMPLETE:
                number = _step_after(path, number, MEET)
            else:
                if step.position in self.kernel.by_position:
                    self._step(number, step)
                number += 1
        if not self.cut:
            for lane in self.lanes.values():
                self._require_end(lane)

    def _step(self, number: int, step: PathStep) -> None:
        site = self.kernel.by_position[step.position]
        mine = writer(tuple(self.lanes), step.lanes)
        for lane, stream in self.lanes.items():
            if step.lanes >> lane & 1:
                found = self._full(stream, site, number) if self.kernel.full else self._stamps(stream, site, number)
                if found is None:
                    self.cut = True
                    return
                if lane == mine:
                    self.done[number] = found
                    if step.asked >= 0:
                        self._answers[step.asked] = found.passed

    # full records

    def _full(self, stream: LaneStream, site: RecordedSite, number: int) -> StepRecord | None:
        """The records of a step; of a try that is a wait in the program, tries until one succeeds."""
        if site.word is not None:
            return self._word(stream, site, number)
        waits = site.tries and self.kernel.streams[self.agent].path[number].asked < 0
        first = -1
        while True:
            before = self._record(stream, site)
            if before is None:
                return None
            first = before[0] if first < 0 else first
            if site.records == 1:
                return StepRecord(before[0], -1)
            after = self._record(stream, site)
            if after is None:
                self.cut = True  # it was stopped there
                return StepRecord(first, -1, passed=False)
            parity = int(bool(before[1] & Flag.PARITY)) if site.by_parity else -1
            said = self.kernel.parities[self.agent].get(number, parity)
            if parity != said:
                fact = f"a wait for parity {parity}, not {said},"
                raise self._wrong(stream, site, fact, "the kernel is another one, or has a fault")
            gave_up = bool(after[1] & Flag.GAVE_UP)
            passed = bool(after[1] & Flag.PASSED)
            if passed or gave_up or not waits:
                self.cut |= gave_up
                return StepRecord(first, after[0], passed, parity, gave_up)

    def _word(self, stream: LaneStream, site: RecordedSite, number: int) -> StepRecord | None:
        """The records of an access to a word, with what the program says of it."""
        clocks = site.records - PAYLOAD
        found = [self._record(stream, site, has_time=n < clocks) for n in range(site.records)]
        times = [each for each in found if each is not None]
        if len(times) < site.records:
            return None
        (value, _), (low, _), (high, _) = times[clocks:]
        gave_up = bool(times[clocks - 1][1] & Flag.GAVE_UP)
        after = times[1][0] if clocks == 2 else -1
        self.cut |= gave_up
        event = self.kernel.words[self.agent].get(number) if self.kernel.words else None
        if event is not None and not gave_up:
            said = _said(event, site)
            shown = event.act is not WordAct.WAIT and (event.observed or site.word is WordAccess.WRITE)
            if shown and value != said & NOTHING:
                raise self._wrong(
                    stream, site, f"the word has {value:,}, not {said & NOTHING:,},", "CTAs came in another order"
                )
        return StepRecord(times[0][0], after, not gave_up, -1, gave_up, value, high << 32 | low)

    def _record(self, stream: LaneStream, site: RecordedSite, *, has_time: bool = True) -> tuple[int, int] | None:
        """Clock and flags of the next record; None where the records end."""
        clock, tag = stream.word(0), stream.word(4)
        if tag == NOTHING:
            if stream.ended and not self._is_left(stream, site):
                raise self._wrong(stream, site, "there is no further record")
            return None
        sequence = tag >> FULL_SEQUENCE[0]
        if sequence != stream.count % SEQUENCE_PERIOD:
            fact = f"record {stream.count:,} has the running number {sequence:,}"
            if not stream.count and not stream.ended:  # later ones are written over the first
                fact = "it made more records than its buffer holds, and did not end, as a loop that tries again does"
            raise self._wrong(stream, site, fact, "records were lost, or the buffer was too small for them")
        there = tag & ((1 << FULL_SITE[1]) - 1)
        if there != site.number:
            raise self._wrong(stream, site, f"record {stream.count:,} is of {self._line(there)}")
        stream.count += 1
        flags = tag >> FULL_FLAGS[0] & ((1 << FULL_FLAGS[1]) - 1)
        if (
            has_time and (flags or not site.tries) and not flags & Flag.GAVE_UP
        ):  # a try that failed has no clock after it
            self._forward(stream, site, clock)
        run, index = self.kernel.run_of[site.number]
        stream.at += 8
        if self._ends_site(stream, site) and run.lap and index == len(run.sites) - 1:
            stream.at &= ~stream.size
        return clock, flags

    def _ends_site(self, stream: LaneStream, site: RecordedSite) -> bool:
        """Whether the record just read was the last of its site."""
        stream.pending = (stream.pending + 1) % site.records
        return stream.pending == 0

    # positional timestamps

    def _stamps(self, stream: LaneStream, site: RecordedSite, number: int) -> StepRecord | None:
        run, index = self.kernel.run_of[site.number]
        before = stream.word(0)
        after = stream.word(4) if site.records == 2 else -1
        if NOTHING in (before, after):
            if stream.ended and not self._is_left(stream, site):
                raise self._wrong(stream, site, "there is no further record")
            self.cut = True
            return None if before == NOTHING else StepRecord(before, -1, passed=False)
        self._forward(stream, site, before)
        if site.spins and not stream.ended and _is_before(after, before):  # of the wait before: a try that failed
            self.cut = True
            return StepRecord(before, -1, passed=False)
        if site.spins and stream.ended and stream.cursor == stream.at:  # timestamps that the cursor did not pass
            self.cut = True  # until a deadline a clock of 32 bits may have gone around
            return StepRecord(before, -1, passed=False, gave_up=True)
        if after >= 0:
            self._forward(stream, site, after)
        stream.at += 4 * site.records
        if site.spins and site.by_parity:
            stream.hash = hash_step(stream.hash, FIRST_BLOCK + self.kernel.parities[self.agent].get(number, 0))
        if index == len(run.sites) - 1:
            stream.hash = hash_step(stream.hash, run.number)
            if run.lap:
                if stream.word(0) != stream.hash:
                    raise self._wrong(stream, site, "the hash of the sites that the warp executed is another one")
                stream.at = (stream.at + 4) & ~stream.size
        return StepRecord(before, after)

    def _is_left(self, stream: LaneStream, site: RecordedSite) -> bool:
        """Whether the lane was ended at a barrier of this run, so that the cursor is still at the run's beginning."""
        run, index = self.kernel.run_of[site.number]
        read = sum(each.records for each in run.sites[:index]) + (stream.pending if self.kernel.full else 0)
        begin = stream.at - read * (8 if self.kernel.full else 4)
        return site.blocks and self.kernel.options.stop_flag and stream.cursor == begin

    def _forward(self, stream: LaneStream, site: RecordedSite, clock: int) -> None:
        """The clock of a lane does not run backwards. TraceFormatError if it would have to."""
        if stream.last >= 0 and _is_before(clock, stream.last):
            raise self._wrong(stream, site, "a clock is earlier than the one before it", "records are in another order")
        stream.last = clock

    def _require_end(self, stream: LaneStream) -> None:
        """Nothing may follow, and where the kernel kept a hash of all it executed, it is that of the path."""
        if not stream.ended:
            self.cut = True
            return
        cursor, kept = stream.cursor, int(stream.frame["hash"])
        if cursor != stream.at or (not self.kernel.full and kept != stream.hash):
            raise TraceFormatError(
                "the warp executed something else than the program says" if cursor == stream.at else
                f"the warp left {cursor:,} bytes of records where the program says {stream.at:,}{self._waiting()}",
                place=stream.place,
                cause="records were lost, or the kernel is not the one that was read",
            )  # fmt: skip

    # words

    def _wrong(self, stream: LaneStream, site: RecordedSite, fact: str, cause: str = "") -> TraceFormatError:
        other_way = f"the warp went another way than the program says, or the buffer is damaged{self._assumption()}"
        fact = f"{fact}, where {self._line(site.number)} is next"
        return TraceFormatError(fact, place=stream.place, cause=cause or other_way)

    def _waiting(self) -> str:
        """That the program hangs where the warp did not, if so."""
        hangs = self.agent in self.kernel.extraction.program.cut
        return ", after which it waits indefinitely: pipesim check says of that what is undefined" if hangs else ""

    def _assumption(self) -> str:
        """What the program assumes about other CTAs, if anything."""
        coverage = self.kernel.extraction.program.coverage
        return f"; the program assumes: {coverage.assumed[0]}" if coverage is not None and coverage.assumed else ""

    def _line(self, number: int) -> str:
        """A site as a person finds it."""
        found = self.kernel.run_of.get(number)
        if found is None:
            return f"site {number:,}, which the kernel does not have"
        run, index = found
        return self.kernel.line_of(run.sites[index])


def _said(event: WordEvent, site: RecordedSite) -> int:
    """What the program says that is read, stored or added."""
    if site.word is not WordAccess.WRITE:
        return event.before
    return event.after - event.before if event.act is WordAct.ADD else event.after


def _is_before(clock: int, other: int) -> bool:
    """Whether a 32-bit clock was read before another one, at most 2^31 cycles away."""
    return (clock - other) & NOTHING > _HALF


def _step_after(path: list[PathStep], number: int, kind: int) -> int:
    """The step after the marker that belongs to the one at ``number``."""
    depth = 0
    for n in range(number + 1, len(path)):
        position = path[n].position
        if position == IF_NOT_YET:
            depth += 1
        elif depth and position == MEET:
            depth -= 1
        elif not depth and position == kind:
            return n + 1
    return len(path)


def lane_stream(data: bytes, place: str) -> LaneStream:
    """The stream in these bytes."""
    words = np.frombuffer(data[:-FRAME_BYTES], dtype="<u4")
    frame = np.frombuffer(data[-FRAME_BYTES:], dtype=FRAME)[0]
    return LaneStream(words, frame, len(data) // 2, place)
