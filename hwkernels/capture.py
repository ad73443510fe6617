"""Runs the producer/consumer kernel on a GPU and makes a trace of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.compile import Compiled
from hwkernels.decode import TIMER_STEPS, decode, sm_khz, timer_step_ns
from hwkernels.launch import DeviceInfo, Gpu, require_gpu
from hwkernels.layout import DEADLINE, FINISHED, HEADER, RECORD_WORDS, REPORT, STOPPED
from hwkernels.measure import Launched, overhead, run_of, share_sums, wrong_tiles
from hwkernels.request import PROTOCOL, CaptureRequest, Layout, check_request, compile_kernel, plan
from pipesim.errors import HardwareError
from pipesim.trace.schema import Device, Trace, TraceMeta

__all__ = ["CaptureRequest", "capture"]

_WARM_UP_S = 0.1

CLOCK_SKEW_CYCLES = 16  #: bound on the difference of %clock between the warps of an SM


def capture(request: CaptureRequest) -> Trace:
    """Compile, run and check the kernel, and give the trace of its first recorded launch.

    ``wrong_tiles`` speaks of all launches, ``status`` of the one whose records are kept: the first traced launch, or
    the first that met its deadline. Raises HardwareError without a usable GPU or if the kernel traps, ParameterError
    and ConfigurationError for a request that cannot be run.
    """
    check_request(request)
    info = require_gpu()
    layout = plan(request, info.smem_per_cta, info.smem_per_sm)
    compiled = {traced: compile_kernel(request, traced=traced) for traced in (False, True)}
    gpu = Gpu(info)
    try:
        launched = _launch_all(gpu, request, layout, compiled)
    finally:
        gpu.close()
    return _trace(request, layout, compiled[True], info, launched)


def _launch_all(gpu: Gpu, request: CaptureRequest, layout: Layout, compiled: Mapping[bool, Compiled]) -> list[Launched]:
    """All measured launches, untraced and traced in turn. After one that met its deadline the repetitions end."""
    words = request.params["tile_bytes"] // 4
    random = np.random.default_rng(request.seed)
    source = random.integers(0, 1 << 32, size=(layout.source_tiles, words), dtype=np.uint32)
    buffers = _Buffers(gpu, request, layout, source)
    expected = share_sums(source, request.params["consumer_warps"])
    kernels = {traced: gpu.load(compiled[traced], layout.smem_bytes) for traced in (False, True)}
    buffers.warm_up(kernels)
    launched: list[Launched] = []
    for repetition in range(request.repetitions):
        for traced in (False, True):
            run = buffers.run(kernels[traced], traced=traced, repetition=repetition, expected=expected)
            launched.append(run)
        if any(run.gave_up for run in launched):
            break
    return launched


class _Buffers:
    """A request's device memory, and the launch that uses it."""

    def __init__(self, gpu: Gpu, request: CaptureRequest, layout: Layout, source: npt.NDArray[np.uint32]) -> None:
        self._gpu, self._request, self._layout = gpu, request, layout
        agents, grid = len(layout.table.agents), request.grid
        self._words = (layout.record_ctas, agents, layout.capacity, RECORD_WORDS[request.clock])
        self._sums = (grid, request.params["tiles"], request.params["consumer_warps"])
        self._source = gpu.allocate(source.nbytes)
        self._checksums = gpu.allocate(4 * prod(self._sums))
        self._reports = gpu.allocate(grid * REPORT.itemsize)
        self._stop = gpu.allocate(4)
        self._headers = gpu.allocate(grid * HEADER.itemsize)
        self._records = gpu.allocate(4 * prod(self._words))
        gpu.upload(self._source, source)

    def warm_up(self, kernels: Mapping[bool, Any]) -> None:
        """Launch until code and tiles are in the caches and the clocks have risen."""
        until = time.monotonic() + _WARM_UP_S
        self._launch(kernels[True])
        while True:
            self._launch(kernels[False])
            if time.monotonic() >= until:
                return

    def _launch(self, kernel: Any) -> None:
        """One launch, its outputs overwritten before it."""
        gpu, layout, grid = self._gpu, self._layout, self._request.grid
        gpu.fill(self._checksums, 0xEE, 4 * prod(self._sums))
        gpu.fill(self._reports, 0, grid * REPORT.itemsize)
        gpu.fill(self._headers, 0, grid * HEADER.itemsize)
        gpu.fill(self._stop, 0, 4)
        gpu.launch(kernel, (grid, layout.threads, layout.smem_bytes), self._arguments())

    def run(self, kernel: Any, *, traced: bool, repetition: int, expected: npt.NDArray[np.uint32]) -> Launched:
        """One launch, its results fetched and its checksums compared."""
        gpu, layout, request = self._gpu, self._layout, self._request
        self._launch(kernel)
        reports = np.zeros(request.grid, dtype=REPORT)
        sums = np.zeros(self._sums, dtype=np.uint32)
        headers = np.zeros(request.grid if traced else 0, dtype=HEADER)
        for address, array in (
            (self._reports, reports),
            (self._checksums, sums),
            (self._headers, headers),
        ):
            gpu.download(address, array)
        strange = ~np.isin(reports["status"], (FINISHED, DEADLINE, STOPPED))
        if strange.any():
            raise HardwareError(f"CTA {int(np.argmax(strange))} never came to its end")
        wanted = traced and (repetition == 0 or bool((reports["status"] != FINISHED).any()))
        records = np.zeros(self._words if wanted else 0, dtype=np.uint32)
        gpu.download(self._records, records)
        first = (np.arange(request.grid, dtype=np.int64) * request.params["tiles"])[:, None]
        tiles = (first + np.arange(request.params["tiles"], dtype=np.int64)) % layout.source_tiles
        wrong = wrong_tiles(sums, expected[tiles], reports["iterations"])
        return Launched(traced, repetition, reports, headers, records, wrong)

    def _arguments(self) -> list[int | np.uint32]:
        """In the order of the kernel's parameters."""
        layout, params = self._layout, self._request.params
        numbers = (
            layout.source_tiles,
            params["tiles"] % layout.source_tiles,
            params["tiles"],
            params["work"],
            self._request.deadline_ms * 1_000_000,
            *layout.marks,
        )
        return [
            self._source,
            *(np.uint32(n) for n in numbers),
            self._checksums,
            self._reports,
            self._stop,
            self._headers,
            self._records,
            np.uint32(layout.capacity),
            np.uint32(layout.record_ctas),
        ]


def order_error_cycles(clock: str, khz: int, step_ns: int) -> int:
    """Cycles by which two stamps of one SM may stand in the wrong order.

    Two readings of ``%clock`` on one SM were at most 13 cycles apart when taken right behind a CTA barrier (2,000
    times, 8 warps, H100 and H200); a reading of ``%globaltimer`` is up to two of its usual steps old.
    """
    return CLOCK_SKEW_CYCLES + (-(-TIMER_STEPS * step_ns * khz // 1_000_000) if clock == "globaltimer" else 0)


def _trace(
    request: CaptureRequest, layout: Layout, compiled: Compiled, info: DeviceInfo, launched: list[Launched]
) -> Trace:
    # a launch that hung tells more than one that did not
    traced = [run for run in launched if run.traced]
    recorded = next((run for run in traced if run.gave_up), traced[0])
    headers = recorded.headers[: layout.record_ctas]
    decoded = decode(headers, recorded.records, layout.table, request.clock, request.params["tile_bytes"])
    runs = tuple(run_of(run, layout.marks) for run in launched)
    gave_up = [run.describe_end(layout.table) for run in launched if run.gave_up]
    extra: dict[str, Any] = {
        "order_error_cycles": order_error_cycles(
            request.clock, sm_khz(recorded.headers), timer_step_ns(recorded.headers)
        ),
        "overhead_millicycles_per_tile": overhead(runs, request.params["tiles"]),
        "capacity": layout.capacity,
        "smem_bytes": layout.smem_bytes,
        "source_tiles": layout.source_tiles,
        "seed": request.seed,
        "break_kind": request.break_kind,
    }
    if gave_up:
        extra["gave_up"] = gave_up[0]
    meta = TraceMeta(
        source="hardware",
        protocol=PROTOCOL,
        params=dict(request.params),
        grid=request.grid,
        device=Device(
            info.name,
            info.sms,
            info.capability,
            info.driver,
            compiled.nvrtc,
            sm_khz(recorded.headers),
            timer_step_ns(recorded.headers),
        ),
        agents=layout.table.agents,
        barriers=layout.table.barriers,
        sites=layout.table.sites,
        ctas=decoded.ctas,
        runs=runs,
        clock=request.clock,
        status="deadline" if recorded.gave_up else "finished",
        wrong_tiles=sum(run.wrong_tiles for run in launched),
        kernel_hash=compiled.kernel_hash,
        options=compiled.options,
        record_bytes=4 * RECORD_WORDS[request.clock],
        recorded_at=datetime.now(UTC).isoformat(timespec="seconds"),
        extra=extra,
    )
    return Trace(meta, decoded.events)
