"""The README of recorded traces says what the files say, and notices when it no longer does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from pipesim.model.ending import Ending
from pipesim.trace.files import write_trace
from pipesim.trace.library import trace_name
from pipesim.trace.recorder import EventBuffer
from pipesim.trace.schema import AgentInfo, BarrierGroup, CtaInfo, Device, EventKind, Run, Site, Trace, TraceMeta
from tools import trace_index as tool


def recording(tiles: int = 3) -> Trace:
    buffer = EventBuffer()
    for i in range(tiles):
        buffer.append(0, 0, 0, i % 2, i // 2 & 1, i, 0, 500 * i)
    events = buffer.events(sm_khz=1_980_000)
    events = replace(events, error_ps=np.arange(tiles, dtype=np.int64) * 7_010)
    meta = TraceMeta(
        source="hardware",
        protocol="ring",
        params={"tiles": tiles, "stages": 2},
        grid=2,
        device=Device("NVIDIA H200", 132, "9.0", "580.95.05", "13.0", 1_980_000, 32),
        agents=(AgentInfo("load", 0, 0),),
        barriers=(BarrierGroup("empty", 2, 1),),
        sites=(Site("wait", "load", EventKind.WAIT_RETURN, "empty"),),
        ctas=(CtaInfo(0, 5, (), (tiles,), (4,)), CtaInfo(1, 6, (), (0,), (1200,))),
        runs=(
            Run(False, 0, (900, 910), (500_000, 500_400)),
            Run(False, 1, (900, 910), (500_100, 1_000_000)),
            Run(True, 0, (950, 960), (510_000, 505_255)),
        ),
    )
    return Trace(meta, events)


def stored(trace: Trace, folder: Path) -> Path:
    path = folder / trace_name(trace.meta)
    write_trace(trace, path)
    return path


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_one_row_says_everything_about_one_trace(tmp_path: Path) -> None:
    path = stored(recording(), tmp_path)
    headings, rule, row = rows(tool.index(tmp_path))
    assert set(rule) == {"---"}
    assert dict(zip(headings, row, strict=True)) == {
        "trace": "[h200/ring-s2-t3-g2.parquet](h200/ring-s2-t3-g2.parquet)",
        "device": "NVIDIA H200",
        "driver": "580.95.05",
        "NVRTC": "13.0",
        "parameters": "stages=2 tiles=3",
        "grid": "2",
        "events": "3",
        "CTAs": "2",
        "launches": "2 / 1",
        "dropped": "1,204",
        "period": "500.2 / 507.6",  # medians of 500.0 500.1 500.4 1000.0 and of 505.255 510.0
        "overhead": "+1.47 %",
        "a record": "–",
        "memory": "–",
        "SM MHz": "1980",
        "clock bound": "14.0 ns",
        "status": "finished",
        "size": f"{path.stat().st_size / 1024:,.1f} KiB",
    }


def test_what_was_made_wrong_what_was_kept_and_what_a_record_costs(tmp_path: Path) -> None:
    trace = recording()
    extra = {"cost_millicycles_per_record": {"median": 8400, "low": 8250, "high": 9000}}
    meta = replace(trace.meta, memory="host", fault="no_acquire@3", window=(3, 9), status=Ending.TRAP, extra=extra)
    stored(Trace(meta, trace.events), tmp_path)
    headings, _, row = rows(tool.index(tmp_path))
    told = dict(zip(headings, row, strict=True))
    assert (told["a record"], told["memory"]) == ("8.2 to 9.0", "host")
    assert told["status"] == "no_acquire@3, trap, iterations 3 to 8"
