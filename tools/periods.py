"""Simulated against measured steady-state period over all recorded configurations: ``python tools/periods.py``.

A row for each trace: the ring law, the simulated and the measured period (untraced, in SM cycles), the error and the
run-to-run noise; last, how large the errors are on each device. ``--traced`` compares the traced kernel instead. Sealed
recordings (``traces/split.json``) are not read.
``--errors`` prints what a profile states of them: a line of JSON for each device, kernel and number of CTAs, of the
kernels that the profiles were measured with.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path

from pipesim.answers.views.rows import PeriodRow
from pipesim.conform.compare import launched, period_pair
from pipesim.conform.timing import median_period, noise_millicycles
from pipesim.report.text.console import make_console
from pipesim.report.text.table import paint_periods
from pipesim.targets import find
from pipesim.timed.bounds.bound import ring_law
from pipesim.timed.choice import profile_for
from pipesim.timed.engine import simulate
from pipesim.timed.stated_error import StatedError
from pipesim.trace.library import stored_traces, trace_folder
from pipesim.trace.schema import TraceMeta
from pipesim.trace.split import FILE, SplitPart, read_split

MEASURED_WITH = ("producer_consumer",)  #: the kernels to whose recordings the built-in profiles were fitted


def row(meta: TraceMeta, *, traced: bool) -> PeriodRow:
    """One configuration: simulated on the profile of its device."""
    program = launched(find(meta.protocol).build(meta.params, grid=meta.grid), meta)
    profile = profile_for(meta.device.name)
    simulated = period_pair(program, profile, simulate(program, profile, traced=traced).trace, traced=traced).simulated
    measured = median_period(meta.runs, traced=traced)
    noise = noise_millicycles(meta.runs, traced=traced)
    bound = ring_law(program, profile, traced=traced)
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


def stated_errors(rows: Sequence[PeriodRow]) -> dict[str, list[StatedError]]:
    """By device what a profile states of these rows: of each kernel and each number of CTAs."""
    errors: dict[tuple[str, str, int], list[int]] = {}
    for each in rows:
        if each.name in MEASURED_WITH and each.error_permille is not None:
            errors.setdefault((each.device, each.name, each.grid), []).append(abs(each.error_permille))
    found: dict[str, list[StatedError]] = {}
    for (device, kernel, ctas), off in sorted(errors.items()):
        stated = StatedError(kernel, (ctas, ctas), len(off), sorted(off)[len(off) // 2], max(off))
        found.setdefault(device, []).append(stated)
    return found


def rows_of(folder: Path, *, traced: bool = False, kernels: Collection[str] | None = None) -> list[PeriodRow]:
    """A row for each recording by the SM clock in which a period was measured, of all kernels or of these."""
    split = read_split(trace_folder() / FILE)
    stored = [
        each.meta
        for each in stored_traces(folder)
        if each.meta.clock == "clock"
        and (kernels is None or each.meta.protocol in kernels)
        and split.of_trace(each.meta) is not SplitPart.SEALED
    ]
    timed = [meta for meta in stored if median_period(meta.runs, traced=traced)]
    return [row(meta, traced=traced) for meta in timed]


def main() -> int:
    """Print the table and its summary, or what a profile states."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, default=None, help="folder (default: the recorded traces)")
    parser.add_argument("--traced", action="store_true", help="compare the traced kernel instead of the untraced one")
    parser.add_argument("--errors", action="store_true", help="print what a profile states of its errors, as JSON")
    options = parser.parse_args()
    kernels = MEASURED_WITH if options.errors else None  # nothing is stated of the others
    rows = rows_of(options.traces or trace_folder(), traced=options.traced, kernels=kernels)
    if options.errors:
        for device, errors in stated_errors(rows).items():
            for each in errors:
                print(json.dumps({"device": device, **asdict(each)}))
        return 0
    console = make_console()
    paint_periods(console, rows)
    for device in dict.fromkeys(r.device for r in rows):
        off = sorted(abs(r.error_permille) for r in rows if r.device == device and r.error_permille is not None)
        console.print(
            f"{device}: {len(off)} configurations · |error| median {off[len(off) // 2] / 10:.1f} % · "
            f"largest {off[-1] / 10:.1f} %",
            highlight=False,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
