"""Whether the model follows a run, also one that hung or was made wrong: each with a twin that it does not follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from pipesim.conform.agreement import Agreement, Reason, ReasonKind, agreement_of
from pipesim.conform.result import DivergenceKind
from pipesim.trace.schema import EventKind, Events

Make = Callable[..., Any]
FAULT = "h100/producer_consumer-al1-cw2-s3-tb4096-t24-w200-g1-missing_arrive-at-7.parquet"
HUNG = "h200/epilogue_residual-a2-at700-cs2-es2-e150-fto0-ki1-od0-r1-sb2048-s4-st4-t8-g1.parquet"
GOOD = "h100/producer_consumer-al1-cw2-s4-tb16384-t5-w600-g1.parquet"


def stands(case: Any) -> Agreement:
    return agreement_of(case.program, case.trace).agreement


@pytest.mark.parametrize(
    ("name", "expected"),
    [(GOOD, Agreement.CONFORMS), (HUNG, Agreement.HANGS_TOO), (FAULT, Agreement.FAULT_NAMED)],
)
def test_what_the_model_follows(stored: Make, name: str, expected: Agreement) -> None:
    assert stands(stored(name)) is expected
    assert expected.agrees


def test_a_run_that_ended_is_no_hang(stored: Make) -> None:
    assert stands(stored(HUNG).with_meta(status="finished")) is Agreement.DIFFERS


def test_a_kernel_that_is_said_to_have_hung_and_did_all(stored: Make) -> None:
    """The model goes on to its end with these records, and is stuck nowhere."""
    assert stands(stored(GOOD).with_meta(status="deadline")) is Agreement.DIFFERS


@pytest.mark.parametrize("name", [HUNG, FAULT])
def test_barriers_that_were_left_otherwise(stored: Make, name: str) -> None:
    case = stored(name)
    (header,) = case.trace.meta.ctas
    words = (header.barrier_words[0] ^ 1 << 63, *header.barrier_words[1:])
    assert stands(case.with_meta(ctas=(replace(header, barrier_words=words),))) is Agreement.DIFFERS


def test_another_fault_than_was_made(stored: Make) -> None:
    assert stands(stored(FAULT).with_meta(fault="no_acquire@7")) is Agreement.DIFFERS


def test_a_fault_that_nobody_made(stored: Make) -> None:
    """It hung, but not where the model of the right protocol is stuck."""
    assert stands(stored(FAULT).with_meta(fault="")) is Agreement.DIFFERS


def test_lost_records_leave_it_open(stored: Make) -> None:
    case = stored(GOOD)
    (header,) = case.trace.meta.ctas
    lost = replace(header, dropped=tuple(1 for _ in case.trace.meta.agents))
    found = stands(case.with_meta(ctas=(lost,)))
    assert found is Agreement.UNKNOWN
    assert not found.agrees


# why, as data


def why(case: Any) -> Reason | None:
    return agreement_of(case.program, case.trace).reason


@pytest.mark.parametrize("name", [GOOD, HUNG, FAULT])
def test_what_agrees_needs_no_reason(stored: Make, name: str) -> None:
    assert why(stored(name)) is None


def test_the_reason_is_data(stored: Make) -> None:
    good, hung, fault = stored(GOOD), stored(HUNG), stored(FAULT)
    (header,) = good.trace.meta.ctas
    lost = replace(header, dropped=tuple(1 for _ in good.trace.meta.agents))
    assert why(good.with_meta(ctas=(lost,))) == Reason(ReasonKind.RECORDS_LOST, len(good.trace.meta.agents))
    assert why(good.with_meta(wrong_tiles=3)) == Reason(ReasonKind.WRONG_TILES, 3)
    assert why(good.with_meta(extra={"wrong_outputs": {"c": 7}})) == Reason(ReasonKind.WRONG_OUTPUT, 7, "c")
    assert why(good.with_meta(extra={"gave_up": {"traced": False}})) == Reason(ReasonKind.GAVE_UP)
    assert why(good.with_meta(status="unknown")) == Reason(ReasonKind.CUT_OFF)
    assert why(hung.with_meta(status="finished")) == Reason(ReasonKind.DIVERGES)
    assert why(fault.with_meta(fault="no_acquire@7")) == Reason(ReasonKind.OTHER_FAULT, name="no_acquire@7")
    (header,) = hung.trace.meta.ctas
    words = (header.barrier_words[0] ^ 1 << 63, *header.barrier_words[1:])
    assert why(hung.with_meta(ctas=(replace(header, barrier_words=words),))) == Reason(ReasonKind.BARRIERS_DIFFER, 1)


def test_wrong_data_beat_lost_records(stored: Make) -> None:
    case = stored(GOOD)
    (header,) = case.trace.meta.ctas
    lost = replace(header, dropped=tuple(1 for _ in case.trace.meta.agents))
    assert stands(case.with_meta(ctas=(lost,), wrong_tiles=1)) is Agreement.DIFFERS


def test_a_launch_that_gave_up_is_part_of_a_hang(stored: Make) -> None:
    """That is how a hang is recorded; the same note beside a run that finished is not."""
    assert stands(stored(HUNG).with_meta(extra={"gave_up": {"traced": True}})) is Agreement.HANGS_TOO


def test_a_trap_is_no_hang(stored: Make) -> None:
    """The records end where the model is stuck, and the hardware ended the launch there, which the model does not."""
    assert stands(stored(HUNG).with_meta(status="trap")) is Agreement.DIFFERS


def test_a_hang_is_followed_in_every_cta(stored: Make) -> None:
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
