"""The launches of a kernel of the registry: its memory, and what each launch leaves, fetched and compared."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.capture.tensor_map import encode
from hwkernels.capture.twin import Argument, Input, Output, TensorMap
from hwkernels.capture.twin_request import KernelLayout, KernelRequest
from hwkernels.device.launch import Gpu, warm_up
from hwkernels.device.memory import Area, allocate
from hwkernels.recorder.layout import DEADLINE, FINISHED, REPORT, STOPPED
from hwkernels.recorder.measure import Launched
from hwkernels.recorder.session import Recording, Space, how_it_ended, unrecorded
from hwkernels.twins import registered
from pipesim.errors import HardwareError

BEFORE = 0xEE  #: every byte of an output before a launch
_OVERTIME_S = 5.0  # above the kernel's own deadline, after which it is taken for hung in spite of its bounds


@dataclass(frozen=True)
class Checked:
    """An output against what it must be: elements, wrong ones, wrong tiles, the largest error, and the first wrong."""

    elements: int
    wrong: int
    wrong_tiles: int
    largest_error: float
    first_wrong: str = ""


@dataclass(frozen=True)
class KernelLaunched(Launched):
    """One launch with its outputs compared. ``took_ns``: between two CUDA events around it, 0 if it did not end."""

    outputs: dict[str, Checked] = field(default_factory=dict)
    took_ns: int = 0


def compare_output(output: Output, found: npt.NDArray[Any]) -> Checked:
    """What a kernel left in an output, element by element. NaN is wrong."""
    values = (output.unpack(found) if output.unpack else found).astype(np.float64)
    expected = output.expected.astype(np.float64)
    error = np.abs(values - expected)
    wrong = ~(error <= output.absolute + output.relative * np.abs(expected))
    first = ""
    if wrong.any():
        at = tuple(int(n) for n in np.argwhere(wrong)[0])
        first = f"{output.name}{list(at)} is {values[at]!r} instead of {expected[at]!r}"
    tiles = int(wrong.reshape(len(wrong), -1).any(axis=1).sum()) if wrong.size else 0
    return Checked(wrong.size, int(wrong.sum()), tiles, float(error.max()) if error.size else 0.0, first)


class KernelLaunches:
    """A request's memory, and the launch that uses it."""

    def __init__(self, gpu: Gpu, request: KernelRequest, layout: KernelLayout) -> None:
        self._gpu, self._request, self._layout = gpu, request, layout
        host = layout.memory == "host"
        ctas = request.ctas
        stored = layout.record_ctas if layout.memory == "shared" else ctas
        space = Space(
            layout.table, request.clock, ctas, stored, layout.record_ctas, layout.capacity, layout.room, host
        )  # fmt: skip
        self._recording = Recording(gpu, space)
        self._reports = allocate(gpu, ctas * REPORT.itemsize, host=host)
        self._stop = gpu.allocate(4)
        self._inputs: list[tuple[int, npt.NDArray[Any]]] = []
        self._outputs: list[tuple[Output, Area]] = []
        self._arguments = self._place(registered(request.kernel).arguments(request.params, request.grid, request.seed))

    def _place(self, arguments: tuple[Argument, ...]) -> list[Any]:
        """Memory for the buffers; the arguments as a launch takes them."""
        host = self._layout.memory == "host"
        addresses: dict[str, int] = {}
        for argument in arguments:
            if isinstance(argument, Input):
                address = self._gpu.allocate(argument.data.nbytes)
                self._inputs.append((address, np.ascontiguousarray(argument.data)))
                addresses[argument.name] = address
            elif isinstance(argument, Output):
                nbytes = argument.expected.size * np.dtype(argument.dtype).itemsize
                area = allocate(self._gpu, nbytes, host=host)
                self._outputs.append((argument, area))
                addresses[argument.name] = area.address
        placed: list[Any] = []
        for argument in arguments:
            match argument:
                case Input(name=name, given=given) | Output(name=name, given=given):
                    placed += [addresses[name]] if given else []
                case TensorMap(of=of):
                    placed.append(encode(argument, addresses[of]))
                case number:
                    placed.append(number)
        return placed

    def warm_up(self, plain: Any, traced: Any) -> None:
        """The traced kernel once, then the plain one for a while."""
        self._launch(traced, traced=True)
        warm_up(lambda: self._launch(plain, traced=plain is traced))

    def _launch(self, kernel: Any, *, traced: bool) -> int:
        """One launch, its buffers as they must be before it; the nanoseconds that it took."""
        gpu = self._gpu
        for address, data in self._inputs:
            gpu.upload(address, data)
        for _, area in self._outputs:
            area.fill(BEFORE)
        self._reports.fill(0)
        self._recording.clear()
        gpu.fill(self._stop, 0, 4)
        arguments = [
            *self._arguments,
            np.uint32(self._request.deadline_ms * 1_000_000),
            self._reports.address,
            self._stop,
            *([self._recording.launch_at] if traced else []),
        ]
        limit_s = _OVERTIME_S + self._request.deadline_ms / 1000
        return gpu.launch_within(kernel, self._layout.shape, arguments, limit_s)

    def run(self, kernel: Any, *, traced: bool, repetition: int) -> KernelLaunched:
        """One launch, its results fetched and its outputs compared. A trap is a result where the host has them."""
        begun = time.monotonic()
        survives = self._layout.memory == "host"
        status, took_ns = how_it_ended(lambda: self._launch(kernel, traced=traced), survives=survives)
        took_ms = round(1000 * (time.monotonic() - begun))
        ended = status == "finished"
        reports = np.zeros(self._request.ctas, dtype=REPORT)
        self._reports.fetch(reports)
        strange = ~np.isin(reports["status"], (FINISHED, DEADLINE, STOPPED))
        if strange.any() and ended:
            raise HardwareError(f"CTA {int(np.argmax(strange))} did not finish")
        headers, records = unrecorded()
        if traced:
            wanted = repetition == 0 or bool((reports["status"] != FINISHED).any())
            headers, records = self._recording.fetch(records=wanted, finished=ended)
        outputs = self._checked() if ended and not (reports["status"] != FINISHED).any() else {}
        wrong = sum(found.wrong_tiles for found in outputs.values())
        return KernelLaunched(
            traced, repetition, reports, headers, records, wrong, not ended, took_ms, outputs, took_ns or 0
        )  # fmt: skip

    def _checked(self) -> dict[str, Checked]:
        found: dict[str, Checked] = {}
        for output, area in self._outputs:
            values = np.zeros(output.expected.shape, dtype=output.dtype)
            area.fetch(values)
            found[output.name] = compare_output(output, values)
        return found
