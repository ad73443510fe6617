"""The launches of a kernel that is not ours: its buffers on the device, and each launch's records and outputs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.capture.arguments import NUMBERS, as_bytes, contents, number, read_npy
from hwkernels.capture.source import ForeignLayout, ForeignRequest
from hwkernels.device.compile import compile_cubin
from hwkernels.device.launch import Gpu, Shape, warm_up
from hwkernels.device.sources import RECORDER
from hwkernels.recorder.layout import HEADER, LAUNCH
from hwkernels.recorder.session import Recording, Space, how_it_ended, unrecorded
from pipesim.model.ending import Ending

_RATE_NS = 200_000  # between the two anchors that tell the clock's rate


@dataclass(frozen=True)
class ForeignLaunched:
    """One launch as it was fetched.

    ``headers``: (CTAs,) of ``layout.HEADER``, empty if untraced. ``records``: (recorded CTAs, agents, capacity, words),
    empty where they were not wanted. ``took_ns``: between two CUDA events around the launch, 0 if it did not end.
    ``outputs``: a hash of each output. ``wrong``: of each output that was expected to be something else, how many
    elements differ. ``status``: FINISHED, DEADLINE or TRAP.
    """

    traced: bool
    repetition: int
    headers: npt.NDArray[Any]
    records: npt.NDArray[np.uint32]
    took_ns: int = 0
    outputs: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, int] = field(default_factory=dict)
    status: Ending = Ending.FINISHED


class ForeignLaunches:
    """A request's memory, and the launch that uses it. ``host``: what is recorded goes to the host's memory."""

    def __init__(self, gpu: Gpu, request: ForeignRequest, layout: ForeignLayout, *, host: bool) -> None:
        self._gpu, self._request, self._host = gpu, request, host
        self._shape = Shape(request.grid, request.block, request.smem_bytes, request.cluster)
        kept = layout.record_ctas
        space = Space(layout.table, request.clock, layout.ctas, layout.ctas, kept, layout.capacity, layout.room, host)
        self._recording = Recording(gpu, space)
        self._arguments: list[int | np.generic] = []
        self._buffers: dict[int, npt.NDArray[np.uint8]] = {}  # by address: what is there before a launch
        self._outputs: dict[str, int] = {}
        for position, argument in enumerate(request.arguments):
            if argument.kind in NUMBERS:
                self._arguments.append(number(argument))
                continue
            data = contents(argument, request.seed, position)
            address = gpu.allocate(data.nbytes)
            self._buffers[address] = data
            self._arguments.append(address)
            if argument.kind == "out":
                self._outputs[argument.name] = address

    def run(self, kernel: Any, *, traced: bool, repetition: int = 0, records: bool = False) -> ForeignLaunched:
        """One launch, its buffers filled before it and its results fetched; ``records``: those too.

        A launch that hangs or traps is a result where the host has the records, else an error.
        """
        for address, data in self._buffers.items():
            self._gpu.upload(address, data)
        self._recording.clear()
        arguments = [*self._arguments, *([self._recording.launch_at] if traced else [])]
        status, took_ns = how_it_ended(
            lambda: self._gpu.launch_within(kernel, self._shape, arguments, self._request.timeout_s),
            survives=self._host and traced,
        )
        finished = status == Ending.FINISHED
        headers, kept = self._recording.fetch(records=records, finished=finished) if traced else unrecorded()
        if not finished:
            return ForeignLaunched(traced, repetition, headers, kept, status=status)
        outputs, wrong = self._results()
        return ForeignLaunched(traced, repetition, headers, kept, took_ns or 0, outputs, wrong)

    def _results(self) -> tuple[dict[str, str], dict[str, int]]:
        """Of each output its hash, and of each that differs from what was expected, by how many elements."""
        hashes: dict[str, str] = {}
        wrong: dict[str, int] = {}
        expected = self._request.expected or {}
        for name, address in self._outputs.items():
            found = np.zeros(len(self._buffers[address]), dtype=np.uint8)
            self._gpu.download(address, found)
            hashes[name] = hashlib.sha256(found.tobytes()).hexdigest()[:16]
            if name in expected:
                array = read_npy(expected[name])
                differs = as_bytes(array).reshape(array.size, -1) != found.reshape(array.size, -1)
                if differs.any():
                    wrong[name] = int(differs.any(axis=1).sum())
        return hashes, wrong


def clock_rate(gpu: Gpu) -> npt.NDArray[Any]:
    """Run a kernel that only reads both clocks twice, until they have risen; its last header.

    It tells the SM clock where a kernel that hangs cannot.
    """
    kernel = gpu.load(compile_cubin(RECORDER / "clock_rate.cu", {"PIPESIM_TRACE": 1}), 0)
    headers = np.zeros(1, dtype=HEADER)
    launch_at, header_at = gpu.allocate(LAUNCH.itemsize), gpu.allocate(headers.nbytes)
    gpu.upload(header_at, headers)
    gpu.upload(launch_at, np.array([(header_at, 0, 0, 0, 0, 0, 0, 0)], dtype=LAUNCH))
    warm_up(lambda: gpu.launch(kernel, (1, 1, 0), [np.uint32(_RATE_NS), launch_at]))
    gpu.download(header_at, headers)
    return headers
