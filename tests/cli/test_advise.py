"""``pipesim advise``: its report, its exit codes, and its document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Call = Callable[..., Any]


def test_the_report(call: Call) -> None:
    answer = call("advise", "producer_consumer", "-p", "stages=1", "-p", "tiles=24", "--profile", "h200")
    assert answer.code == 0
    assert "  limited by   loads into full: consumer waits " in answer.out
    assert answer.verdict.startswith("✓ most is gained by stages=2: ")


def test_a_protocol_that_hangs_is_to_be_corrected_first(call: Call, ring: str) -> None:
    answer = call("advise", ring, "-p", "arrivals=1")
    assert (answer.code, answer.verdict) == (1, "✗ not correct: deadlock; correct it first (pipesim check)")


def test_json(call: Call) -> None:
    answer = call("advise", "producer_consumer", "-p", "stages=1", "-p", "tiles=24", "--percent", "30", "--json")
    report = answer.json["report"]
    assert (answer.code, report["percent"], report["advice"][0]["change"]["parameter"]) == (0, 30, "stages")
    assert report["said"].startswith("most is gained by")


def test_a_percentage_that_makes_no_sense(call: Call) -> None:
    answer = call("advise", "producer_consumer", "--percent", "100")
    assert (answer.code, answer.out, answer.error[0]) == (2, "", "pipesim: a change of 100 %")
