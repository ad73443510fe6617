"""How often the order of the loads is missed on the chip: ``python tools/load_order.py [--json FILE]``.

Launches ``epilogue_residual.cu`` with CUTLASS's order (``first_tile_only=1``) and with upstream's (``0``), with and
without warps that are late, and counts the launches that met their deadline. Without its recorder, so that no record
can be blamed, and with it. Needs a Hopper GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from hwkernels.capture import CaptureRequest, TwinSubject
from hwkernels.capture.launches import Launches
from hwkernels.capture.plan import plan
from hwkernels.capture.request import check_request
from hwkernels.device.launch import DeviceInfo, Gpu, require_gpu
from pipesim.errors import PipesimError
from pipesim.targets import find

KERNEL, LATE = "epilogue_residual", 20_000
#: What is late: nothing, the epilogue, or the warp that loads its source. The fewer steps, the faster the load warp.
DELAYS: tuple[dict[str, int], ...] = (
    *({"k_iters": k} for k in (1, 2, 3, 4, 8, 16)),
    *({"k_iters": k, "epilogue": LATE} for k in (1, 8, 16)),
    *({"k_iters": k, "order_delay": LATE} for k in (1, 8, 16)),
)
_TILES, _DEADLINE_MS = 8, 10


@dataclass(frozen=True)
class Launched:
    """So many launches of one configuration: how many met their deadline, where, and how many left wrong tiles."""

    params: dict[str, int]
    traced: bool
    launches: int
    hung: int
    where: dict[str, int]
    wrong: int


def cases() -> Iterator[dict[str, int]]:
    """Every delay with the order of CUTLASS, then with upstream's."""
    for order in (1, 0):
        for delay in DELAYS:
            yield {"first_tile_only": order, "tiles": _TILES, **delay}


def launch_often(info: DeviceInfo, changes: dict[str, int], launches: int, *, traced: bool) -> Launched:
    """Launch one configuration so many times."""
    subject = TwinSubject(KERNEL)
    request = CaptureRequest(subject, find(KERNEL).defaults | changes, deadline_ms=_DEADLINE_MS)
    check_request(request)
    layout = plan(request, info.smem_per_cta)
    gpu = Gpu(info)
    try:
        work = Launches(gpu, request, layout)
        kernel = gpu.load(subject.build(request, layout.memory if traced else ""), layout.shape.smem_bytes)
        runs = [work.run(kernel, traced=traced, repetition=n) for n in range(launches)]
    finally:
        gpu.close()
    ends = [run.describe_end(layout.table) for run in runs if run.gave_up]
    where = Counter(str(end["site"]) for end in ends)
    wrong = sum(1 for run in runs if not run.gave_up and run.wrong_tiles)
    return Launched(changes, traced, launches, len(ends), dict(sorted(where.items())), wrong)


def main() -> int:
    """Launch all cases and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launches", type=int, default=50, help="of each case")
    parser.add_argument("--json", type=Path, help="where the numbers go")
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    try:
        info = require_gpu()
        print(f"{info.name}, driver {info.driver}, {options.launches} launches of each")
        for changes in cases():
            for traced in (False, True):
                each = launch_often(info, changes, options.launches, traced=traced)
                found.append(vars(each))
                name = " ".join(f"{key}={value}" for key, value in changes.items())
                kind = "recorded" if traced else "plain"
                print(f"{name:60} {kind:8} hung {each.hung:3} wrong {each.wrong:3} {each.where}", flush=True)
    except PipesimError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    if options.json:
        said = {"device": info.name, "driver": info.driver, "cases": found}
        options.json.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
