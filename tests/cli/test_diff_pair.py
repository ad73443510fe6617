"""``pipesim diff A B``: exit codes, the verdict in one line, options that make no sense, JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipesim.trace.files import write_trace
from pipesim.trace.library import trace_folder
from pipesim.trace.schema import EventKind, Trace

Call = Callable[..., Any]


@pytest.fixture
def other_chip(recorded: Path) -> Path:
    return trace_folder() / "h200" / recorded.name


@pytest.fixture
def slow(good: Trace) -> Path:
    """The good recording with 36 cycles of work more in every tile, without the periods of its runs."""
    e = good.events
    works = np.array([s.kind in (EventKind.WORK_END, EventKind.ARRIVE) for s in good.meta.sites])[e.site]
    cycle = e.cycle + 36 * (e.iteration + works)
    write_trace(Trace(replace(good.meta, runs=()), replace(e, cycle=cycle)), Path("slow.parquet"))
    return Path("slow.parquet")


@pytest.fixture
def bare(good: Trace) -> Path:
    write_trace(Trace(replace(good.meta, runs=()), good.events), Path("bare.parquet"))
    return Path("bare.parquet")


@pytest.mark.slow
def test_json(call: Call, recorded: Path, other_chip: Path, bare: Path, slow: Path) -> None:
    said = call("diff", recorded, other_chip, "--json").json
    assert said["exit_code"] == 0
    report = said["report"]
    assert (report["a"]["label"], report["b"]["trace"]["events"]) == ("A", 896)
    assert report["pair"]["behaviour"]["verdict"] == "agrees"
    assert report["pair"]["settings"] == [{"what": "device", "a": "NVIDIA H100 80GB HBM3", "b": "NVIDIA H200"}]
    ledger = call("diff", bare, slow, "--json").json["report"]["pair"]["timing"]["ledgers"][0]
    assert ledger["b"] - ledger["a"] == 64 * 36 == sum(s["b"] - s["a"] for s in ledger["segments"])


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
