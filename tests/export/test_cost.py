"""What the export of a trace of 100,000 events costs, by its own benchmark: the one with the largest memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipesim.trace.files import write_trace
from tools.bench_export import EVENTS, MEGABYTES, SECONDS, cost, one_cta


@pytest.mark.slow
def test_100_000_events_take_seconds_and_less_than_200_megabytes(tmp_path: Path) -> None:
    """`python -m tools.bench_export --limit` says less than three seconds; here other tests share the processor."""
    trace = one_cta(EVENTS)
    assert len(trace.events) >= EVENTS
    write_trace(trace, tmp_path / "long.parquet")
    cost(tmp_path / "long.parquet", "svg")  # modules are compiled
    seconds, megabytes = cost(tmp_path / "long.parquet", "perfetto")
    assert megabytes < MEGABYTES
    assert seconds < 2 * SECONDS
