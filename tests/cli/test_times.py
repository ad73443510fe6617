"""What the commands say of times: apart from behaviour, in words and in JSON, and without a say in the exit code."""

from dataclasses import replace
from typing import Any

import pytest

from pipesim.trace.files import write_trace
from pipesim.trace.schema import Trace
from tests.support.fixture_types import Call


def of(answer: Any) -> tuple[str, str]:
    """Behaviour and time of the first trace in a JSON answer."""
    (first, *_) = answer.json["report"]["hardware"]
    return first["behaviour"], first["time"]["verdict"]


@pytest.fixture
def twice_as_slow(good: Trace) -> str:
    """The good recording of a device on which every period is twice as long."""
    runs = tuple(replace(r, period_millicycles=tuple(2 * p for p in r.period_millicycles)) for r in good.meta.runs)
    write_trace(Trace(replace(good.meta, runs=runs), good.events), "slow.parquet")
    return "slow.parquet"


@pytest.mark.slow
def test_the_bound_is_exact_and_not_rounded(call: Call, twice_as_slow: str) -> None:
    answer = call("diff", twice_as_slow, "--json")
    assert (answer.code, of(answer)) == (0, ("agrees", "off"))
    (period,) = (f for f in answer.json["report"]["hardware"][0]["timing"]["figures"] if f["name"] == "period")
    off = 100 * abs(period["simulated"] - period["measured"]) / period["measured"]
    assert call("diff", twice_as_slow, "--tolerance", repr(off)).code == 0
    assert call("diff", twice_as_slow, "--tolerance", repr(off - 1e-9)).code == 4
