"""CTAs that recorded the same are aligned once; a CTA that recorded anything else is aligned by itself."""

from __future__ import annotations

import numpy as np
import pytest

from pipesim.answers.recorded_program import recorded_program
from pipesim.conform.replay.align import Alignments, Sight, align, site_numbers
from pipesim.conform.replay.conformance import events_of, recorded_ctas
from pipesim.trace.files import read_trace
from pipesim.trace.schema import Events
from pipesim.trace.sites import site_table
from tests.support.paths import TRACES

STORED = TRACES / "h200" / (
    "epilogue_residual-a2-at700-cs2-es2-e150-fto1-ki3-od0-r1-sb2048-s4-st4-t16-g132-both.parquet"
)  # fmt: skip
TRACE = read_trace(STORED)
PROGRAM = recorded_program(TRACE.meta)
TABLE = site_table(PROGRAM)
SIGHT = Sight()


def first_and_second() -> tuple[Events, Events]:
    one, two, *_ = (events_of(TRACE, cta) for cta in recorded_ctas(TRACE))
    assert one.cycle.tolist() != two.cycle.tolist(), "they differ in their times"
    return one, two


@pytest.mark.parametrize("agent", range(len(PROGRAM.agents)))
def test_two_ctas_with_the_same_records_share_what_each_would_get(agent: int) -> None:
    known = Alignments(PROGRAM, TABLE, TRACE)
    one, two = first_and_second()
    found = known(one, agent, SIGHT)
    assert known(two, agent, SIGHT) is found
    rows = np.flatnonzero(two.agent == agent).tolist()
    assert found == align(PROGRAM, TABLE, two, rows, agent, site_numbers(TRACE, TABLE), SIGHT)


@pytest.mark.parametrize("column", ["site", "stage", "parity", "iteration", "value", "cycle"])
def test_one_other_record_is_noticed_in_every_column_that_counts(column: str) -> None:
    known = Alignments(PROGRAM, TABLE, TRACE)
    one, two = first_and_second()
    assert known(one, 0, SIGHT).mismatch is None
    rows = np.flatnonzero(two.agent == 0)
    changed = getattr(two, column).copy()
    changed[rows[9]] += 1 if column != "cycle" else -1_000_000  # a clock that runs backwards
    assert known(Events(**{**vars(two), column: changed}), 0, SIGHT).mismatch is not None


def test_what_was_lost_is_no_end_of_the_program() -> None:
    known = Alignments(PROGRAM, TABLE, TRACE)
    one, _ = first_and_second()
    some = one.select(np.arange(len(np.flatnonzero(one.agent == 0)) - 5))
    assert (known(some, 0, SIGHT).cut, known(some, 0, Sight(lost=True)).cut) == (False, True)
