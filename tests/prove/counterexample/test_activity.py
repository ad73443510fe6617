"""The rows of a schedule's timeline, span by span."""

from pipesim.model.waits import WaitPurpose
from pipesim.prove.check import check
from pipesim.prove.counterexample.activity import FOREVER, Activity, Span, activity
from pipesim.prove.counterexample.play import from_text
from tests.support.mistakes import BROKEN


def test_a_ring_of_one_stage_that_is_never_given_back() -> None:
    """The set-up, a tile, and both wait indefinitely: every span of it."""
    program = BROKEN["consumer_never_arrives"](stages=1, tiles=2).flatten()
    (found,) = check(program).refutations
    issues, waits, works = Activity.ISSUES, Activity.WAITS, Activity.WORKS
    room, data = WaitPurpose.ROOM, WaitPurpose.DATA
    assert activity(program, found.schedule) == (
        Span(0, 0, 1, issues),
        Span(0, 1, 2, issues),
        Span(0, 2, 3, issues),
        Span(0, 3, 4, issues),
        Span(1, 4, 5, issues),
        Span(0, 5, 6, issues),
        Span(0, 6, 7, waits, "empty", room),
        Span(0, 7, 8, issues),
        Span(0, 8, 9, issues),
        Span(1, 5, 11, waits, "full", data),  # move 9 is the landing
        Span(1, 11, 13, works),
        Span(0, 9, FOREVER, waits, "empty", room),
        Span(1, 13, FOREVER, waits, "full", data),
    )


def test_an_access_that_is_open_when_a_race_ends_the_schedule() -> None:
    program = BROKEN["consumer_arrives_before_reading"]().flatten()
    spans = activity(program, from_text("0*6.1.0*7.~0:64.1*2.0*2.1o.0"))
    assert [span for span in spans if span.end >= 20] == [
        Span(0, 20, 21, Activity.ISSUES),
        Span(1, 19, 21, Activity.WORKS),
    ]
