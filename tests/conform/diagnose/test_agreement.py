"""Whether the model follows a run, also one that hung or was made wrong: each with a twin that it does not follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pipesim.conform.diagnose.agreement import Agreement, agreement
from pipesim.conform.diagnose.examine import examine

Make = Callable[..., Any]
FAULT = "h100/producer_consumer-al1-cw2-s3-tb4096-t24-w200-g1-missing_arrive-at-7.parquet"
HUNG = "h200/epilogue_residual-a2-at700-cs2-es2-e150-fto0-ki1-od0-r1-sb2048-s4-st4-t8-g1.parquet"
GOOD = "h100/producer_consumer-al1-cw2-s4-tb16384-t5-w600-g1.parquet"


def stands(case: Any) -> Agreement:
    found = case.conform()
    return agreement(case.trace.meta, found, examine(case.program, case.trace, found))


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
