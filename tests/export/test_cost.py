"""What the export of a trace of 100,000 events costs: in the format with the largest memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.files import write_trace
from pipesim.trace.schema import Trace
from tests.support.paths import ROOT

EVENTS, SECONDS, MEGABYTES = 100_000, 6.0, 200.0  #: alone it takes less than 3 s; here tests share the processor
#: A small process between: the peak of a new process is at least the memory of the one that starts it.
MEASURED = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def long_ring() -> Trace:
    """A simulated ring, with 14 events a tile."""
    program = find("producer_consumer").build({"tiles": -(-EVENTS // 14)}, twice=False)
    return simulate(program, load_profile("h200")).trace


def cost(trace: Path, to: str) -> tuple[float, float]:
    """Seconds of processor time and megabytes of one export; modules are compiled once, beside the trace."""
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    compiled["PYTHONPYCACHEPREFIX"] = str(trace.parent / "compiled")
    words = [sys.executable, "-m", "pipesim", "export", str(trace), "--to", to, "--force", "-o", f"{trace}.{to}"]
    command = [sys.executable, "-c", MEASURED, *words]
    done = subprocess.run(command, cwd=ROOT, env=compiled, capture_output=True, text=True, check=True)
    seconds, kib = done.stdout.split()
    return float(seconds), int(kib) * 1024 / 1e6


@pytest.mark.long
def test_100_000_events_take_seconds_and_less_than_200_megabytes(tmp_path: Path) -> None:
    trace = long_ring()
    assert len(trace.events) >= EVENTS
    write_trace(trace, tmp_path / "long.parquet")
    cost(tmp_path / "long.parquet", "svg")  # modules are compiled
    seconds, megabytes = cost(tmp_path / "long.parquet", "perfetto")
    assert megabytes < MEGABYTES
    assert seconds < SECONDS
