"""The launches of a request: its memory on the device, and what each launch leaves, fetched and compared."""

import time
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.capture.plan import Plan
from hwkernels.capture.request import Builds, CaptureRequest
from hwkernels.device.launch import Gpu, warm_up
from hwkernels.device.memory import Area, allocate
from hwkernels.device.tensor_maps import encode
from hwkernels.source_recorder.layout import DEADLINE, FINISHED, REPORT, STOPPED
from hwkernels.source_recorder.measure import LaunchResult
from hwkernels.source_recorder.session import Recording, empty_records, how_it_ended
from hwkernels.twins.buffers import RUN_PARAMS, Argument, Bytes, Input, MapOf, OfLaunch, Output
from pipesim.errors import HardwareError
from pipesim.model.ending import Ending


class Launches:
    """A request's memory, and the launch that uses it."""

    def __init__(self, gpu: Gpu, request: CaptureRequest, plan: Plan) -> None:
        self._gpu, self._request, self._plan = gpu, request, plan
        self._host = plan.memory == "host"
        self._recording = Recording(gpu, plan.space(request.clock, request.ctas))
        self._reports = allocate(gpu, request.ctas * REPORT.itemsize, host=self._host)
        self._stop = gpu.allocate(4)
        self._marked_waits = request.subject.marked_waits(request)
        self._inputs: list[tuple[int, npt.NDArray[Any]]] = []
        self._outputs: list[tuple[Output | Bytes, Area]] = []
        arguments = request.subject.kernel_arguments(request)
        if request.subject.bounded and OfLaunch.REPORTS not in arguments:
            arguments = (*arguments, *RUN_PARAMS)
        self._arguments = self._place(arguments)

    def _place(self, arguments: tuple[Argument, ...]) -> list[Any]:
        """Memory for the buffers; the arguments as a launch takes them."""
        addresses: dict[str, int] = {}
        for argument in arguments:
            if isinstance(argument, Input):
                addresses[argument.name] = self._gpu.allocate(argument.data.nbytes)
                self._inputs.append((addresses[argument.name], np.ascontiguousarray(argument.data)))
            elif isinstance(argument, Output | Bytes):
                area = allocate(self._gpu, argument.nbytes, host=False)  # looked at after a launch that ended
                self._outputs.append((argument, area))
                addresses[argument.name] = area.address
        placed: list[Any] = []
        for argument in arguments:
            match argument:
                case Input(name=name, given=given) | Output(name=name, given=given) | Bytes(name=name, given=given):
                    placed += [addresses[name]] if given else []
                case MapOf(of=of, tensor=tensor):
                    placed.append(encode(tensor, addresses[of]))
                case OfLaunch():
                    placed.append(self._of_launch(argument))
                case number:
                    placed.append(number)
        return placed

    def _of_launch(self, argument: OfLaunch) -> int | np.generic:
        match argument:
            case OfLaunch.DEADLINE:
                return np.uint32(self._request.deadline_ms * 1_000_000)
            case OfLaunch.REPORTS:
                return self._reports.address
            case OfLaunch.STOP:
                return self._stop
            case OfLaunch.FAULT_AT:
                return np.uint32(self._request.fault.iteration if self._request.fault else 0)

    def launch(self, kernel: Any, *, traced: bool) -> int:
        """One launch, its buffers as they must be before it; the nanoseconds that it took. ``traced``: or marked."""
        for address, data in self._inputs:
            self._gpu.upload(address, data)
        for output, area in self._outputs:
            area.fill(output.initial_byte)
        self._reports.fill(0)
        if not traced and any(self._marked_waits):
            self._reports.write(self._fresh_reports(marks=self._marked_waits))
        self._recording.clear()
        self._gpu.fill(self._stop, 0, 4)
        arguments = [*self._arguments, *([self._recording.launch_at] if traced else [])]
        return self._gpu.launch_within(
            kernel, self._plan.shape, arguments, self._request.subject.limit_s(self._request)
        )  # fmt: skip

    def run(self, kernel: Any, *, traced: bool, repetition: int = 0, records: bool = False) -> LaunchResult:
        """One launch, its results fetched and its outputs compared.

        Its records are fetched on request, or if a wait in it gave up. A launch that hangs or traps is a result
        where the host has what was recorded, else an error.
        """
        begun = time.monotonic()
        status, took_ns = how_it_ended(lambda: self.launch(kernel, traced=traced), survives=self._host)
        took_ms = round(1000 * (time.monotonic() - begun))
        finished = status == Ending.FINISHED
        reports = self._fetch_reports(finished=finished)
        headers, words = empty_records()
        if traced:
            wanted = records or not finished or bool((reports["status"] != FINISHED).any())
            headers, words = self._recording.fetch(records=wanted, finished=finished)
        left = self._recording.words() if traced and finished else np.zeros((0, 0), dtype=np.uint64)
        found = {output.name: self._check(output, area, reports) for output, area in self._outputs} if finished else {}
        outputs = {name: checked for name, checked in found.items() if checked is not None}
        return LaunchResult(traced, repetition, headers, words, reports, status, took_ns or 0, took_ms, outputs, left)

    def run_marked(self, kernel: Any, repetition: int) -> LaunchResult:
        """One launch that records nothing, with the clock of every agent at two iterations."""
        self.launch(kernel, traced=True)
        headers, marks = self._recording.marks()
        return LaunchResult(
            False, repetition, headers, empty_records()[1], self._fetch_reports(finished=True), marks=marks
        )

    def _fetch_reports(self, *, finished: bool) -> npt.NDArray[Any]:
        """What each CTA said about its end; nothing of a kernel whose waits are not bounded."""
        reports = self._fresh_reports()
        self._reports.fetch(reports)
        reports["marks"][reports["marks"] == np.array(self._marked_waits, dtype=np.uint64)] = 0  # never reached
        strange = ~np.isin(reports["status"], (FINISHED, DEADLINE, STOPPED))
        if strange.any() and finished:
            raise HardwareError(f"CTA {int(np.argmax(strange))} did not finish")
        return reports

    def _fresh_reports(self, marks: tuple[int, int] = (0, 0)) -> npt.NDArray[Any]:
        """As a launch finds them; none of a kernel whose waits are not bounded."""
        reports = np.zeros(self._request.ctas if self._request.subject.bounded else 0, dtype=REPORT)
        reports["marks"] = marks
        return reports

    @staticmethod
    def _check(output: Output | Bytes, area: Area, reports: npt.NDArray[Any]) -> Any:
        found = np.zeros(area.nbytes, dtype=np.uint8)
        area.fetch(found)
        return output.check(found, reports)


def launch_all(gpu: Gpu, request: CaptureRequest, plan: Plan, builds: Builds) -> list[LaunchResult]:
    """Every launch of a request, in order: untraced and traced in turn after a warm-up.

    One traced launch if its records go to the host's memory, where one that hangs or traps leaves them; so also with a
    fault, after the right kernel has warmed up. After a launch in which a wait gave up there is no other.
    """
    launches = Launches(gpu, request, plan)
    kernels = {name: gpu.load(build, plan.shape.smem_bytes) for name, build in builds.items()}
    for name, kernel in kernels.items():
        request.subject.check_kernel(partial(gpu.parameter_sizes, kernel), traced=name != "plain")
    traced = kernels["traced"]
    if "right" in kernels:
        warm_up(lambda: launches.launch(kernels["right"], traced=True))
    if "plain" not in kernels:
        return [launches.run(traced, traced=True, records=True)]
    first = launches.run(traced, traced=True)
    if first.gave_up:
        return [first]
    warm_up(lambda: launches.launch(kernels["plain"], traced=False))
    launched: list[LaunchResult] = []
    for repetition in range(request.repetitions):
        launched.append(launches.run(kernels["plain"], traced=False, repetition=repetition))
        if "marked" in kernels:
            launched.append(launches.run_marked(kernels["marked"], repetition))
        launched.append(launches.run(traced, traced=True, repetition=repetition, records=repetition == 0))
        if any(run.gave_up for run in launched):
            break
    return launched
