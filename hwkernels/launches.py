"""The launches of one request: its memory on the device, and each launch's results fetched and checked."""

from __future__ import annotations

import time
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.compile import Compiled
from hwkernels.counts import fresh_headers, require_counted, settle
from hwkernels.launch import Gpu
from hwkernels.layout import DEADLINE, FINISHED, HEADER, LAUNCH, RECORD_WORDS, REPORT, STOPPED, UNWRITTEN
from hwkernels.measure import Launched, share_sums, wrong_tiles
from hwkernels.memory import allocate
from hwkernels.request import CaptureRequest, Layout, compile_kernel
from pipesim.errors import HardwareError, KernelTrapError

_WARM_UP_S = 0.1


def compile_all(request: CaptureRequest, layout: Layout) -> dict[bool, Compiled]:
    """The kernel without its recorder (False) and with it (True)."""
    return {traced: compile_kernel(request, traced=traced, memory=layout.memory) for traced in (False, True)}


def launch_all(gpu: Gpu, request: CaptureRequest, layout: Layout) -> list[Launched]:
    """All measured launches, untraced and traced in turn. After one that met its deadline the repetitions end."""
    launches = Launches(gpu, request, layout)
    kernels = {t: gpu.load(code, layout.smem_bytes) for t, code in compile_all(request, layout).items()}
    launches.warm_up(kernels[False], kernels[True])
    launched: list[Launched] = []
    for repetition in range(request.repetitions):
        launched += [launches.run(kernels[traced], traced=traced, repetition=repetition) for traced in (False, True)]
        if any(run.gave_up for run in launched):
            break
    return launched


def launch_fault(gpu: Gpu, request: CaptureRequest, layout: Layout) -> tuple[Launched, npt.NDArray[Any]]:
    """One traced launch of a kernel with a fault, and the headers of one without, which tell the clock's rate.

    All that it writes lies in the host's memory, so that a trap leaves it.
    """
    launches = Launches(gpu, request, layout)
    right = replace(request, fault=None)
    good, wrong = (compile_kernel(r, traced=True, memory=layout.memory) for r in (right, request))
    kernel = gpu.load(good, layout.smem_bytes)
    launches.warm_up(kernel, kernel)
    before = launches.run(kernel, traced=True, repetition=0)
    return launches.run(gpu.load(wrong, layout.smem_bytes), traced=True, repetition=0), before.headers


class Launches:
    """A request's memory, and the launch that uses it."""

    def __init__(self, gpu: Gpu, request: CaptureRequest, layout: Layout) -> None:
        self._gpu, self._request, self._layout = gpu, request, layout
        agents, grid = len(layout.table.agents), request.grid
        host = layout.memory == "host"
        ctas = layout.record_ctas if layout.memory == "shared" else grid
        self._words = (ctas, agents, layout.capacity, RECORD_WORDS[request.clock])
        self._sums = (grid, request.params["tiles"], request.params["consumer_warps"])
        random = np.random.default_rng(request.seed)
        shape = (layout.source_tiles, request.params["tile_bytes"] // 4)
        source = random.integers(0, 1 << 32, size=shape, dtype=np.uint32)
        self._expected = share_sums(source, request.params["consumer_warps"])
        self._source, self._launch_at, self._stop = (gpu.allocate(n) for n in (source.nbytes, LAUNCH.itemsize, 4))
        self._checksums = allocate(gpu, 4 * prod(self._sums), host=host)
        self._reports = allocate(gpu, grid * REPORT.itemsize, host=host)
        self._headers = allocate(gpu, grid * HEADER.itemsize, host=host)
        self._records = allocate(gpu, 4 * prod(self._words), host=host)
        gpu.upload(self._source, source)
        gpu.upload(self._launch_at, self._launch_structure())

    def _launch_structure(self) -> npt.NDArray[Any]:
        layout, tiles = self._layout, self._request.params["tiles"]
        first, end = self._request.window or (0, tiles)
        span = min(end, tiles) - first
        areas = (self._headers.address, self._records.address)
        values = (*areas, layout.capacity, layout.record_ctas, first, span, len(layout.table.agents), 0)
        return np.array([values], dtype=LAUNCH)

    def warm_up(self, plain: Any, traced: Any) -> None:
        """Launch until code and tiles are in the caches and the clocks have risen."""
        until = time.monotonic() + _WARM_UP_S
        self._launch(traced, traced=True)
        while True:
            self._launch(plain, traced=plain is traced)
            if time.monotonic() >= until:
                return

    def _launch(self, kernel: Any, *, traced: bool) -> None:
        """One launch, its outputs overwritten before it."""
        gpu, layout, grid = self._gpu, self._layout, self._request.grid
        self._checksums.fill(0xEE)
        self._reports.fill(0)
        self._headers.put(fresh_headers(grid))
        if layout.memory == "host":
            self._records.fill(UNWRITTEN)
        gpu.fill(self._stop, 0, 4)
        gpu.launch(kernel, (grid, layout.threads, layout.smem_bytes), self._arguments(traced=traced))

    def run(self, kernel: Any, *, traced: bool, repetition: int) -> Launched:
        """One launch, its results fetched and its checksums compared. A trap is a result where the host has them."""
        request, layout = self._request, self._layout
        trapped, begun = False, time.monotonic()
        try:
            self._launch(kernel, traced=traced)
        except KernelTrapError:
            if layout.memory != "host":
                raise
            trapped = True
        took_ms = round(1000 * (time.monotonic() - begun))
        reports = np.zeros(request.grid, dtype=REPORT)
        sums = np.zeros(self._sums, dtype=np.uint32)
        headers = np.zeros(request.grid if traced else 0, dtype=HEADER)
        for area, array in ((self._reports, reports), (self._checksums, sums), (self._headers, headers)):
            area.fetch(array)
        strange = ~np.isin(reports["status"], (FINISHED, DEADLINE, STOPPED))
        if strange.any() and not trapped:
            raise HardwareError(f"CTA {int(np.argmax(strange))} never came to its end")
        wanted = traced and (repetition == 0 or bool((reports["status"] != FINISHED).any()))
        records = np.zeros(self._words if wanted else 0, dtype=np.uint32)
        self._records.fetch(records)
        records = records[:, :, 1:] if wanted else records  # the first of a buffer is not used
        if trapped:
            settle(headers, records, layout.room)
        elif traced:
            require_counted(headers, [agent.name for agent in layout.table.agents])
        first = (np.arange(request.grid, dtype=np.int64) * request.params["tiles"])[:, None]
        tiles = (first + np.arange(request.params["tiles"], dtype=np.int64)) % layout.source_tiles
        wrong = wrong_tiles(sums, self._expected[tiles], reports["iterations"])
        return Launched(traced, repetition, reports, headers, records, wrong, trapped, took_ms)

    def _arguments(self, *, traced: bool) -> list[int | np.generic]:
        """In the order of the kernel's parameters."""
        layout, params, fault = self._layout, self._request.params, self._request.fault
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
            self._checksums.address,
            self._reports.address,
            self._stop,
            np.uint32(fault.iteration if fault else 0),
            *([self._launch_at] if traced else []),
        ]
