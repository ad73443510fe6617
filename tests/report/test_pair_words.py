"""The sentence about time of two traces: what it says for each kind of difference."""

from __future__ import annotations

from dataclasses import replace

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


def test_other_figures() -> None:
    words = said(name="whole run, traced", unlike=True)
    assert words == "B is 36.0 % slower: +36 cycles over the whole run"
    words = said(name="compared part, traced", unlike=True)
    assert words == "B is 36.0 % slower: +36 cycles over the compared iterations"
    assert time_words(replace(TIMING, primary="")) == ""
