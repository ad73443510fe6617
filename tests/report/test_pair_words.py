"""The sentence about time of two traces: what it says for each kind of difference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipesim.conform.pair.result import Ledger, PairFigure, PairTiming, Segment
from pipesim.report.sentences.pair import time_words

LEDGER = Ledger("mma", 64, 0, 0, 10, 1_000, 1_360, (
    Segment("waiting for full", 0, 0, 100, 400),
    Segment("work", 0, 0, 700, 740),
    Segment("after work end", 0, 0, 100, 130),
    Segment("after arrive empty", 0, 0, 100, 90),
))  # fmt: skip
TIMING = PairTiming(0, (PairFigure("period", 100_000, 136_000, 100, 200),), "period", (LEDGER,), 1_000_000, 1_000_000,
                    clocks_differ=False, unlike=False, last=("mma", "mma"))  # fmt: skip


def said(b: int = 136_000, noise: int | None = 100, name: str = "period", **changes: object) -> str:
    figure = PairFigure(name, 100_000, b, noise, 200)
    return time_words(replace(TIMING, figures=(figure,), primary=name, **changes))  # type: ignore[arg-type]


def test_the_parts_add_up_to_the_whole() -> None:
    assert said() == (
        "B is 36.0 % slower: +36.0 cycles a tile, of which mma waiting for full +30.0, work +4.0, "
        "after work end +3.0, everything else −1.0"
    )


@pytest.mark.parametrize(
    ("b", "words"),
    [
        (100_000, "B takes the same number of cycles"),
        (100_300, "B takes the same number of cycles within the noise: +0.3 cycles a tile, noise ±0.3"),
        (99_700, "B takes the same number of cycles within the noise: −0.3 cycles a tile, noise ±0.3"),
    ],
)
def test_within_the_noise_nothing_is_explained(b: int, words: str) -> None:
    assert said(b) == words


def test_other_figures() -> None:
    words = said(name="whole run, traced", unlike=True)
    assert words == "B is 36.0 % slower: +36 cycles over the whole run"
    words = said(name="compared part, traced", unlike=True)
    assert words == "B is 36.0 % slower: +36 cycles over the compared iterations"
    assert time_words(replace(TIMING, primary="")) == ""


def test_with_other_clocks_slower_is_meant_in_time() -> None:
    """36 % more cycles at twice the clock are fewer nanoseconds."""
    clocks: dict[str, Any] = {"khz_b": 2_000_000, "clocks_differ": True, "unlike": True}
    at = "1,000 MHz in A, 2,000 MHz in B"
    assert said(**clocks) == f"B is 32.0 % faster in time: +36.0 cycles a tile at {at}"
    assert said(100_000, **clocks) == f"B takes the same number of cycles; B is 50.0 % faster in time at {at}"
    assert said(200_000, **clocks) == f"B is as fast in time: +100.0 cycles a tile at {at}"
