"""``pipesim diff A B``: the timelines of two windows."""

import pytest

from tests.support.fixture_types import Call


@pytest.mark.slow
def test_the_timelines_begin_at_the_first_iteration_that_both_hold(call: Call) -> None:
    call("run", "producer_consumer", "--save-trace", "whole.parquet")
    call("run", "producer_consumer", "--window", "20..30", "--save-trace", "part.parquet")
    for pair in (("whole.parquet", "part.parquet"), ("part.parquet", "whole.parquet")):
        answer = call("diff", *pair)
        assert "only the iterations in both windows are compared: 20 to 29" in answer.out
        rows = [line.split(maxsplit=1) for line in answer.out.splitlines() if line.startswith(("  A ", "  B "))]
        drawn = {side: [row for label, row in rows if label == side and ("░" in row or "▓" in row)] for side in "AB"}
        assert drawn["A"] == drawn["B"] != []
