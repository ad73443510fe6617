"""The yardstick for any number of tiles: the endless ring is right, and SPIN would see it if it were wrong."""

from __future__ import annotations

import shutil

import pytest

from tools.spin_ring import model, times

COMPILER = next((name for name in ("tcc", "cc") if shutil.which(name)), "")
needs_spin = pytest.mark.skipif(not (shutil.which("spin") and COMPILER), reason="spin or a C compiler is not installed")


@needs_spin
@pytest.mark.parametrize(("stages", "consumers", "states"), [(1, 1, 19), (2, 1, 133), (2, 2, 721)])
def test_the_endless_ring_is_right(stages: int, consumers: int, states: int) -> None:
    took = times(model(stages, consumers), COMPILER)
    assert (took.errors, took.states) == (0, states)


@needs_spin
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("bit parity = 1;", "bit parity;"),  # the producer waits for what no consumer gives back
        ("look(parity) }", "look(1 - parity) }"),  # the consumer wants the lap before
        ("expected[4] = {1, 1, 1, 1}", "expected[4] = {2, 1, 1, 1}"),  # an arrival that nobody makes, a lap later
        ("phase[2 + s] != parity", "1"),  # the producer does not wait
    ],
)
def test_a_wrong_one_is_seen(right: str, wrong: str) -> None:
    text = model(2, 1)
    assert right in text
    assert times(text.replace(right, wrong), COMPILER).errors == 1
