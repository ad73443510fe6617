"""What the commands say of times: apart from behaviour, in words and in JSON, and without a say in the exit code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipesim.trace.files import read_trace, write_trace
from pipesim.trace.library import trace_folder
from pipesim.trace.schema import Trace

Call = Callable[..., Any]
PC = "producer_consumer"
MULTICAST = "h200/cluster_multicast-c2-cw2-ob8192-sb8192-s4-t24-w600-g2-both.parquet"


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
def test_within_the_stated_error(call: Call, recorded: Path) -> None:
    answer = call("diff", recorded, "--json")
    assert (answer.code, of(answer)) == (0, ("agrees", "within_stated_error"))
    time = answer.json["report"]["hardware"][0]["time"]
    assert time["said"] == "within the profile's stated error (+1.2 %: period 1,099 simulated, 1,086 measured)"
    assert time["stated"]["kernel"] == PC
    assert "stated: median 1.1 %, at most 5.5 %" in " ".join(call("diff", recorded).out.split())


@pytest.mark.slow
def test_the_bound_is_exact_and_not_rounded(call: Call, twice_as_slow: str) -> None:
    answer = call("diff", twice_as_slow, "--json")
    assert (answer.code, of(answer)) == (0, ("agrees", "off"))
    (period,) = (f for f in answer.json["report"]["hardware"][0]["timing"]["figures"] if f["name"] == "period")
    off = 100 * abs(period["simulated"] - period["measured"]) / period["measured"]
    assert call("diff", twice_as_slow, "--tolerance", repr(off)).code == 0
    assert call("diff", twice_as_slow, "--tolerance", repr(off - 1e-9)).code == 4


@pytest.mark.slow
def test_a_device_whose_latencies_were_not_measured_is_said_once(call: Call, good: Trace, recorded: Path) -> None:
    other = replace(good.meta, device=replace(good.meta.device, name="NVIDIA GH900"))
    write_trace(Trace(other, good.events), "other.parquet")
    said = "how soon waits return is not checked: the latencies of this device were not measured"
    assert " ".join(call("diff", "other.parquet").out.split()).count(said) == 1
    assert "how soon waits return" not in " ".join(call("diff", recorded).out.split())


@pytest.mark.slow
def test_not_modelled(call: Call) -> None:
    path = trace_folder() / MULTICAST
    answer = call("diff", path, "--json")
    assert (answer.code, of(answer)) == (0, ("agrees", "not_modelled"))
    time = answer.json["report"]["hardware"][0]["time"]
    assert [each["kind"] for each in time["assumed"]] == ["multicast", "remote"]
    verdict = call("diff", path).verdict
    assert "conforms to the protocol" in verdict
    assert "; times: off by +0.6 %" in verdict
    assert verdict.endswith("; not modelled for: multicast copies, arrivals at another CTA")


@pytest.mark.long
def test_several(call: Call, tmp_path: Path) -> None:
    (tmp_path / "h200").mkdir()
    for name in (MULTICAST, "h200/producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet"):
        write_trace(read_trace(trace_folder() / name), tmp_path / name)
    names = ("cluster_multicast", PC)
    answer = call("verify", *names, "--traces", tmp_path, "--jobs", "1", "--json")
    lines = {name: answer.json["protocols"][name]["report"]["traces"] for name in names}
    assert [(line["behaviour"], line["time"]["verdict"]) for found in lines.values() for line in found] == [
        ("agrees", "not_modelled"),
        ("agrees", "within_stated_error"),
    ]
    out = " ".join(call("verify", *names, "--traces", tmp_path, "--jobs", "1").out.split())
    assert "times cluster_multicast: 1 not modelled for: multicast copies, arrivals at another CTA" in out
    assert "producer_consumer: 1 within the profile's stated error off by +1.2 % in the median" in out


HUNG = trace_folder() / "h100/epilogue_residual-a2-at700-cs2-es2-e150-fto0-ki1-od0-r1-sb2048-s4-st4-t8-g1.parquet"


@pytest.mark.slow
def test_two_traces(call: Call, recorded: Path, twice_as_slow: str, refuted: Path) -> None:
    (other,) = refuted.rglob("*.parquet")
    for pair, code, behaviour, time in (
        ((recorded, recorded), 0, "agrees", "same"),
        ((recorded, twice_as_slow), 0, "agrees", "slower"),
        ((twice_as_slow, recorded), 0, "agrees", "faster"),
        ((recorded, other), 1, "differs", "same"),
        ((HUNG, HUNG), 0, "agrees", "not_compared"),
    ):
        answer = call("diff", *pair, "--json")
        report = answer.json["report"]
        assert (answer.code, report["behaviour"], report["time"]) == (code, behaviour, time)
    assert call("diff", recorded, twice_as_slow, "--tolerance", "5").code == 4
