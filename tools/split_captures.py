"""Capture what the split of configurations names and is not recorded yet: ``python tools/split_captures.py``.

``traces/split.json`` says which configurations may be fitted, which are held out and which are sealed, and said so
before any of the planned ones was captured. This tool reads that file and records every configuration in it that the
device's folder of ``traces`` lacks, into that folder or another one (``--into``). Kernels compile on all processors
while earlier ones are captured. ``--list`` prints what would be captured and needs no GPU. About 4 minutes of an H200.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed

from hwkernels.capture import CaptureRequest, capture
from hwkernels.capture.pipeline import compile_builds
from hwkernels.twins import REGISTRY
from pipesim.errors import PipesimError
from pipesim.trace.files import write_trace
from pipesim.trace.library import device_slug, stored_traces, trace_folder, trace_name
from pipesim.trace.split import FILE, LaunchedKernel, Split, read_split
from tools.planned_captures import request_of


def missing(split: Split, folder: Path, device: str) -> list[LaunchedKernel]:
    """The configurations of the split that the folder has no whole recording of, on a device with this short name."""
    metas = [stored.meta for stored in stored_traces(folder)] if folder.is_dir() else []
    there = {
        split.rule.configuration(meta.protocol, meta.params, meta.grid)
        for meta in metas
        if device_slug(meta.device.name) == device and not meta.fault and not meta.window
    }
    return [configuration for configuration, _ in split.listed if configuration not in there]


def requests_of(configurations: Sequence[LaunchedKernel]) -> list[CaptureRequest]:
    """Their captures."""
    return [request_of(each.kernel, dict(each.params), each.ctas) for each in configurations]


def _compiled(request: CaptureRequest) -> None:
    compile_builds(request)  # into the cache, which the capture reads


def capture_all(requests: Sequence[CaptureRequest], folder: Path, jobs: int) -> int:
    """Capture them in order, each as soon as it is compiled; the number that failed or whose results are wrong."""
    failed, begun = 0, time.monotonic()
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        compiling = [pool.submit(_compiled, request) for request in requests]
        for number, (request, compiled) in enumerate(zip(requests, compiling, strict=True), start=1):
            try:
                compiled.result()
                trace = capture(request)
                path = folder / trace_name(trace.meta)
                write_trace(trace, path)
            except PipesimError as error:
                failed += 1
                print(
                    f"FAILED   {request.subject.name} {dict(request.params)}, {request.ctas} CTAs\n{error}", flush=True
                )
                continue
            failed += trace.meta.wrong_tiles > 0
            print(
                f"{number:>3}/{len(requests)} {time.monotonic() - begun:6.1f} s  {path}: {len(trace.events):,} events, "
                f"{trace.meta.status.value}, {trace.meta.wrong_tiles} wrong",
                flush=True,
            )
    return failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Capture what is missing; 1 if a capture failed or its results are wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--into", type=Path, default=None, help="folder for the captures (default: the checkout's traces)"
    )
    parser.add_argument("--device", default="h200", help="folder of this machine's GPU (default h200)")
    parser.add_argument("--only", choices=tuple(REGISTRY), default=None, help="captures of one kernel")
    parser.add_argument("--list", action="store_true", help="print them only: needs no GPU")
    options = parser.parse_args(arguments)
    split = read_split(trace_folder() / FILE)
    into = options.into or trace_folder()
    todo = [each for each in missing(split, trace_folder(), options.device) if options.only in (None, each.kernel)]
    todo = [
        each for each in todo if each in set(missing(split, into, options.device))
    ]  # captured before an interruption
    if options.list:
        for each in todo:
            print(f"{split.of(each.kernel, dict(each.params), each.ctas).value:<9} {each.text}")
        return 0
    return int(capture_all(requests_of(todo), into, os.cpu_count() or 1) > 0)


if __name__ == "__main__":
    sys.exit(main())
