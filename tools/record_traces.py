"""Record the repository's traces on the GPU of this machine: ``python tools/record_traces.py --into traces``.

Writes one file for each configuration, named after it, into the folder of the device. Existing files are left alone
unless ``--force`` is given. ``--only WORD`` keeps the configurations whose label contains WORD.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from hwkernels.capture import CaptureRequest, capture
from pipesim.errors import PipesimError
from pipesim.trace.files import write_trace
from pipesim.trace.library import trace_name


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

    @property
    def params(self) -> dict[str, int]:
        """The parameters of the protocol."""
        return {
            "stages": self.stages,
            "tiles": self.tiles,
            "tile_bytes": self.tile_bytes,
            "consumer_warps": self.consumer_warps,
            "work": self.work,
            "arrive_lanes": self.arrive_lanes,
        }


KB = 1024
FULL = 132  #: one CTA on every SM of an H100 or H200
PLAN = (
    *(Configuration(s, b, 1, 0) for b in (4 * KB, 16 * KB) for s in (1, 2, 4, 6)),
    *(Configuration(s, 4 * KB, 4, 600) for s in (1, 2, 4, 6)),
    *(Configuration(s, 16 * KB, 4, 0) for s in (2, 4, 6)),
    Configuration(4, 16 * KB, 1, 600),
    Configuration(4, 16 * KB, 4, 600),
    Configuration(4, 16 * KB, 2, 600),
    Configuration(4, 16 * KB, 2, 600, clock="globaltimer"),
    Configuration(4, 16 * KB, 2, 600, clock="both"),
    Configuration(4, 16 * KB, 2, 600, arrive_lanes=32),
    Configuration(4, 16 * KB, 2, 600, tiles=1),
    Configuration(4, 16 * KB, 2, 600, tiles=0),
    Configuration(4, 16 * KB, 2, 600, tiles=5),
    Configuration(4, 16 * KB, 2, 600, FULL),
    Configuration(4, 4 * KB, 1, 0, FULL),
    Configuration(1, 16 * KB, 1, 0, FULL),
    Configuration(4, 16 * KB, 4, 0, FULL),
    Configuration(4, 16 * KB, 2, 600, FULL, clock="both"),
)


def main() -> int:
    """Record the plan; 1 if any capture failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, required=True, help="folder; the device's folder is made in it")
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    parser.add_argument("--only", default="", help="keep the configurations whose repr contains this")
    options = parser.parse_args()
    failed = 0
    for configuration in PLAN:
        if options.only not in repr(configuration):
            continue
        try:
            trace = capture(CaptureRequest(configuration.params, configuration.grid, configuration.clock))
            path = options.into / trace_name(trace.meta)
            if path.exists() and not options.force:
                print(f"kept     {path}")
                continue
            write_trace(trace, path, force=options.force)
        except PipesimError as error:
            failed += 1
            print(f"FAILED   {configuration}\n{error}")
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
