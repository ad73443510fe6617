"""What one record costs, on this machine's GPU: ``python tools/recorder_cost.py --json FILE``.

For rings bound by their consumer, by the producer's issue, and by large copies: the period with 0, 1, 2, 4 and 8
records an iteration at one place, each beside an untraced launch of the same layout, in turn. The cost is additive if
the points lie on a line; the slope is what a record costs. ``--memory device``: of records that go to device memory.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from hwkernels.capture import CaptureRequest, TwinSubject
from hwkernels.capture.launches import launch_all
from hwkernels.capture.plan import plan
from hwkernels.device.launch import DeviceInfo, Gpu, require_gpu
from hwkernels.recorder.measure import overhead, run_of

PRODUCER, CONSUMER = 0, 1  #: first warps of the roles
RECORDS = (0, 1, 2, 4, 8)
SHAPES = (
    ("consumer-bound", CONSUMER, {"stages": 4, "tile_bytes": 4096, "work": 200}),
    ("issue-bound producer", PRODUCER, {"stages": 4, "tile_bytes": 4096, "work": 0}),
    (
        "32 KB tiles, bound by the consumers",
        CONSUMER,
        {"stages": 4, "tile_bytes": 32768, "work": 0, "consumer_warps": 8},
    ),
    ("32 KB tiles, bound by the copies", PRODUCER, {"stages": 4, "tile_bytes": 32768, "work": 0}),
)


@dataclass(frozen=True)
class Point:
    """One configuration: records an iteration, the untraced period and what recording adds, in 1/1000 cycle."""

    records: int
    plain: int
    added: dict[str, int]


def measure(gpu: Gpu, info: DeviceInfo, request: CaptureRequest) -> Point:
    """One point, from alternating launches."""
    layout = plan(request, info.smem_per_cta, info.smem_per_sm)
    builds, marks = request.subject.compile(request, layout.memory), request.subject.marks(request.params)
    runs = tuple(run_of(run, marks) for run in launch_all(gpu, request, layout, builds))
    plain = [statistics.median(run.period_millicycles) for run in runs if not run.traced]
    return Point(request.probe[1], round(statistics.median(plain)), overhead(runs, request.params["tiles"]))


def slope(points: list[Point]) -> tuple[float, float]:
    """Cycles a record by least squares, and the largest distance of a point from the line."""
    xs, ys = [p.records for p in points], [p.added["median"] / 1000 for p in points]
    mean_x, mean_y = statistics.mean(xs), statistics.mean(ys)
    gain = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / sum((x - mean_x) ** 2 for x in xs)
    return gain, max(abs(y - mean_y - gain * (x - mean_x)) for x, y in zip(xs, ys, strict=True))


def main() -> int:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="store the points here")
    parser.add_argument("--tiles", type=int, default=512)
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--memory", choices=("shared", "device"), default="shared")
    options = parser.parse_args()
    info = require_gpu()
    gpu = Gpu(info)
    found: dict[str, Any] = {"device": info.name, "driver": info.driver, "memory": options.memory, "shapes": []}
    for name, role, shape in SHAPES:
        params = {"tiles": options.tiles, "consumer_warps": 1, "arrive_lanes": 1, **shape}
        request = CaptureRequest(
            TwinSubject("producer_consumer"),
            params,
            repetitions=options.repetitions,
            record_ctas=0,
            memory=options.memory,
        )
        points = []
        for records in RECORDS:
            room = max(1, records) * options.tiles
            points.append(measure(gpu, info, replace(request, probe=(role, records), capacity=room)))
        gain, off = slope(points)
        print(f"{name}: {gain:.1f} cycles a record, every point within {off:.1f} cycles of the line")
        for point in points:
            middle, low, high = (point.added[name] / 1000 for name in ("median", "low", "high"))
            many = f"{point.records} records: {middle:+8.1f} cycles a tile ({low:+.1f} to {high:+.1f})"
            print(f"  {many} on {point.plain / 1000:,.1f}")
        entries = [{"records": p.records, "plain": p.plain, "added": p.added} for p in points]
        found["shapes"].append({"name": name, "params": params, "points": entries})
    gpu.close()
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
