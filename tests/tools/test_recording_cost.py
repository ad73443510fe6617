"""What ``tools/recording_cost.py`` makes of launches, and that every build of it compiles."""

from __future__ import annotations

import pytest

from pipesim.trace.schema import Run
from tools.recording_cost import CASES, builds, instructions, summary, table


def runs(*cycles, periods=((), ())):
    """Pairs of an untraced and a traced launch of two CTAs."""
    found = []
    for repetition, pair in enumerate(cycles):
        found += [Run(bool(traced), repetition, (n, n), periods[traced]) for traced, n in enumerate(pair)]
    return tuple(found)


def test_a_kernel_without_a_period_is_judged_by_its_loop():
    found = summary(runs((1000, 1100), (1000, 1040), (2000, 2100)), units=10, records=0)
    assert found == {
        "plain_cycles": 100.0,
        "added_cycles": {"median": 10.0, "low": 4.0, "high": 10.0},
        "percent": {"median": 5.0, "low": 4.0, "high": 10.0},
    }


def test_a_ring_is_judged_by_its_period():
    found = summary(runs((1000, 1100), (1000, 9000), periods=((100_000,), (140_000,))), units=10, records=5)
    assert found["plain_cycles"] == 100.0
    assert found["cycles_a_record"] == {"median": 8.0, "low": 8.0, "high": 8.0}
    assert found["percent"]["median"] == 40.0


def test_the_table_has_a_line_for_what_failed():
    named = {"kernel": "k", "name": "n", "encoding": "full", "memory": "shared", "verdict": "agrees"}
    right = {**named, **summary(runs((10, 11)), 1, 1)}
    lines = list(table([right, {"kernel": "k", "name": "m", "encoding": "full", "verdict": "a wait gave up"}]))
    assert " ".join(lines[1].split()) == "k n full 10.0 1.0 1.0 (1.0 to 1.0) 10.0 % (10.0 to 10.0) shared agrees"
    assert " ".join(lines[2].split()) == "k m full a wait gave up"
    assert lines[3] == "k, full: slower by 10.0 % (median of 1)"


@pytest.mark.parametrize("case", [pytest.param(CASES[0], id="ring")])
def test_positional_records_add_the_fewest_instructions(case):
    added = {}
    for encoding in ("tagged", "positional"):
        sizes = {name: instructions(build.cubin) for name, build in builds(case, encoding).items()}
        added[encoding] = sizes["traced"] - sizes["plain"]
    assert 0 < added["positional"] < added["tagged"]
