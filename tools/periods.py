"""Simulated against measured steady-state period over all recorded configurations: ``python tools/periods.py``.

A row for each trace: the ring law, the simulated and the measured period (untraced, in SM cycles), the error and the
run-to-run noise; last, how large the errors are on each device. ``--traced`` compares the traced kernel instead.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pipesim.answers.views.rows import PeriodRow
from pipesim.conform.steady import read
from pipesim.conform.timing import median_period, noise_millicycles
from pipesim.report.text.console import make_console
from pipesim.report.text.table import paint_periods
from pipesim.targets import find
from pipesim.timed.bound import ring_law
from pipesim.timed.choice import profile_for
from pipesim.timed.engine import simulate
from pipesim.trace.library import stored_traces, trace_folder
from pipesim.trace.schema import TraceMeta


def row(meta: TraceMeta, *, traced: bool) -> PeriodRow:
    """One configuration: simulated on the profile of its device."""
    program = find(meta.protocol).build(meta.params, grid=meta.grid)
    profile = profile_for(meta.device.name)
    reading = read(simulate(program, profile, recording=traced).trace)
    simulated = None if reading is None else reading.period_millicycles
    measured = median_period(meta.runs, traced=traced)
    noise = noise_millicycles(meta.runs, traced=traced)
    bound = ring_law(program, profile, recording=traced)
    return PeriodRow(
        name=meta.protocol,
        device=meta.device.name,
        stages=meta.params.get("stages"),
        tile_bytes=meta.params.get("tile_bytes"),
        warps=meta.params.get("consumer_warps"),
        work=meta.params.get("work"),
        grid=meta.grid,
        ring_law=bound.period_millicycles if bound else None,
        simulated=simulated,
        measured=measured,
        error_permille=round(1000 * (simulated - measured) / measured) if simulated and measured else None,
        noise_permille=round(1000 * noise / measured) if noise is not None and measured else None,
    )


def main() -> int:
    """Print the table and its summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, default=None, help="folder (default: the recorded traces)")
    parser.add_argument("--traced", action="store_true", help="compare the traced kernel instead of the untraced one")
    options = parser.parse_args()
    stored = [t.meta for t in stored_traces(options.traces or trace_folder()) if t.meta.clock == "clock"]
    rows = [r for r in (row(meta, traced=options.traced) for meta in stored) if r.measured]
    console = make_console()
    paint_periods(console, rows)
    for device in dict.fromkeys(r.device for r in rows):
        errors = sorted(abs(r.error_permille) for r in rows if r.device == device and r.error_permille is not None)
        console.print(
            f"{device}: {len(errors)} configurations · |error| median {errors[len(errors) // 2] / 10:.1f} % · "
            f"largest {errors[-1] / 10:.1f} %",
            highlight=False,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
