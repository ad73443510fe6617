"""Record the repository's traces on the GPU of this machine: ``python tools/record_traces.py --into traces``.

Writes one file for each configuration, named after it, into the folder of the device. Existing files are left alone
unless ``--force`` is given. ``--only WORD`` keeps the configurations whose label contains WORD. ``--kernel NAME`` takes
the configurations of another kernel of the registry than producer_consumer.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from hwkernels.capture.faults import FAULTS, parse_fault
from hwkernels.capture.request import PROTOCOL
from hwkernels.capture.trace import CaptureRequest, capture
from hwkernels.capture.twin_request import KernelRequest
from hwkernels.capture.twin_trace import capture_kernel_of
from hwkernels.twins import kernel_names, registered
from pipesim.errors import PipesimError
from pipesim.targets import find
from pipesim.trace.files import write_trace
from pipesim.trace.library import trace_name
from pipesim.trace.schema import Trace


@dataclass(frozen=True)
class Configuration:
    """One line of the plan below."""

    stages: int
    tile_bytes: int
    consumer_warps: int
    work: int
    grid: int = 1
    tiles: int = 64
    arrive_lanes: int = 1
    clock: str = "clock"
    memory: str = ""
    window: tuple[int, ...] = ()
    fault: str = ""

    @property
    def request(self) -> CaptureRequest:
        """What to capture."""
        params = {
            "stages": self.stages,
            "tiles": self.tiles,
            "tile_bytes": self.tile_bytes,
            "consumer_warps": self.consumer_warps,
            "work": self.work,
            "arrive_lanes": self.arrive_lanes,
        }
        return CaptureRequest(
            params,
            self.grid,
            self.clock,
            window=self.window,
            memory=self.memory,
            fault=parse_fault(self.fault) if self.fault else None,
            deadline_ms=50 if self.fault else 250,
        )


KB = 1024
FULL = 132  #: one CTA on every SM of an H100 or H200
DEPTHS = (1, 2, 3, 4, 6, 8)
LARGEST = 224 * KB  #: of all tiles of a CTA together
GRID = (
    *(Configuration(s, b * KB, 1, 0) for b in (2, 4, 8, 16, 32) for s in DEPTHS if s * b * KB <= LARGEST),
    *(Configuration(s, 4 * KB, 4, 600) for s in DEPTHS),
    *(Configuration(s, 16 * KB, 2, 200) for s in DEPTHS),
    *(Configuration(s, 8 * KB, 2, 2000) for s in DEPTHS),
    *(Configuration(s, 16 * KB, 4, 0) for s in (2, 4, 6)),
    *(Configuration(s, 16 * KB, 2, 600, FULL) for s in DEPTHS),
    *(Configuration(s, 4 * KB, 1, 0, FULL) for s in (1, 4, 8)),
    Configuration(4, 16 * KB, 4, 0, FULL),
    Configuration(1, 16 * KB, 1, 0, FULL),
    Configuration(4, 32 * KB, 4, 0),
)
#: The default's relatives: other clocks, other memory, few tiles, a window.
AROUND = (
    Configuration(4, 16 * KB, 1, 600),
    Configuration(4, 16 * KB, 2, 600),
    Configuration(4, 16 * KB, 4, 600),
    Configuration(4, 16 * KB, 2, 600, arrive_lanes=32),
    *(Configuration(4, 16 * KB, 2, 600, tiles=tiles) for tiles in (0, 1, 5)),
    Configuration(4, 16 * KB, 2, 600, clock="globaltimer"),
    Configuration(4, 16 * KB, 2, 600, clock="both"),
    Configuration(4, 16 * KB, 2, 600, FULL, clock="both"),
    Configuration(4, 16 * KB, 2, 600, memory="device"),
    Configuration(4, 16 * KB, 2, 600, window=(20, 40)),
)
FAULTY = (
    *(Configuration(3, 4 * KB, 2, 200, tiles=24, fault=f"{kind}@7") for kind in FAULTS),
    Configuration(2, 4 * KB, 2, 2000, tiles=24, fault="no_acquire@9"),
    Configuration(2, 4 * KB, 2, 2000, tiles=24, fault="extra_arrive@9"),
    Configuration(1, 16 * KB, 1, 0, tiles=24, fault="no_acquire@9"),  # the copy before is still under way: a trap
    Configuration(3, 1 * KB, 2, 200, tiles=24, fault="expect_less@7"),
)
PLAN = (*GRID, *AROUND, *FAULTY)


Job = tuple[str, Callable[[], Trace]]


def jobs(kernel: str) -> Sequence[Job]:
    """What there is to record of a kernel: a label and a capture each."""
    if kernel == PROTOCOL:
        return [(repr(c), lambda request=c.request: capture(request)) for c in PLAN]  # type: ignore[misc]
    defaults = find(kernel).defaults
    requests = [
        KernelRequest(
            kernel, defaults | dict(c.params), c.grid, c.clock, repetitions=c.repetitions, deadline_ms=c.deadline_ms
        )
        for c in registered(kernel).recorded
    ]
    return [(repr(r), lambda request=r: capture_kernel_of(request)) for r in requests]  # type: ignore[misc]


def main() -> int:
    """Record the plan; 1 if any capture failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True, help="folder; the device's folder is made in it")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    parser.add_argument("--only", default="", help="keep the configurations whose repr contains this")
    parser.add_argument("--kernel", choices=kernel_names(), default=PROTOCOL, help="the kernel to record")
    options = parser.parse_args()
    failed = 0
    for label, record in jobs(options.kernel):
        if options.only not in label:
            continue
        try:
            trace = record()
            path = options.into / trace_name(trace.meta)
            if path.exists() and not options.force:
                print(f"kept     {path}")
                continue
            write_trace(trace, path, force=options.force)
        except PipesimError as error:
            failed += 1
            print(f"FAILED   {label}\n{error}")
            continue
        lost = sum(sum(c.dropped) for c in trace.meta.ctas)
        print(
            f"recorded {path}: {len(trace.events):,} events, {lost} lost, {trace.meta.status}, "
            f"{trace.meta.wrong_tiles} wrong tiles, {trace.meta.extra}",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
