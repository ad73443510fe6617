"""Two traces of one protocol: the same configuration, and the same behaviour agent by agent."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipesim.conform.pair.pair import compare_traces
from pipesim.conform.pair.result import Difference, DifferenceKind, EventPair, Setting, Surplus
from pipesim.conform.result import TraceVerdict
from pipesim.errors import EvidenceError
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.schema import ON_NAMED_BARRIER, CtaInfo, EventKind, Trace
from pipesim.trace.sites import optional_sites
from tests.conform.cases import simulated, stored
from tests.support.paths import EXAMPLES

USUAL = "producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet"


def name(**other: int) -> str:
    """A stored recording of one consumer warp without work; ``other`` replaces parts of its name."""
    parts = {"al": 1, "cw": 1, "s": 4, "tb": 4096, "t": 64, "w": 0, "g": 1} | other
    return "h100/producer_consumer-" + "-".join(f"{key}{value}" for key, value in parts.items()) + ".parquet"


def only_difference(a: Any, b: Any) -> Difference:
    """The one difference, found from both sides."""
    (here,) = compare_traces(a.trace, b.trace).behaviour.differences
    (there,) = compare_traces(b.trace, a.trace).behaviour.differences
    assert (here.cta, here.agent, here.event, here.cycle_a) == (there.cta, there.agent, there.event, there.cycle_b)
    assert [(x.a, x.b) for x in here.around] == [(x.b, x.a) for x in there.around]
    return here


# The same behaviour


def test_one_value_among_others_is_no_matter_of_parameters() -> None:
    """The twin of the last: the copies of B are larger, but one of them is not."""
    other = stored(name(tb=16384))
    row = other.rows(0, EventKind.COPY)[30]
    difference = only_difference(stored(name()), other.changed(row, value=1))
    assert (difference.agent, difference.iteration) == ("producer", 0)  # nothing explains the others any more


def test_fewer_tiles_that_no_parameter_asked_for_are_a_difference() -> None:
    whole = simulated(tiles=12)
    short = whole.ordered([r for r in range(len(whole.trace.events)) if whole.trace.events.iteration[r] < 11])
    for case in (short, short.with_meta(params=dict(whole.trace.meta.params) | {"work": 7})):
        found = compare_traces(whole.trace, case.trace).behaviour
        assert found.verdict is TraceVerdict.DIFFERS
        assert {(d.kind, d.iteration) for d in found.differences} == {(DifferenceKind.ONLY_A, 11)}


def test_whether_a_try_succeeds_is_a_matter_of_time() -> None:
    """A slow consumer finds its tiles by a try, a fast one waits for them: the same passes in the same order."""
    slow, fast = (simulated(stages=4, tiles=16, work=work, tries=True) for work in (400, 1))
    sites = [{fast.kind(row) for row in case.rows(1, group="full")} for case in (slow, fast)]
    assert EventKind.WAIT_RETURN in sites[1]
    assert len(slow.trace.events) != len(fast.trace.events)
    one, two = (replace(case.trace, meta=replace(case.trace.meta, params={})) for case in (slow, fast))
    found = compare_traces(one, two).behaviour
    assert (found.verdict, found.differences, found.surplus) == (TraceVerdict.AGREES, (), ())


# Another behaviour


def test_a_dropped_event() -> None:
    case = stored(f"h100/{USUAL}")
    row = case.rows(2, EventKind.ARRIVE)[5]
    for edited in (case.without(row), case.without(row).renumbered()):
        difference = only_difference(case, edited)
        assert difference == Difference(
            DifferenceKind.ONLY_A, 0, "consumer/1", 5, 29, case.cycle(row), case.cycle(row + 1),
            (
                EventPair(5, "wait full[1] parity 1 returns", "wait full[1] parity 1 returns"),
                EventPair(5, "work begins", "work begins"),
                EventPair(5, "work ends", "work ends"),
                EventPair(5, "arrive empty[1]", "wait full[2] parity 1"),
                EventPair(6, "wait full[2] parity 1", "wait full[2] parity 1 returns"),
            ),
            3,
        )  # fmt: skip
        assert difference.here == EventPair(5, "arrive empty[1]", "wait full[2] parity 1")
        found = compare_traces(edited.trace, case.trace).behaviour
        assert found.differences[0].kind is DifferenceKind.ONLY_B
        assert found.surplus == (Surplus("consumer/1", "arrive empty", 0, 1),)
        assert found.matched == 895


@pytest.mark.slow
def test_a_changed_value_parity_or_stage(good: Any) -> None:
    last = len(good.trace.meta.agents) - 1
    wait = good.rows(last, EventKind.WAIT_ENTER)[3]
    arrive = good.rows(last, EventKind.ARRIVE)[2]
    parity = 1 - int(good.trace.events.parity[wait])
    turns = [int(good.trace.events.iteration[row]) for row in (wait, arrive)]
    for row, cells, turn in ((wait, {"parity": parity}, turns[0]), (arrive, {"value": 77}, turns[1])):
        difference = only_difference(good, good.changed(row, **cells))
        assert (difference.kind, difference.iteration) == (DifferenceKind.DETAIL, turn)
        assert difference.here.a != difference.here.b


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"status": "deadline"}, Setting("status", "finished", "deadline")),
        ({"wrong_tiles": 3}, Setting("tiles with wrong data", "0", "3")),
        ({"extra": {"gave_up": {"cta": 0}}}, Setting("launches that did not finish", "none", "some")),
    ],
)
def test_runs_that_end_differently_differ(good: Any, changes: dict[str, Any], outcome: Setting) -> None:
    found = compare_traces(good.trace, good.with_meta(**changes).trace).behaviour
    assert (found.verdict, found.outcomes, found.differences) == (TraceVerdict.DIFFERS, (outcome,), ())


# Unknown, and nothing to compare


def lossy(case: Any, lost: int) -> Any:
    """The last agent's records from some place on did not fit."""
    last = len(case.trace.meta.agents) - 1
    rows = case.rows(last)
    left = case.without(*rows[len(rows) - lost :])
    dropped = (*[0] * last, lost)
    return left.with_meta(ctas=(CtaInfo(0, 0, dropped=dropped),))


def test_lost_records_leave_it_open(good: Any) -> None:
    partial = lossy(good, 10)
    for a, b, lost in ((good, partial, (0, 10)), (partial, good, (10, 0)), (partial, partial, (10, 10))):
        found = compare_traces(a.trace, b.trace).behaviour
        assert (found.verdict, found.differences, found.surplus) == (TraceVerdict.UNKNOWN, (), ())
        assert (found.lost_a, found.lost_b) == lost


def test_windows_are_compared_where_both_looked() -> None:
    case = stored(f"h100/{USUAL}")

    def window(first: int, end: int) -> Trace:
        turns = case.trace.events.iteration
        kept = case.trace.events.select(np.flatnonzero((turns >= first) & (turns < end)))
        return Trace(replace(case.trace.meta, window=(first, end)), kept)

    pair = compare_traces(window(8, 24), window(16, 40))
    assert pair.settings == (Setting("window", "8 to 23", "16 to 39"),)
    assert (pair.behaviour.verdict, pair.behaviour.matched) == (TraceVerdict.AGREES, 8 * 14)
    assert pair.behaviour.notes == ("only the iterations in both windows are compared: 16 to 23",)
    assert pair.behaviour.window == (16, 24)
    pair = compare_traces(case.trace, window(16, 40))
    assert (pair.behaviour.verdict, pair.behaviour.matched) == (TraceVerdict.AGREES, 24 * 14)
    with pytest.raises(EvidenceError, match="no agent and iteration in common"):
        compare_traces(window(0, 8), window(8, 16))


def test_a_launch_of_many_ctas_and_one_of_one() -> None:
    one, all_ = stored(name()), stored(name(g=132))
    pair = compare_traces(all_.trace, one.trace)
    assert (pair.behaviour.ctas, pair.behaviour.matched, pair.behaviour.verdict) == ((0,), 576, TraceVerdict.AGREES)
    assert pair.behaviour.notes == ("CTAs recorded in one only are not compared: 1, 2, 3, 4, 5, 6, 7",)
    every = compare_traces(all_.trace, all_.trace).behaviour
    assert (every.ctas, every.matched) == (tuple(range(8)), 8 * 576)


def test_nothing_to_compare() -> None:
    usual, ring = stored(f"h100/{USUAL}"), simulated()
    with pytest.raises(EvidenceError, match="different protocols: A of producer_consumer, B of") as error:
        compare_traces(usual.trace, ring.trace)
    assert error.value.exit_code == 3
    with pytest.raises(EvidenceError, match="B has no event"):
        compare_traces(usual.trace, stored("h100/" + USUAL.replace("-t64-", "-t0-")).trace)
    all_ = stored(name(g=132))
    apart = [all_.with_events(all_.trace.events.select(np.flatnonzero(all_.trace.events.cta == n))) for n in (2, 5)]
    with pytest.raises(EvidenceError, match="no recorded CTA in common"):
        compare_traces(apart[0].trace, apart[1].trace)


def test_what_only_one_of_the_two_records_is_left_out() -> None:
    """A named barrier that B does not record is no difference, and the notes say so."""
    program = find(f"{EXAMPLES / 'relay.py'}:relay").build({"tiles": 9})
    every, profile = optional_sites(program), load_profile("h200")
    some = frozenset(key for key in every if key[1] not in ON_NAMED_BARRIER)
    a, b = (simulate(program, profile, traced=True, also=also).trace for also in (every, some))
    found = compare_traces(a, b).behaviour
    assert (found.verdict, found.differences, found.surplus) == (TraceVerdict.AGREES, (), ())
    assert [note for note in found.notes if note.endswith(": BAR_ARRIVE, BAR_ENTER, BAR_RETURN")]
    assert compare_traces(a, a).behaviour.matched == len(a.events)
