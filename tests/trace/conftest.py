from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipesim.errors import TraceFormatError
from pipesim.trace.files import _encode, read_trace
from pipesim.trace.recorder import EventBuffer
from pipesim.trace.schema import (
    AgentInfo,
    Anchor,
    BarrierGroup,
    CtaInfo,
    Device,
    EventKind,
    Run,
    Site,
    Trace,
    TraceMeta,
)


def ring_trace(tiles: int = 6, stages: int = 2, **changes: Any) -> Trace:
    """Two CTAs of a ring, recorded as on a chip: a loader and two consumers, every field of the metadata filled."""
    agents = (AgentInfo("load", 0, 0), AgentInfo("mma", 0, 1), AgentInfo("mma", 1, 2))
    sites = (
        Site("load.wait", "load", EventKind.WAIT_RETURN, "empty"),
        Site("load.copy", "load", EventKind.COPY, "full"),
        Site("mma.wait", "mma", EventKind.WAIT_RETURN, "full"),
        Site("mma.work", "mma", EventKind.WORK_BEGIN),
        Site("mma.arrive", "mma", EventKind.ARRIVE, "empty"),
    )
    buffer = EventBuffer()
    for i in range(tiles):
        stage, parity = i % stages, (i // stages) & 1
        for cta in (3, 1):
            buffer.append(cta, 0, 0, stage, 1 - parity, i, 0, 700 * i + cta)
            buffer.append(cta, 0, 1, stage, -1, i, 16384, 700 * i + 40 + cta)
            for agent in (1, 2):
                buffer.append(cta, agent, 2, stage, parity, i, 0, 700 * i + 600 + agent)
                buffer.append(cta, agent, 3, stage, -1, i, 0, 700 * i + 610 + agent)
                buffer.append(cta, agent, 4, stage, -1, i, 1, 700 * i + 1100 + agent)
    events = buffer.events(sm_khz=1_755_000)
    events = replace(
        events,
        error_ps=np.full(len(events), 16_000, dtype=np.int64),
        globaltimer_ns=np.where(events.iteration == 0, events.time_ps // 1000, -1),
    )
    meta = TraceMeta(
        source="hardware",
        protocol="ring",
        params={"tiles": tiles, "stages": stages, "tile_bytes": 16384},
        grid=4,
        device=Device("NVIDIA H100 80GB HBM3", 132, "9.0", "580.95.05", "13.0", 1_755_000, 32),
        agents=agents,
        barriers=(BarrierGroup("full", stages, 1), BarrierGroup("empty", stages, 2)),
        sites=sites,
        ctas=tuple(
            CtaInfo(cta, 10 + cta, (Anchor(0, 0, 16_000), Anchor(4000, 7020, 16_000)),
                    (2 * tiles, 3 * tiles, 3 * tiles), (0, 0, 2))
            for cta in (1, 3)
        ),
        runs=(Run(False, 0, (4200, 4210), (700_000, 700_250)), Run(True, 0, (4260, 4300), (710_000, 716_000))),
        kernel_hash="ab12",
        options=("-arch=sm_90a", "-DSTAGES=2"),
        record_bytes=16,
        recorded_at="2026-01-31T12:00:00Z",
        extra={"note": "é ✓ \U0001f600", "nested": [1, 2.5, None, True, {"deep": []}]},
    )  # fmt: skip
    return Trace(replace(meta, **changes), events)


@pytest.fixture
def ring() -> Trace:
    return ring_trace()


def refused(path: Path, read: Callable[[Path], object] = read_trace) -> TraceFormatError:
    """The error of a broken file, complete in all four parts."""
    with pytest.raises(TraceFormatError) as caught:
        read(path)
    error = caught.value
    assert error.exit_code == 3
    assert error.place == str(path)
    assert error.fact
    assert error.cause
    assert error.correction
    return error


def with_event(trace: Trace, column: str, row: int, value: int) -> Trace:
    """The trace with one cell of its event table changed."""
    cells = getattr(trace.events, column).copy()
    cells[row] = value
    return Trace(trace.meta, replace(trace.events, **{column: cells}))


@pytest.fixture
def store(tmp_path: Path) -> Callable[[Trace], Path]:
    """Store a trace as it is, unchecked but with right checksums, as a faulty recorder would."""

    def store(trace: Trace) -> Path:
        path = tmp_path / "faulty.parquet"
        path.write_bytes(_encode(trace, str(path)))
        return path

    return store


@pytest.fixture
def rewritten(tmp_path: Path, ring: Trace) -> Callable[..., Path]:
    """The ring's file after another program opened it, changed the table or the metadata, and saved it again."""
    import pyarrow.parquet as pq

    def rewritten(change: Callable[[Any], Any]) -> Path:
        path = tmp_path / "rewritten.parquet"
        path.write_bytes(_encode(ring, "ring"))
        pq.write_table(change(pq.read_table(path)), path)
        return path

    return rewritten
