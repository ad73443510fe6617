"""The launches of one request: its memory on the device, and each launch's results fetched and checked."""

from __future__ import annotations

import time
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.capture.request import CaptureRequest, Layout, compile_kernel
from hwkernels.device.compile import Compiled
from hwkernels.device.launch import Gpu, warm_up
from hwkernels.device.memory import allocate
from hwkernels.recorder.layout import DEADLINE, FINISHED, REPORT, STOPPED
from hwkernels.recorder.measure import Launched, share_sums, wrong_tiles
from hwkernels.recorder.session import Recording, Space, how_it_ended, unrecorded
from pipesim.errors import HardwareError


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


def _space(request: CaptureRequest, layout: Layout) -> Space:
    """The recorder's memory of a request; from shared memory, the kernel copies the first CTAs' records only."""
    tiles = request.params["tiles"]
    first, end = request.window or (0, tiles)
    shared = layout.memory == "shared"
    return Space(
        layout.table,
        request.clock,
        ctas=request.grid,
        stored=layout.record_ctas if shared else request.grid,
        kept=layout.record_ctas,
        capacity=layout.capacity,
        room=layout.room,
        host=layout.memory == "host",
        window=(first, min(end, tiles) - first),
    )


class Launches:
    """A request's memory, and the launch that uses it."""

    def __init__(self, gpu: Gpu, request: CaptureRequest, layout: Layout) -> None:
        self._gpu, self._request, self._layout = gpu, request, layout
        grid, host = request.grid, layout.memory == "host"
        self._recording = Recording(gpu, _space(request, layout))
        self._sums = (grid, request.params["tiles"], request.params["consumer_warps"])
        random = np.random.default_rng(request.seed)
        shape = (layout.source_tiles, request.params["tile_bytes"] // 4)
        source = random.integers(0, 1 << 32, size=shape, dtype=np.uint32)
        self._expected = share_sums(source, request.params["consumer_warps"])
        self._source, self._stop = gpu.allocate(source.nbytes), gpu.allocate(4)
        self._checksums = allocate(gpu, 4 * prod(self._sums), host=host)
        self._reports = allocate(gpu, grid * REPORT.itemsize, host=host)
        gpu.upload(self._source, source)

    def warm_up(self, plain: Any, traced: Any) -> None:
        """The traced kernel once, then the plain one for a while."""
        self._launch(traced, traced=True)
        warm_up(lambda: self._launch(plain, traced=plain is traced))

    def _launch(self, kernel: Any, *, traced: bool) -> None:
        """One launch, its outputs overwritten before it."""
        gpu, layout, grid = self._gpu, self._layout, self._request.grid
        self._checksums.fill(0xEE)
        self._reports.fill(0)
        self._recording.clear()
        gpu.fill(self._stop, 0, 4)
        gpu.launch(kernel, (grid, layout.threads, layout.smem_bytes), self._arguments(traced=traced))

    def run(self, kernel: Any, *, traced: bool, repetition: int) -> Launched:
        """One launch, its results fetched and its checksums compared. A trap is a result where the host has them."""
        begun = time.monotonic()
        survives = self._layout.memory == "host"
        status, _ = how_it_ended(lambda: self._launch(kernel, traced=traced), survives=survives)
        took_ms = round(1000 * (time.monotonic() - begun))
        trapped = status == "trap"
        reports = np.zeros(self._request.grid, dtype=REPORT)
        self._reports.fetch(reports)
        strange = ~np.isin(reports["status"], (FINISHED, DEADLINE, STOPPED))
        if strange.any() and not trapped:
            raise HardwareError(f"CTA {int(np.argmax(strange))} did not finish")
        headers, records = unrecorded()
        if traced:
            wanted = repetition == 0 or bool((reports["status"] != FINISHED).any())
            headers, records = self._recording.fetch(records=wanted, finished=not trapped)
        wrong = self._wrong_tiles(reports)
        return Launched(traced, repetition, reports, headers, records, wrong, trapped, took_ms)

    def _wrong_tiles(self, reports: npt.NDArray[Any]) -> int:
        """Tiles whose checksums are not the host's."""
        sums = np.zeros(self._sums, dtype=np.uint32)
        self._checksums.fetch(sums)
        ctas, tiles, _ = self._sums
        first = (np.arange(ctas, dtype=np.int64) * tiles)[:, None]
        numbers = (first + np.arange(tiles, dtype=np.int64)) % self._layout.source_tiles
        return wrong_tiles(sums, self._expected[numbers], reports["iterations"])

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
            *([self._recording.launch_at] if traced else []),
        ]
