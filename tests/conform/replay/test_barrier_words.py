"""Barrier words of a run that finished: each is what the model leaves, or that is the divergence."""

from dataclasses import replace
from typing import Any

import pytest

from pipesim.conform.diagnose.diagnose import diagnose
from pipesim.conform.result import DivergenceKind, TraceVerdict
from pipesim.model.barrier import BarrierWord
from tests.conform.cases import stored
from tests.support.barrier_words import encode_word

USUAL = "h100/producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet"
NAMES = [f"{group}[{stage}]" for group in ("full", "empty") for stage in range(4)]


def reread(case: Any, words: dict[int, BarrierWord]) -> Any:
    """The case with other words read for some barriers of its CTA."""
    (header,) = case.trace.meta.ctas
    read = [encode_word(words[n]) if n in words else word for n, word in enumerate(header.barrier_words)]
    return case.with_meta(ctas=(replace(header, barrier_words=tuple(read)),))


@pytest.mark.parametrize(
    ("name", "words"),
    [(USUAL, 8), ("h200/producer_consumer-al1-cw4-s4-tb16384-t64-w0-g132.parquet", 64),
     ("h100/producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1-window20..40.parquet", 8)],
)  # fmt: skip
def test_the_words_of_recorded_runs_agree(name: str, words: int) -> None:
    result = stored(name).conform()
    assert (result.verdict, result.words) == (TraceVerdict.AGREES, words)


@pytest.mark.parametrize("barrier", [0, 6])
@pytest.mark.parametrize("field", ["expected", "pending", "tx", "parity"])
def test_any_other_word_is_a_divergence(barrier: int, field: str) -> None:
    count = 1 if barrier < 4 else 2
    right = BarrierWord(count, count, 0, 0)
    wrong = right._replace(**{field: 1 - getattr(right, field) if field == "parity" else getattr(right, field) + 1})
    case = stored(USUAL)
    assert reread(case, {barrier: right}).conform().divergence is None  # the twin
    found = reread(case, {barrier: wrong}).refused()
    assert (found.kind, found.barrier, found.agent) == (DivergenceKind.BARRIER_WORD, NAMES[barrier], "")
    assert found.claim.startswith(f"{NAMES[barrier]} was left with parity {wrong.parity}, {wrong.pending} of ")
    assert f"the protocol leaves parity 0, {count} of {count} arrivals pending, 0 bytes missing" in found.claim


def test_no_edit_is_looked_for_where_every_record_conforms() -> None:
    case = reread(stored(USUAL), {0: BarrierWord(1, 0, 0, 0)})
    assert diagnose(case.program, case.trace, case.conform()) is None


def test_words_are_not_held_against_a_run_that_lost_records() -> None:
    case = reread(stored(USUAL), {0: BarrierWord(1, 0, 0, 0)})
    result = case.lossy({0: 1}).conform()
    assert (result.verdict, result.words) == (TraceVerdict.UNKNOWN, 0)
