"""The sentences that reports make from the data of an answer: each reason has one of its own, with its numbers."""

from dataclasses import replace

import pytest

from pipesim.answers.compare import trace_comparison
from pipesim.answers.progress import Stage
from pipesim.answers.views.summary import TraceLine
from pipesim.answers.views.trace import CAPTURED_NOW, TraceComparison
from pipesim.conform.agreement import Agreement, Reason, ReasonKind
from pipesim.conform.result import Divergence, DivergenceKind, TraceVerdict
from pipesim.report.sentences.stage import doing_words, done_words
from pipesim.report.sentences.trace import (
    comparison_reason,
    trace_line_reason,
)
from pipesim.targets import find
from pipesim.trace.files import read_trace
from pipesim.trace.library import trace_folder

GOOD = trace_folder() / "h100" / "producer_consumer-al1-cw2-s4-tb16384-t5-w600-g1.parquet"
DIVERGENCE = Divergence(DivergenceKind.TOO_EARLY, "what it is in this trace", 0, "consumer/0", 1, 2, 3, 4)


@pytest.fixture(scope="module")
def agreeing() -> TraceComparison:
    trace = read_trace(GOOD)
    return trace_comparison(find("producer_consumer").build(trace.meta.params), trace, "t.parquet")


def differing(found: TraceComparison, reason: Reason) -> TraceComparison:
    conformance = replace(found.conformance, verdict=TraceVerdict.DIFFERS, divergence=DIVERGENCE)
    return replace(found, agreement=Agreement.DIFFERS, reason=reason, conformance=conformance)


def test_every_reason_has_a_sentence_of_its_own_with_its_numbers(agreeing: TraceComparison) -> None:
    said = {kind: comparison_reason(differing(agreeing, Reason(kind, 1_234, "x@7"))) for kind in ReasonKind}
    assert len(set(said.values())) == len(ReasonKind)
    assert said[ReasonKind.DIVERGES] == DivergenceKind.TOO_EARLY.value
    numbers = {kind for kind, text in said.items() if "1,234" in text}
    names = {kind for kind, text in said.items() if "x@7" in text}
    assert numbers == {
        ReasonKind.BARRIERS_DIFFER,
        ReasonKind.WRONG_TILES,
        ReasonKind.WRONG_OUTPUT,
        ReasonKind.RECORDS_LOST,
    }
    assert names == {ReasonKind.OTHER_FAULT, ReasonKind.WRONG_OUTPUT}


def test_one_of_many_traces_names_its_divergence_by_its_claim() -> None:
    line = TraceLine("a", "b/a", "h100", Agreement.DIFFERS, 3, Reason(ReasonKind.DIVERGES), DIVERGENCE.claim)
    assert trace_line_reason(line) == DIVERGENCE.claim
    lost = replace(line, reason=Reason(ReasonKind.RECORDS_LOST, 1), claim="")
    assert trace_line_reason(lost) == "1 record was lost"
    assert trace_line_reason(replace(line, reason=None, claim="", unusable="it is truncated")) == "it is truncated"


def test_every_stage_has_words() -> None:
    names = ("ring", "h100")
    assert len({doing_words(stage, *names) for stage in Stage}) == len({done_words(stage, "ring") for stage in Stage})
    assert len({doing_words(stage, *names) for stage in Stage}) == len(Stage)
    assert doing_words(Stage.COMPARE, CAPTURED_NOW) == "comparing with the fresh trace"
