"""``pipesim diff``: runs that hung, trapped or were cut off; windows of two runs; times apart from behaviour."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipesim.model.ending import Ending
from pipesim.trace.files import read_trace, write_trace
from pipesim.trace.library import trace_folder
from pipesim.trace.schema import Trace
from tests.support.fixture_types import Call

PC = "producer_consumer"
H100 = trace_folder() / "h100"
FAULTY = "producer_consumer-al1-cw2-s3-tb4096-t24-w200-g1-{}-at-7.parquet"
TRAPPED = H100 / "producer_consumer-al1-cw1-s1-tb16384-t24-w0-g1-no_acquire-at-9.parquet"


def faulty(kind: str) -> Path:
    return H100 / FAULTY.format(kind)


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.slow
def test_one_origin_and_one_story(call: Call) -> None:
    """An agent that left its loop stayed in no wait, and every cycle is by the clock of the trace."""
    trace = faulty("leaves_early")
    out = flat(call("diff", trace).out)
    last = int(read_trace(trace).events.cycle.max())
    assert f"✗ the kernel did not finish · CTA 0 · last progress at cycle {last:,}" in out
    assert f"last progress at cycle {last:,}, 4.5 µs after its first record" in out
    assert "hw: measured, CTA 0, 0 is its cycle 2,519" in out
    assert "consumer/0 has no record of entering its wait for full[1], whose phase 2 is complete" in out
    assert "consumer/0 leaves its loop before tile 7, its wait for full[1]" in out
    assert "stayed in" not in out


@pytest.mark.slow
def test_an_agent_that_entered_its_wait_stayed_in_it(call: Call) -> None:
    """The twin: the protocol would have let it pass, and its records end inside."""
    whole = read_trace(H100 / "producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet")
    e = whole.events
    wait = next(
        row for row in range(len(e))
        if whole.meta.agent_name(int(e.agent[row])) == "consumer/0" and e.iteration[row] == 9
        and whole.meta.sites[int(e.site[row])].kind.name == "WAIT_ENTER"
    )  # fmt: skip
    gone = (e.agent == e.agent[wait]) & (np.arange(len(e)) > wait) | (e.iteration > 11)
    write_trace(Trace(replace(whole.meta, status=Ending.DEADLINE, ctas=(), runs=()), e.select(~gone)), "t.parquet")
    assert "consumer/0 stayed in its wait for full[1], whose phase 2 is complete" in flat(call("diff", "t.parquet").out)


@pytest.mark.slow
def test_bytes_of_a_copy_under_way_are_not_missing(call: Call) -> None:
    out = call("diff", TRAPPED).out
    (row,) = (line for line in out.splitlines() if line.startswith("  full[0]"))
    assert "16,384 in flight" in row
    assert "it has 1 of 1 arrivals; 16,384 bytes in flight" in flat(out)
    assert "would send the bytes" not in out
    hung = call("diff", faulty("expect_more")).out  # the twin: 16 bytes that no copy brings
    assert "in flight" not in hung
    assert "; 16 bytes missing" in flat(hung)


@pytest.mark.slow
def test_a_simulated_trace_is_not_called_hardware(call: Call, refuted: Path, recorded: Path) -> None:
    call("run", PC, "-p", "tiles=16", "--save-trace", "t.parquet")
    for words in ((), ("-p", "tile_bytes=8192")):  # it conforms, and it does not
        out = call("diff", "t.parquet", *words).out
        assert "  trace        t.parquet" in out
        for word in ("hardware", "measured", "  hw "):
            assert word not in out.replace("not measured", "").replace("outside what was measured", "")
    out = call("diff", recorded).out  # the twin
    assert all(word in out for word in ("  hardware ", "measured", "  hw "))


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
