"""Every test is in exactly one lane; what is not so is said. ``tools/lanes.py`` itself runs in ``.ci/run``."""

from __future__ import annotations

import pytest

from tools import lanes

FAST, SLOW = ["tests/a/test_x.py::one", "tests/test_y.py::two"], ["tests/a/test_x.py::three"]


def test_two_lanes_that_are_all_tests() -> None:
    assert lanes.complaints(FAST, SLOW, [*SLOW, *FAST]) == []


@pytest.mark.parametrize(
    ("fast", "slow", "both", "complaint"),
    [
        (FAST, [], [*FAST, *SLOW], "in no lane: tests/a/test_x.py::three"),
        (FAST, FAST[:1], FAST, "in both lanes, or there twice: tests/a/test_x.py::one"),
        (FAST[1:], [*FAST[:1], *SLOW], [*FAST, *SLOW], "nothing in the fast lane: tests/a"),
    ],
)
def test_what_is_wrong_is_said(fast: list[str], slow: list[str], both: list[str], complaint: str) -> None:
    assert lanes.complaints(fast, slow, both) == [complaint]


def test_the_areas_are_the_folders_of_the_tests() -> None:
    assert [lanes.area(name) for name in FAST] == ["a", "."]
