"""A capture of a registry's kernel from request to trace, on a GPU of arrays that does what the protocol says."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pytest

from hwkernels.capture import CaptureRequest, TwinSubject, capture, pipeline
from hwkernels.capture.plan import plan
from hwkernels.device.bf16 import from_bf16, to_bf16
from hwkernels.device.compile import CompiledKernel
from hwkernels.device.launch import DeviceInfo, Shape, launch_config
from hwkernels.source_recorder.layout import FINISHED, LAUNCH, REPORT
from hwkernels.source_recorder.record_format import MEMORIES
from hwkernels.twins import REGISTRY, find_twin
from hwkernels.twins.buffers import Argument, Input, Output
from pipesim.conform.replay.conformance import conform
from pipesim.conform.result import TraceVerdict
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.consistency import check_trace
from pipesim.trace.schema import EventKind
from tests.support.barrier_words import word_of
from tests.support.format2_streams import recode

INFO = DeviceInfo(0, "NVIDIA H100 of arrays", 132, "9.0", "999.1", 232448, 233472)
#: One in three of each kernel's short configurations: all but the first only at length.
RECORDED = [
    pytest.param(kernel.name, recorded, id=f"{name}-{n}", marks=pytest.mark.long if n else ())
    for name, kernel in REGISTRY.items()
    for n, recorded in enumerate(kernel.recorded)
    if kernel.loop is None
    and n % 3 == 0
    and recorded.grid <= 4
    and recorded.params.get("tiles", 0) * recorded.params.get("k_iters", 1) < 32
]


def as_stored(output: Output) -> np.ndarray:
    """What a right kernel leaves."""
    values = to_bf16(output.expected) if output.unpack is from_bf16 else output.expected.astype(output.dtype)
    return np.ascontiguousarray(values)


class ModelGpu:
    """A launch leaves the right outputs, and the records that a simulation of the protocol makes.

    ``encoder`` and the memory are those of the fixtures: see ``model_gpu``.
    """

    encoder: type
    launches: list[bool]
    memory: dict[int, np.ndarray]
    upload: Callable[..., None]
    request: CaptureRequest
    arguments: tuple[Argument, ...]  # of the kernel
    reaches_marks = True
    marked: ClassVar[list[tuple[bool, list[int]]]] = []  # of each launch, what it found in the marks of its reports

    def launch_within(self, kernel, shape, arguments, limit_s):
        traced = "-DPIPESIM_TRACE=1" in kernel.options
        assert isinstance(shape, Shape)
        assert limit_s > self.request.deadline_ms / 1000
        self.launches.append(traced)
        own = [argument for argument in self.arguments if getattr(argument, "given", True)]
        rest = arguments[len(own) :]
        assert int(rest[0]) == self.request.deadline_ms * 1_000_000
        assert len(rest) == 3 + traced
        for address, argument in zip(arguments, own, strict=False):
            if isinstance(argument, Input) and argument.data.nbytes:
                assert bytes(self.memory[address][: argument.data.nbytes]) == argument.data.tobytes()
            elif isinstance(argument, Output):
                values = as_stored(argument)
                assert (self.memory[address][: values.nbytes] == 0xEE).all()
                self.upload(address, values)
        self._through_maps([argument for argument in self.arguments if not getattr(argument, "given", True)])
        reports = np.zeros(self.request.ctas, dtype=REPORT)
        reports["status"], reports["loop_begin"], reports["loop_end"] = FINISHED, 1000, 3000
        reports["barrier_words"] = self._words()
        before = self.memory[int(rest[1])][: reports.nbytes].view(REPORT)["marks"].copy()
        assert (before == before[0]).all()
        self.marked.append((traced, before[0].tolist()))
        if before.any() and self.reaches_marks:  # wait n of the marked agent returns at 5,000 + 100 n
            reports["marks"] = 5_000 + 100 * ((before & 0xFFFFFFFF) - 1)
        elif before.any():
            reports["marks"] = before
        self.upload(rest[1], reports)
        if traced:
            self._record(int(rest[3]), kernel.options)
        return 12_345

    def _through_maps(self, buffers):
        """Buffers that the kernel knows by a descriptor only: found by their size and what they hold."""
        for buffer in buffers:
            values = buffer.data if isinstance(buffer, Input) else as_stored(buffer)
            before = values.tobytes() if isinstance(buffer, Input) else bytes([0xEE] * values.nbytes)
            found = [
                a
                for a, m in self.memory.items()
                if m.nbytes >= max(values.nbytes, 1) and bytes(m[: len(before)]) == before
            ]
            assert found, buffer.name
            if isinstance(buffer, Output):
                self.upload(found[0], values)

    def _words(self):
        """Of each CTA the words that the model leaves in its barriers, in the order of the table."""
        program = find(self.request.subject.name).build(dict(self.request.params), grid=self.request.ctas)
        state = simulate(program, load_profile("h100")).state
        words = np.zeros((self.request.ctas, 64), dtype=np.uint64)
        for cta in range(self.request.ctas):
            own = [n for n, barrier in enumerate(program.barriers) if barrier.cta == cta % program.ctas]
            words[cta, : len(own)] = [word_of(state.barriers[n]) for n in own]
        return words

    def _record(self, launch_at, options):
        said = self.memory[launch_at].view(LAUNCH)[0]
        kernel, request = find_twin(self.request.subject.name), self.request
        program = find(kernel.name).build(dict(request.params), grid=request.ctas)
        table = kernel.table(request.params)
        kept = self.encoder(table, clock=request.clock, capacity=int(said["capacity"]) - 1, ctas=request.ctas)
        simulated = simulate(program, load_profile("h100")).trace
        numbers = {(s.role, s.kind, s.barrier): n for n, s in enumerate(table.sites)}
        sites = [numbers[s.role, s.kind, s.barrier] for s in simulated.meta.sites]
        e, nbytes = simulated.events, kernel.nbytes(request.params)
        last = int(e.cycle.max(initial=0))
        for cta in range(request.ctas):
            kept.anchor(0, 1_000_000, cta)
            for row in np.flatnonzero(e.cta == cta % program.ctas):
                kind, value, cycle = simulated.meta.sites[e.site[row]].kind, int(e.value[row]), int(e.cycle[row])
                value = nbytes.index(value) if kind in (EventKind.EXPECT, EventKind.COPY) else value
                kept.record(
                    cta, int(e.agent[row]), sites[e.site[row]], kept.cycle(1_000_100) + cycle,
                    iteration=int(e.iteration[row]), stage=int(e.stage[row]), parity=max(0, int(e.parity[row])),
                    value=value, ns=1_000_100 + cycle // 2,
                )  # fmt: skip
            kept.anchor(1, 1_000_200 + last // 2, cta)
        recode(kept, options)
        self.upload(int(said["ctas"]), kept.headers)
        kept.records = np.pad(kept.records, ((0, 0), (0, 0), (1, 0), (0, 0)))  # the first is not used
        self.upload(int(said["records"]), np.ascontiguousarray(kept.records))


def uncompiled(self, request, memory=""):
    assert memory in {"", *MEMORIES}
    options = [f"-DPIPESIM_TRACE={int(bool(memory))}"]
    if memory and memory != "host":
        options.append(f"-DPIPESIM_ENCODING={int(self.encoding(request))}")
    return CompiledKernel(b"", "", "0", tuple(options), "13.0", self.name)


@pytest.fixture
def model_gpu(monkeypatch, array_gpu, encoder):
    monkeypatch.setattr(pipeline, "Gpu", type("ModelArrayGpu", (ModelGpu, array_gpu), {"encoder": encoder}))
    monkeypatch.setattr(pipeline, "require_gpu", lambda: INFO)
    monkeypatch.setattr(TwinSubject, "build", uncompiled)  # test_kernels compiles them
    monkeypatch.setattr("hwkernels.device.launch._WARM_UP_S", 0)
    monkeypatch.setattr("hwkernels.capture.launches.encode", lambda _: np.zeros(128, dtype=np.uint8))  # a driver's
    monkeypatch.setattr(ModelGpu, "marked", [])

    def prepare(name, params, grid=1, **more):
        request = CaptureRequest(TwinSubject(name, grid), find(name).defaults | dict(params), repetitions=2, **more)
        monkeypatch.setattr(ModelGpu, "request", request, raising=False)
        arguments = find_twin(name).arguments(request.params, grid, request.seed)
        monkeypatch.setattr(ModelGpu, "arguments", arguments, raising=False)
        return request

    return prepare


@pytest.mark.sampled(0, 2)
@pytest.mark.parametrize(("name", "recorded"), RECORDED)
def test_what_is_captured_conforms(model_gpu, name, recorded):
    request = model_gpu(name, recorded.params, grid=recorded.grid, clock=recorded.clock)
    program = find(name).build(dict(request.params), grid=request.ctas)
    if simulate(program, load_profile("h100")).deadlock:
        return  # the model hangs here, and so would this GPU: see the next tests
    expected_memory = plan(request).memory
    trace = capture(request)
    check_trace(trace, "here")
    meta = trace.meta
    assert (meta.protocol, meta.params, meta.grid) == (name, dict(request.params), request.ctas)
    assert (meta.status, meta.wrong_tiles, meta.memory, len(meta.runs)) == ("finished", 0, expected_memory, 4)
    assert meta.extra["launch_ns"] == {"untraced": [12_345] * 2, "traced": [12_345] * 2}
    assert len(meta.ctas) == request.ctas
    found = conform(program, trace)
    assert (found.verdict, found.divergence) == (TraceVerdict.AGREES, None)
    assert found.words == len(program.barriers) * recorded.grid
    assert found.events == len(trace.events)


@pytest.mark.slow
def test_an_untraced_launch_is_asked_for_its_period_and_a_traced_one_is_not(model_gpu):
    """Of the last consumer: from its wait 36 to its wait 108, 8 tiles of 9 waits later."""
    meta = capture(model_gpu("persistent_scheduler", {"tiles": 16})).meta
    asked = [3 << 32 | 37, 3 << 32 | 109]
    launches = (True, False, False, True, False, True)
    assert ModelGpu.marked == [(traced, [0, 0] if traced else asked) for traced in launches]
    assert [run.period_millicycles for run in meta.runs] == [(900_000,), (0,)] * 2
    assert meta.extra["overhead_millicycles_per_tile"] == {"median": 0, "low": 0, "high": 0}  # of the loops


@pytest.mark.slow
def test_a_mark_that_was_not_reached_is_no_period(model_gpu, monkeypatch):
    monkeypatch.setattr(ModelGpu, "reaches_marks", False)
    meta = capture(model_gpu("persistent_scheduler", {"tiles": 16})).meta
    assert {run.period_millicycles for run in meta.runs} == {(0,)}


def test_a_launch_through_the_driver_has_the_same_shape():
    driver = pytest.importorskip("cuda.bindings.driver")
    config = launch_config(driver, Shape((8,), (96,), 4096, 4), driver.CUstream(0))
    assert (config.gridDimX, config.gridDimY, config.gridDimZ, config.sharedMemBytes) == (8, 1, 1, 4096)
    assert (config.blockDimX, config.blockDimY, config.numAttrs) == (96, 1, 1)
    assert config.attrs[0].value.clusterDim.x == 4
