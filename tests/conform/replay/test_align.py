"""Stretches of operations that nothing decides about are aligned in one go, with the same result as one by one.

CTAs that recorded the same are aligned once; a CTA that recorded anything else is aligned by itself.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from pipesim.answers.recorded_program import recorded_program
from pipesim.conform.replay import align
from pipesim.conform.replay.align import EVERY, AgentAlignment, Alignments, Sight
from pipesim.conform.replay.conformance import events_of, recorded_ctas
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.files import read_trace
from pipesim.trace.schema import Events, Trace
from pipesim.trace.sites import site_table
from tests.support.paths import TRACES

PROTOCOLS = {"producer_consumer": {"tiles": 9}, "epilogue_residual": {}, "attention_sm90": {}}
COLUMNS = ("site", "stage", "parity", "iteration", "value", "cycle")


def aligned(name: str, trace: Trace, sight: Sight) -> list[AgentAlignment]:
    program = find(name).build(PROTOCOLS[name])
    alignments = Alignments(program, site_table(program), trace)
    return [alignments(trace.events, agent, sight) for agent in range(len(program.agents))]


def one_by_one(walk: align._Walk, pc: int) -> int:
    return pc


def damaged(events: Events, random: Random) -> Events:
    """One value of one event is another, or its row is missing."""
    row = random.randrange(len(events))
    name = random.choice((*COLUMNS, "row"))
    if name == "row":
        return events.select(np.arange(len(events)) != row)
    column = getattr(events, name).copy()
    column[row] += random.choice((-1, 1)) if name != "cycle" else -10_000
    return replace(events, **{name: column})


@pytest.mark.sampled(1, 3)
@pytest.mark.parametrize(
    ("name", "sight"),
    [
        *((name, Sight()) for name in PROTOCOLS),
        *(("producer_consumer", each) for each in (Sight(lost=True), Sight(first=2, end=4), Sight(0, EVERY, False, 3))),
    ],
)
def test_a_stretch_is_aligned_as_its_operations_one_by_one(
    name: str, sight: Sight, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = simulate(find(name).build(PROTOCOLS[name]), load_profile("h100")).trace
    seed = 20
    random = Random(seed)
    variants = [trace, *(replace(trace, events=damaged(trace.events, random)) for _ in range(6))]
    at_once = [aligned(name, each, sight) for each in variants]
    if sight == Sight():
        assert all(each.mismatch is None for each in at_once[0])
        assert any(each.mismatch for variant in at_once[1:] for each in variant), f"seed {seed}"
    monkeypatch.setattr(align._Walk, "_take_plain", one_by_one)
    assert at_once == [aligned(name, each, sight) for each in variants], f"seed {seed}"


# what two CTAs have in common

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
