"""The steady window: whole laps, inside the loop, after the first lap and before the last iterations."""

from hypothesis import given
from hypothesis import strategies as st

from pipesim.trace.steady import steady_window


def test_examples():
    assert [steady_window(n, 4) for n in (0, 1, 8, 10, 16, 64)] == [None, None, None, (4, 8), (4, 12), (16, 52)]
    assert steady_window(64, 1) == (16, 55)


@given(st.integers(0, 10_000), st.integers(1, 64))
def test_a_window_is_whole_laps_inside_the_loop(trips, stages):
    window = steady_window(trips, stages)
    if window is None:
        assert trips < 4 * stages + 2
        return
    first, last = window
    assert stages <= first < last < trips
    assert (last - first) % stages == 0
    assert first >= trips // 4
