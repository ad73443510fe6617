"""Offsets between SMs: the bounds hold the truth, messages only narrow them, and a contradiction is an error.

The true clocks here are made with exact fractions: the time of an SM's cycle c is known, whatever is then read of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hwkernels.recorder.clocks import DRIFT_PERMILLE, Line, Message, fit_offsets, read_line, stored_line, tighten
from hwkernels.recorder.layout import ANCHOR
from pipesim.errors import ClockError, TraceFormatError
from pipesim.trace.schema import COLUMNS, Anchor, CtaInfo, Events

STEP_NS = 32
EPOCH_NS = 1_790_000_000_000_000_000  # so large that a product with it does not fit 64 bits


@dataclass(frozen=True)
class Sm:
    """A true clock: ``span`` cycles from one edge of the timer to another, and how far it strays in between."""

    origin: int  # its %clock64 at the first edge
    timers: tuple[int, int]
    span: int
    stray: Fraction  # -1 .. 1 of the drift that is allowed
    reading: tuple[tuple[int, int], tuple[int, int]]  # cycles from the clock's reading to the edge and to the next one

    def time(self, cycle: int) -> Fraction:
        """Picoseconds since EPOCH_NS of this cycle after the first edge."""
        ps = Fraction(1000 * (self.timers[1] - self.timers[0]), self.span)
        away = min(abs(cycle), abs(cycle - self.span))
        return 1000 * self.timers[0] + cycle * ps + self.stray * away * ps * DRIFT_PERMILLE / 1000

    def cycle_after(self, time: Fraction) -> int:
        """The first cycle that is later than a time."""
        low, high = 0, self.span
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.time(middle) > time else (middle + 1, high)
        return low

    def line(self) -> Line:
        anchors = np.zeros(2, dtype=ANCHOR)
        for anchor, timer, cycle, (before, after) in zip(
            anchors, self.timers, (0, self.span), self.reading, strict=True
        ):
            at = self.origin + cycle
            anchor["globaltimer_before"], anchor["globaltimer"] = EPOCH_NS + timer - STEP_NS, EPOCH_NS + timer
            anchor["clock_before"], anchor["clock_after"] = at - before, at + after
        return read_line(anchors, "SM")

    def stamp(self, cycle: int, line: Line) -> int:
        """What a record of this cycle holds: cycles since the edge as the line sees it."""
        return self.origin + cycle - line.cycles[0]


def sms() -> st.SearchStrategy[list[Sm]]:
    readings = st.tuples(st.integers(1, 40), st.integers(1, 40))
    one = st.builds(
        Sm,
        origin=st.integers(100, 1 << 45),
        timers=st.tuples(st.integers(0, 30), st.integers(600, 640)).map(lambda t: (STEP_NS * t[0], STEP_NS * t[1])),
        span=st.integers(33_000, 45_000),
        stray=st.fractions(-1, 1, max_denominator=8),
        reading=st.tuples(readings, readings),
    )
    return st.lists(one, min_size=2, max_size=5)


def exchange(all_sms: Sequence[Sm], draws: Sequence[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """True messages: sender, its cycle, receiver, its cycle, for (sender, receiver, permille, latency in ps)."""
    found = []
    for sender, receiver, permille, latency in draws:
        a, b = sender % len(all_sms), receiver % len(all_sms)
        sent = all_sms[a].span * permille // 1000
        received = all_sms[b].cycle_after(all_sms[a].time(sent) + latency)
        if a != b and 0 < received < all_sms[b].span:
            found.append((a, sent, b, received))
    return found


DRAWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(100, 900), st.integers(1, 400_000)), max_size=40
)


def stored(all_sms: Sequence[Sm], lines: Sequence[Line], messages: Sequence[tuple[int, int, int, int]]):
    """The same as a trace keeps it: headers, events (two a message and some more), and the pairs of rows."""
    origin = min(line.timers[0] for line in lines)
    ctas = tuple(
        CtaInfo(n, n, tuple(
            Anchor(timer - origin, cycle - line.cycles[0], line.in_ps(slack))
            for timer, cycle, slack in zip(line.timers, line.cycles, line.slack, strict=True)
        ))
        for n, line in enumerate(lines)
    )  # fmt: skip
    ends = [end for a, sent, b, received in messages for end in ((a, sent), (b, received))]
    rows = sorted({*ends, *((n, cycle) for n, sm in enumerate(all_sms) for cycle in range(0, sm.span, sm.span // 7))})
    pairs = np.array([rows.index(end) for end in ends], dtype=np.int64).reshape(-1, 2)
    columns = {name: np.zeros(len(rows), dtype=np.int64) for name in COLUMNS}
    for row, (n, cycle) in enumerate(rows):
        at = np.array([all_sms[n].stamp(cycle, lines[n])], dtype=np.int64)
        columns["cta"][row], columns["cycle"][row] = n, at[0]
        columns["time_ps"][row] = lines[n].place(at, origin)[0]
        columns["error_ps"][row] = lines[n].error_ps(at)[0]
    truth = [all_sms[n].time(cycle) - 1000 * (origin - EPOCH_NS) for n, cycle in rows]
    return Events(**columns), ctas, pairs, truth


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(sms(), DRAWS)
def test_bounds_hold_the_truth_and_are_never_wider(all_sms: list[Sm], draws: list[tuple[int, int, int, int]]) -> None:
    lines = [sm.line() for sm in all_sms]
    events, ctas, pairs, truth = stored(all_sms, lines, exchange(all_sms, draws))
    after = tighten(events, ctas, pairs)
    assert (after.error_ps <= events.error_ps).all()
    assert [name for name in COLUMNS if not np.array_equal(getattr(after, name), getattr(events, name))] in (
        [], ["time_ps"], ["error_ps"], ["time_ps", "error_ps"],
    )  # fmt: skip
    for time, error, before, bound, true in zip(
        after.time_ps.tolist(), after.error_ps.tolist(), events.time_ps.tolist(), events.error_ps.tolist(), truth,
        strict=True,
    ):  # fmt: skip
        assert abs(true - before) <= bound
        assert abs(true - time) <= error


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(sms(), DRAWS)
def test_more_messages_never_widen_an_offset(all_sms: list[Sm], draws: list[tuple[int, int, int, int]]) -> None:
    lines = [sm.line() for sm in all_sms]
    messages = [
        Message(a, all_sms[a].stamp(sent, lines[a]), b, all_sms[b].stamp(received, lines[b]))
        for a, sent, b, received in exchange(all_sms, draws)
    ]
    few, many = fit_offsets(lines, messages[: len(messages) // 2]), fit_offsets(lines, messages)
    for before, after in ((few.bounds, many.bounds), (few.to_first, many.to_first)):
        for (low, high), (new_low, new_high) in zip(before, after, strict=True):
            assert low <= new_low <= new_high <= high
    assert many.to_first[0] == (0, 0)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(sms(), DRAWS.filter(bool))
def test_a_message_that_arrives_before_it_was_sent_is_refused(all_sms: list[Sm], draws) -> None:
    """The twin: one receipt 600 ns before its sending is beyond every bound here, and the error names it."""
    lines = [sm.line() for sm in all_sms]
    true = exchange(all_sms, draws)
    events, ctas, pairs, _ = stored(all_sms, lines, true)
    wrong = [n for n, (a, sent, _, _) in enumerate(true) if all_sms[a].time(sent) > 2_600_000]
    assume(wrong)
    a, sent, b, _ = true[wrong[0]]
    cycle = events.cycle.copy()
    receipt = int(pairs[wrong[0], 1])
    cycle[receipt] = all_sms[b].stamp(max(all_sms[b].cycle_after(all_sms[a].time(sent) - 600_000), 1), lines[b])
    assume(all_sms[b].time(1) <= all_sms[a].time(sent) - 600_000)
    with pytest.raises(ClockError, match="contradict") as caught:
        tighten(replace(events, cycle=cycle), ctas, pairs)
    assert f"→ event {receipt} of CTA {b}" in caught.value.place


def two_sms() -> list[Sm]:
    reading = ((20, 20), (20, 20))
    return [
        Sm(5_000, (0, 19_200), 38_016, Fraction(0), reading),
        Sm(9_000_000, (64, 19_264), 38_016, Fraction(0), reading),
    ]


def test_messages_both_ways_narrow_what_loose_anchors_leave() -> None:
    loose = ((600, 600), (600, 600))
    all_sms = [two_sms()[0], replace(two_sms()[1], reading=loose)]
    lines = [sm.line() for sm in all_sms]
    true = exchange(all_sms, [(n % 2, 1 - n % 2, 480 + n % 41, 50_000) for n in range(41)])
    messages = [Message(a, all_sms[a].stamp(s, lines[a]), b, all_sms[b].stamp(r, lines[b])) for a, s, b, r in true]
    alone, together = fit_offsets(lines, []), fit_offsets(lines, messages)
    assert alone.bounds == ((-10_103, 10_103), (-303_032, 303_032))
    assert alone.to_first == ((0, 0), (-313_135, 313_135))
    low, high = together.bounds[1]
    assert -260_000 < low < 0 < high < 260_000, "50 ns on the way, 96 ns of drift on each of the two"


def test_an_event_far_from_its_anchors_is_held_by_one_that_is_near() -> None:
    """Order alone: what the second SM sent late is bounded by a receipt that the first one placed well."""
    near = ((20, 20), (20, 20))
    all_sms = [
        Sm(5_000, (96_000, 99_200), 6_336, Fraction(0), near),
        Sm(9_000_000, (0, 192_000), 380_160, Fraction(0), near),
    ]
    lines = [sm.line() for sm in all_sms]
    true = exchange(all_sms, [(1, 0, 501, 50_000)])
    events, ctas, pairs, truth = stored(all_sms, lines, true)
    after = tighten(events, ctas, pairs)
    sent = int(pairs[0, 0])
    assert int(events.error_ps[sent]) > 960_000
    assert int(after.error_ps[sent]) < 520_000
    assert abs(truth[sent] - int(after.time_ps[sent])) <= int(after.error_ps[sent])


def test_an_anchor_that_is_wrong_is_an_error_and_not_an_average() -> None:
    all_sms = two_sms()
    lines = [sm.line() for sm in all_sms]
    messages = [
        Message(a, all_sms[a].stamp(s, lines[a]), b, all_sms[b].stamp(r, lines[b]), f"message {n}")
        for n, (a, s, b, r) in enumerate(exchange(all_sms, [(0, 1, 20, 1_000), (1, 0, 30, 1_000)]))
    ]
    assert fit_offsets(lines, messages)
    shifted = [lines[0], replace(lines[1], timers=(lines[1].timers[0] - 96, lines[1].timers[1] - 96))]
    with pytest.raises(ClockError) as caught:
        fit_offsets(shifted, messages)
    assert caught.value.fact.startswith("the clocks contradict the messages by ")
    assert "message 0" in caught.value.place
    assert "the anchors of clock 1" in caught.value.place
    assert caught.value.exit_code == 3


def test_the_bound_of_a_cta_without_a_second_edge_grows_from_the_first() -> None:
    """A trap came before it: the rate is another's, and a record may lie as late as it likes."""
    anchors = np.zeros(2, dtype=ANCHOR)
    anchors[0] = (EPOCH_NS - STEP_NS, EPOCH_NS, 980, 1012)
    line = read_line(anchors, "SM", khz=2_000_000)
    assert (line.open_end, line.limits[0], line.limits[1] > 1 << 62) == (True, 1012, True)
    late = np.array([0, 1 << 20, 2_000_000_000, 3_000_000_000], dtype=np.int64)
    assert line.place(late, EPOCH_NS).tolist() == [0, 500 * (1 << 20), 10**12, 3 * 10**12 // 2]
    assert np.diff(line.drift_ps(late)).min() > 0  # also beyond the second that the line is drawn through
    assert line.drift_ps(late)[2] == 10**12 * DRIFT_PERMILLE // 1000
    anchors[1] = (EPOCH_NS + 10**9 - STEP_NS, EPOCH_NS + 10**9, 2_000_000_980, 2_000_001_012)
    twin = read_line(anchors, "SM", khz=2_000_000)
    assert (twin.open_end, twin.limits, twin.drift_ps(late)[2]) == (False, (1012, 2_000_000_980), 0)


def test_lines_come_back_from_a_file_as_they_were() -> None:
    for sm in two_sms():
        line = sm.line()
        header = CtaInfo(
            3, 3, (Anchor(0, 0, line.in_ps(line.slack[0])), Anchor(19_200, line.span, line.in_ps(line.slack[1])))
        )
        again = stored_line(header)
        assert (again.span, again.ps, again.slack) == (line.span, line.ps, line.slack)
    with pytest.raises(TraceFormatError, match="1 anchors"):
        stored_line(CtaInfo(3, 3, (Anchor(0, 0, 1),)))
    with pytest.raises(TraceFormatError, match="not later"):
        stored_line(CtaInfo(3, 3, (Anchor(0, 0, 1), Anchor(0, 10, 1))))
