"""Whether the model follows a run, also one that hung or was made wrong: each with a twin that it does not follow."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from pipesim.conform.agreement import Agreement, Reason, ReasonKind, agreement_of
from pipesim.conform.result import DivergenceKind
from pipesim.trace.schema import EventKind, Events
from tests.conform.cases import stored

FAULT = "h100/producer_consumer-al1-cw2-s3-tb4096-t24-w200-g1-missing_arrive-at-7.parquet"
HUNG = "h200/epilogue_residual-a2-at700-cs2-es2-e150-fto0-ki1-od0-r1-sb2048-s4-st4-t8-g1.parquet"
GOOD = "h100/producer_consumer-al1-cw2-s4-tb16384-t5-w600-g1.parquet"


def stands(case: Any) -> Agreement:
    return agreement_of(case.program, case.trace).agreement


def lost_one_each(case: Any) -> Any:
    (header,) = case.trace.meta.ctas
    return (replace(header, dropped=tuple(1 for _ in case.trace.meta.agents)),)


def with_another_word(case: Any) -> Any:
    (header,) = case.trace.meta.ctas
    return (replace(header, barrier_words=(header.barrier_words[0] ^ 1 << 63, *header.barrier_words[1:])),)


#: A recording, what of its description is changed, and the answer with its reason.
STORIES: list[tuple[str, dict[str, Any], Agreement, Reason | None]] = [
    (GOOD, {}, Agreement.CONFORMS, None),
    (HUNG, {}, Agreement.HANGS_TOO, None),
    (FAULT, {}, Agreement.FAULT_NAMED, None),
    # a run that ended is no hang; one that did all its protocol says is stuck nowhere; a trap is no hang
    (HUNG, {"status": "finished"}, Agreement.DIFFERS, Reason(ReasonKind.DIVERGES)),
    (GOOD, {"status": "deadline"}, Agreement.DIFFERS, Reason(ReasonKind.DIVERGES)),
    (HUNG, {"status": "trap"}, Agreement.DIFFERS, Reason(ReasonKind.DIVERGES)),
    (GOOD, {"status": "unknown"}, Agreement.UNKNOWN, Reason(ReasonKind.CUT_OFF)),
    # another fault than was injected, and none: then it hung where the right protocol is not stuck
    (FAULT, {"fault": "no_acquire@7"}, Agreement.DIFFERS, Reason(ReasonKind.OTHER_FAULT, name="no_acquire@7")),
    (FAULT, {"fault": ""}, Agreement.DIFFERS, Reason(ReasonKind.DIVERGES)),
    (HUNG, {"ctas": with_another_word}, Agreement.DIFFERS, Reason(ReasonKind.BARRIERS_DIFFER, 1)),
    (FAULT, {"ctas": with_another_word}, Agreement.DIFFERS, Reason(ReasonKind.BARRIERS_DIFFER, 1)),
    (GOOD, {"ctas": lost_one_each}, Agreement.UNKNOWN, Reason(ReasonKind.RECORDS_LOST, 3)),
    (GOOD, {"wrong_tiles": 3}, Agreement.DIFFERS, Reason(ReasonKind.WRONG_TILES, 3)),
    (GOOD, {"ctas": lost_one_each, "wrong_tiles": 1}, Agreement.DIFFERS, Reason(ReasonKind.WRONG_TILES, 1)),
    (GOOD, {"extra": {"wrong_outputs": {"c": 7}}}, Agreement.DIFFERS, Reason(ReasonKind.WRONG_OUTPUT, 7, "c")),
    # a launch that gave up is part of a hang, and speaks against a run that finished
    (GOOD, {"extra": {"gave_up": {"traced": False}}}, Agreement.DIFFERS, Reason(ReasonKind.GAVE_UP)),
    (HUNG, {"extra": {"gave_up": {"traced": True}}}, Agreement.HANGS_TOO, None),
]


@pytest.mark.sampled(3, 7)
@pytest.mark.parametrize(("name", "changes", "expected", "reason"), STORIES)
def test_the_answer_and_its_reason(
    name: str, changes: dict[str, Any], expected: Agreement, reason: Reason | None
) -> None:
    case = stored(name)
    case = case.with_meta(**{key: value(case) if callable(value) else value for key, value in changes.items()})
    found = agreement_of(case.program, case.trace)
    assert (found.agreement, found.reason) == (expected, reason)
    assert expected.agrees is (reason is None)


@pytest.mark.slow
def test_a_hang_is_followed_in_every_cta() -> None:
    """One CTA that hangs as the model does says nothing for another that did something else before."""
    case = stored(HUNG)
    events, (header,) = case.trace.events, case.trace.meta.ctas
    other = replace(events, cta=events.cta + 1)
    both = Events(*(np.concatenate([getattr(events, f.name), getattr(other, f.name)]) for f in fields(Events)))
    case = case.with_events(both).with_meta(ctas=(header, replace(header, cta=1)))
    assert stands(case) is Agreement.HANGS_TOO
    arrive = case.rows(kind=EventKind.ARRIVE, cta=1)[0]
    wrong = case.changed(arrive, value=int(both.value[arrive]) + 1)
    assert stands(wrong) is Agreement.DIFFERS
    assert wrong.refused().kind is DivergenceKind.OTHER_EVENT
    assert wrong.refused().cta == 1
