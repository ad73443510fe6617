"""``pipesim diff`` where a wait returned sooner than the hardware can, and on a device that nobody measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipesim.conform.replay.latency_floor import ReleasePath, floors_for
from pipesim.targets import find
from pipesim.trace.files import read_trace, write_trace
from pipesim.trace.library import trace_folder
from pipesim.trace.schema import Trace
from tests.support.early_returns import returned_by, tight_returns

Call = Callable[..., Any]
RING = trace_folder() / "h200" / "producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet"


@pytest.fixture(scope="module")
def early(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ring with its tightest full wait 500 cycles earlier."""
    trace = read_trace(RING)
    program, floors = find(trace.meta.protocol).build(trace.meta.params), floors_for(trace.meta.device.name)
    assert floors is not None
    tight = next(t for t in tight_returns(program, trace, floors) if t.path is ReleasePath.COPY)
    path = tmp_path_factory.mktemp("early") / "early.parquet"
    write_trace(returned_by(trace, tight.row, 500), path)
    return path


def test_it_names_the_release_the_time_and_the_bound(call: Call, early: Path) -> None:
    found = call("diff", early)
    out = " ".join(found.out.split())
    assert found.code == 1
    assert "✗ a wait returned sooner after its release than the hardware can first at event" in out
    assert "cycles after producer issued a copy of 16,384 bytes, which phase 0 needs; this takes" in out
    assert "measured: the experiment `latency` on the NVIDIA H200" in out
    assert "edits" not in out  # no single edit of the protocol explains it, and none is tried


def test_the_json_has_it_as_data(call: Call, early: Path) -> None:
    conformance = json.loads(call("diff", early, "--json").out)["report"]["hardware"][0]["conformance"]
    divergence, latency = conformance["divergence"], conformance["latency"]
    assert divergence["kind"] == "too_soon"
    assert divergence["early"]["agent"] == "producer"
    assert divergence["early"]["after_cycles"] + divergence["late_by"] + 20 == divergence["early"]["bound_cycles"]
    assert (latency["device"], latency["unchecked"]) == ("NVIDIA H200", 0)
    assert latency["checked"] >= 1


def test_a_device_that_was_not_measured_is_said_once(call: Call, tmp_path: Path) -> None:
    trace = read_trace(RING)
    other = replace(trace.meta, device=replace(trace.meta.device, name="NVIDIA GH900"))
    write_trace(Trace(other, trace.events), tmp_path / "other.parquet")
    found = call("diff", tmp_path / "other.parquet")
    out = " ".join(found.out.split())
    assert found.code == 0
    assert out.count("how soon waits return is not checked: the latencies of this device were not measured") == 1
    assert "how soon waits return" not in " ".join(call("diff", RING).out.split())
