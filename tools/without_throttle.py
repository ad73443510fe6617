"""What a removal gains on the chip: ``python tools/without_throttle.py [--launches N] [--json FILE] [--dry-run]``.

``pipesim check persistent_scheduler --redundant`` offers the barriers ``throttle.empty``; ``-D THROTTLE_EMPTY=0`` has
``persistent_scheduler.cu`` without them. Both builds are launched in turn, without the recorder, on the same inputs;
results are compared with float64, and bit for bit with each other. Times are between two CUDA events. Needs a Hopper
GPU; with ``--dry-run`` both builds are compiled and nothing is launched.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from hwkernels.capture import CaptureRequest, TwinSubject
from hwkernels.capture.launches import Launches
from hwkernels.capture.plan import plan
from hwkernels.capture.request import check_request
from hwkernels.device.compile import Compiled, compile_cubin
from hwkernels.device.launch import DeviceInfo, Gpu, require_gpu
from hwkernels.twins import registered
from pipesim.errors import PipesimError
from pipesim.targets import find

KERNEL = "persistent_scheduler"
_SMALL = {"k_iters": 1, "tile_bytes": 1024, "work": 0, "tiles": 4096}
#: Rows of the parameters that differ from the protocol's, and the CTAs: the fewer bytes a row has, the more it waits.
CASES: tuple[tuple[dict[str, int], int], ...] = (
    (_SMALL, 1),
    (_SMALL | {"clc_stages": 1}, 1),
    (_SMALL | {"clc_stages": 4, "stages": 8}, 1),
    (_SMALL | {"tiles": 512}, 132),
    ({"k_iters": 2, "tile_bytes": 4096, "work": 0, "tiles": 64}, 132),
)
_WARM = 3  #: launches of each build that are not counted


@dataclass(frozen=True)
class Measured:
    """Nanoseconds of a launch with and without the barriers: medians, and of each the quartiles."""

    params: dict[str, int]
    grid: int
    launches: int
    with_ns: float
    without_ns: float
    with_quartiles: list[float]
    without_quartiles: list[float]
    same_bits: bool
    wrong: int
    gave_up: int


def params_of(changes: dict[str, int]) -> dict[str, int]:
    """All parameters of a case."""
    return find(KERNEL).defaults | changes


def build(changes: dict[str, int], *, throttled: bool) -> Compiled:
    """The kernel without its recorder, with the barriers or without them."""
    twin = registered(KERNEL)
    own = {"PIPESIM_TRACE": 0, "THROTTLE_EMPTY": int(throttled)}
    return compile_cubin(twin.source, {**twin.defines(params_of(changes)), **own})


def measure(info: DeviceInfo, changes: dict[str, int], grid: int, launches: int) -> Measured:
    """Both builds in turn, so many launches of each."""
    request = CaptureRequest(TwinSubject(KERNEL, grid), params_of(changes))
    check_request(request)
    layout = plan(request, info.smem_per_cta)
    gpu = Gpu(info)
    took: dict[bool, list[int]] = {True: [], False: []}
    bits: set[str] = set()
    wrong = gave_up = 0
    try:
        work = Launches(gpu, request, layout)
        kernels = {each: gpu.load(build(changes, throttled=each), layout.shape.smem_bytes) for each in (True, False)}
        for n in range(launches + _WARM):
            for throttled in (True, False) if n % 2 else (False, True):
                run = work.run(kernels[throttled], traced=False, repetition=n)
                gave_up += run.gave_up
                wrong += run.wrong_tiles
                bits.add(repr(sorted(work.results().items())))
                if n >= _WARM:
                    took[throttled].append(run.took_ns)
    finally:
        gpu.close()
    quartiles = {each: [round(x) for x in quantiles(times, n=4)] for each, times in took.items()}
    return Measured(
        changes, grid, launches, median(took[True]), median(took[False]), list(quartiles[True]),
        list(quartiles[False]), len(bits) == 1, wrong, gave_up,
    )  # fmt: skip


def main() -> int:
    """Measure every case and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launches", type=int, default=51, help="of each build and case")
    parser.add_argument("--json", type=Path, help="where the numbers go")
    parser.add_argument("--dry-run", action="store_true", help="compile every build and launch nothing")
    options = parser.parse_args()
    try:
        if options.dry_run:
            for changes, _ in CASES:
                sizes = [len(build(changes, throttled=each).cubin) for each in (True, False)]
                print(f"compiled {changes}: {sizes[0]:,} bytes with throttle.empty, {sizes[1]:,} without")
            return 0
        info = require_gpu()
        print(f"{info.name}, driver {info.driver}, {options.launches} launches of each build, in turn", flush=True)
        found: list[Measured] = []
        for changes, grid in CASES:
            each = measure(info, changes, grid, options.launches)
            found.append(each)
            rows = params_of(changes)["tiles"]
            gain = 100 * (each.with_ns - each.without_ns) / each.with_ns
            name = " ".join(f"{key}={value}" for key, value in changes.items())
            print(
                f"{name} grid={grid}: {each.with_ns / rows:.1f} ns a row with, {each.without_ns / rows:.1f} without "
                f"({gain:+.1f} %); same bits {each.same_bits}, wrong {each.wrong}, gave up {each.gave_up}",
                flush=True,
            )
    except PipesimError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    if options.json:
        said = {"device": info.name, "driver": info.driver, "cases": [asdict(each) for each in found]}
        options.json.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    return int(any(each.wrong or each.gave_up or not each.same_bits for each in found))


if __name__ == "__main__":
    sys.exit(main())
