"""A kernel that is not ours, from request to trace, on a GPU of arrays that does what the protocol says."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hwkernels.capture import CaptureRequest, SourceSubject, capture, compile_builds, pipeline
from hwkernels.capture.arguments import parse_argument
from hwkernels.capture.pipeline import capture_here
from hwkernels.capture.request import check_request
from hwkernels.capture.subprocess_capture import dump, load
from hwkernels.device.launch import DeviceInfo
from hwkernels.source_recorder.layout import LAUNCH
from hwkernels.source_recorder.table import Table, read_table
from pipesim.conform.replay.conformance import conform
from pipesim.conform.result import DivergenceKind, TraceVerdict
from pipesim.conform.timing import median_period
from pipesim.errors import (
    KernelHangError,
    KernelTrapError,
    ParameterError,
    PipesimError,
    UsageError,
)
from pipesim.model.barrier import BarrierWord
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.consistency import check_trace
from pipesim.trace.schema import EventKind, Trace
from tests.support.barrier_words import encode_word
from tests.support.paths import EXAMPLES

ROWSUM = str(EXAMPLES / "rowsum.cu")
PARAMS = {"stages": 2, "tiles": 5, "tile_bytes": 16384, "math_warps": 4, "work": 250}
INFO = DeviceInfo(0, "Array GPU", 132, "9.0", "999.1", 232448, 233472)
TILE = 64 * 64


def program():
    return find(f"{EXAMPLES / 'rowsum.py'}:rowsum").build(PARAMS, grid=2)


@pytest.fixture
def matrix(tmp_path) -> Path:
    """Ten tiles of small whole numbers, so that sums do not depend on their order; and their row sums."""
    values = np.random.default_rng(1).integers(0, 16, size=(10 * 64, 64)).astype(np.float32)
    path: Path = tmp_path / "matrix.npy"
    np.save(path, values)
    np.save(tmp_path / "sums.npy", values.sum(axis=1))
    return path


@pytest.fixture
def request_(matrix) -> CaptureRequest:
    arguments = [f"npy:{matrix}", "out:2560:sums", "i32:10"]
    subject = SourceSubject(
        source=ROWSUM,
        table=str(EXAMPLES / "rowsum.table.h"),
        protocol="rowsum",
        grid=(2,),
        block=(160,),
        arguments=tuple(parse_argument(text, n) for n, text in enumerate(arguments)),
        smem_bytes=2 * 4 * TILE + 32,
        expected={"sums": str(matrix.with_name("sums.npy"))},
        nbytes=(16384,),
    )
    return CaptureRequest(subject, PARAMS, repetitions=2)


def changed(request: CaptureRequest, **changes) -> CaptureRequest:
    """The request with values of its own or of its subject replaced."""
    own = {name: changes.pop(name) for name in ("params", "capacity", "memory", "repetitions") if name in changes}
    assert isinstance(request.subject, SourceSubject)
    return replace(request, subject=replace(request.subject, **changes), **own)


def table_of_example() -> Table:
    return read_table(EXAMPLES / "rowsum.table.h", {"STAGES": 2, "MATH_WARPS": 4})


def _play(kept, cta: int, simulated: Trace, most: int) -> None:
    """Record what every agent of a simulation did, its first ``most`` events."""
    numbers = {(s.role, s.kind, s.barrier): n for n, s in enumerate(kept.table.sites)}
    events, sites = simulated.events, simulated.meta.sites
    kept.anchor(0, 1_000_000 + 64 * cta, cta)
    count = [0] * len(kept.table.agents)
    for row in range(len(events)):
        agent, site = int(events.agent[row]), sites[int(events.site[row])]
        count[agent] += 1
        if count[agent] <= most:
            kept.record(
                cta, agent, numbers[site.role, site.kind, site.barrier],
                kept.cycle(1_000_200 + 64 * cta) + int(events.cycle[row]),
                iteration=int(events.iteration[row]), stage=int(events.stage[row]),
                parity=max(int(events.parity[row]), 0), value=int(site.kind is EventKind.ARRIVE),
            )  # fmt: skip


def _left(gpu, launch_at, state, kept, *, marked) -> None:
    """What a launch leaves besides records."""
    for address in launch_at:
        said = gpu.memory[address].view(LAUNCH)[0]
        if marked:
            _mark(gpu, said, kept)
        else:
            _leave_words(gpu, said, state)


def _leave_words(gpu, said, state) -> None:
    """As many words as the GPU is told to leave, of the barriers of this state."""
    words = gpu.memory[int(said["words"])].view(np.uint64).reshape(2, 64)
    assert (words == 0xFFFFFFFFFFFFFFFF).all()
    left = [BarrierWord(b.expected, b.pending, b.tx, b.done & 1) for b in state.barriers]
    words[:, : gpu.words] = [encode_word(word) for word in left[: gpu.words]]


def _mark(gpu, said, kept) -> None:
    """The clocks of a marked launch."""
    assert said["mark"].tolist() == [1, 3]
    kept.headers["anchors"]["clock_before"] = kept.headers["anchors"]["clock_after"] = [1000, 9000]
    gpu.upload(int(said["ctas"]), kept.headers)
    marks = np.zeros((2, 5, 2), dtype=np.uint64)
    marks[0, :4] = [2000, 2500]
    marks[0, 4] = [2000, 2901]  # the last that came to both
    marks[1, 2] = [2000, 0]  # no agent came to both
    gpu.upload(int(said["marks"]), marks)


@pytest.fixture
def gpu(fake_gpu, encoder, monkeypatch):
    """A GPU whose launch adds the rows and records what the simulated protocol did."""
    final = simulate(program(), load_profile("h100"))
    simulated = final.trace

    class Gpu(fake_gpu):  # type: ignore[misc, valid-type]  # a fixture's class
        mistake = ""  # "hang" or "trap": agents stop after 12 records; "wrong": the first sum is off
        sizes = (8, 8, 4)
        words = 0  # barriers of which a CTA leaves the words: those of a finished run, all but the last few if fewer
        latest: "Gpu"

        def __init__(self, info):
            super().__init__(info)
            Gpu.latest = self

        def load(self, compiled, smem_bytes):
            return compiled

        def parameter_sizes(self, kernel):
            recording = {"-DPIPESIM_TRACE=1", "-DPIPESIM_MARKS=1"} & set(kernel.options)
            return self.sizes + (8,) * bool(recording)

        def launch(self, kernel, shape, arguments):  # of the kernel that tells the clock's rate
            said = self.memory[int(arguments[1])].view(LAUNCH)[0]
            kept = encoder(table_of_example())
            kept.anchor(0, 1_000_000)
            kept.anchor(1, 1_200_000)
            self.upload(int(said["ctas"]), kept.headers)

        def launch_within(self, kernel, shape, arguments, limit_s):
            matrix, sums, tiles, *launch_at = (int(a) for a in arguments)
            traced, marked = "-DPIPESIM_TRACE=1" in kernel.options, "-DPIPESIM_MARKS=1" in kernel.options
            shaped = (shape.grid, shape.block, shape.cluster, tiles, len(launch_at))
            assert shaped == ((2,), (160,), 1, 10, traced or marked)
            self.launches.append("marked" if marked else traced)
            rows = self.memory[matrix].view(np.float32).reshape(-1, 64).sum(axis=1)
            rows[0] += self.mistake == "wrong"
            self.upload(sums, rows)
            if self.mistake in {"hang", "trap"} and not traced:
                raise KernelHangError("it hangs")
            if traced:
                self.record(self.memory[launch_at[0]].view(LAUNCH)[0])
            _left(self, launch_at, final.state, encoder(table_of_example(), ctas=2), marked=marked)
            if self.mistake in {"hang", "trap"}:
                raise {"hang": KernelHangError, "trap": KernelTrapError}[self.mistake]("it did not end")
            return 9000 if traced else 8000

        def record(self, said):
            kept = encoder(table_of_example(), capacity=int(said["capacity"]) - 1, ctas=2)
            unfinished = self.mistake in {"hang", "trap"}
            for cta in range(2):
                _play(kept, cta, simulated, 12 if unfinished else 1 << 20)
                if not unfinished:
                    kept.anchor(1, 1_100_000, cta)
            if unfinished:
                for cta, agent in np.ndindex(2, 5):
                    kept.records[cta, agent, int(kept.headers[cta]["counts"][agent][0]) :] = 0xFFFFFFFF
                kept.headers["counts"] = 0
            self.upload(int(said["ctas"]), kept.headers)
            self.upload(int(said["records"]), np.pad(kept.records, ((0, 0), (0, 0), (1, 0), (0, 0))))

    monkeypatch.setattr(pipeline, "Gpu", Gpu)
    monkeypatch.setattr(pipeline, "_HELD", [])
    monkeypatch.setattr(pipeline, "require_gpu", lambda: INFO)
    return Gpu


@pytest.fixture
def builds(request_):
    return compile_builds(request_)


@pytest.mark.slow
def test_a_capture(gpu, request_, builds):
    check_request(request_)
    trace = capture_here(replace(request_, capacity=64), INFO, builds)
    check_trace(trace, "here")
    meta = trace.meta
    assert (meta.protocol, meta.params, meta.grid, meta.status) == ("rowsum", PARAMS, 2, "finished")
    assert (meta.memory, meta.kernel_hash, meta.device.sm_khz) == ("device", builds["traced"].kernel_hash, 2_000_000)
    assert {"-DSTAGES=2", "-DMATH_WARPS=4", "-DPIPESIM_TRACE=1"} <= set(meta.options)
    assert [(c.cta, c.written, c.dropped) for c in meta.ctas] == [(n, (25,) * 4 + (20,), (0,) * 5) for n in range(2)]
    assert [(run.traced, run.repetition, len(run.cycles)) for run in meta.runs] == [(True, 0, 2), (True, 1, 2)]
    assert meta.extra["launch_ns"] == {"untraced": [8000, 8000], "traced": [9000, 9000]}
    assert [len(hashes) for hashes in meta.extra["outputs"].values()] == [1]
    assert meta.extra["wrong_outputs"] == {}
    assert meta.extra["launch"]["arguments"][1:] == ["out:2560:sums", "i32:10"]
    assert gpu.latest.launches == [True, False, False, True, False, True]  # the first two warm up
    assert gpu.latest.closed
    found = conform(program(), trace)
    assert (found.verdict, found.events) == (TraceVerdict.AGREES, 240)


@pytest.mark.slow
def test_a_period_without_the_recorder(gpu, request_):
    marking = replace(changed(request_, marks_at=(1, 3)), capacity=64)
    check_request(marking)
    builds = compile_builds(marking)
    assert sorted(builds) == ["marked", "plain", "traced"]
    meta = capture_here(marking, INFO, builds).meta
    runs = [(run.traced, run.repetition, run.cycles, run.period_millicycles) for run in meta.runs]
    marked = [run for run in runs if not run[0]]
    assert marked == [(False, n, (8000, 8000), (450_500, 0)) for n in range(2)]
    assert gpu.latest.launches == [True, False, False, "marked", True, False, "marked", True]
    assert meta.extra["launch_ns"]["untraced"] == [8000, 8000]  # of the launches that do not even mark
    assert meta.extra["wrong_outputs"] == {}
    assert median_period(meta.runs, traced=False) == 450_500


@pytest.mark.sampled(1, 1)
@pytest.mark.parametrize(("left", "read"), [(0, 0), (3, 0), (4, 4)])
def test_the_words_of_the_barriers_are_read_if_all_were_left(gpu, request_, builds, monkeypatch, left, read):
    monkeypatch.setattr(gpu, "words", left)
    trace = capture_here(replace(request_, capacity=64), INFO, builds)
    check_trace(trace, "here")
    assert [len(cta.barrier_words) for cta in trace.meta.ctas] == [read, read]
    found = conform(program(), trace)
    assert (found.verdict, found.words) == (TraceVerdict.AGREES, 2 * read)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("mistake", "status"), [("hang", "deadline"), ("trap", "trap")])
def test_what_a_kernel_recorded_before_it_hung_or_trapped(gpu, request_, monkeypatch, mistake, status):
    monkeypatch.setattr(gpu, "mistake", mistake)
    small = replace(request_, capacity=64, memory="host")
    eager = compile_builds(small)
    assert list(eager) == ["traced"]
    assert "-DPIPESIM_EAGER=1" in eager["traced"].options
    trace = capture_here(small, INFO, eager)
    check_trace(trace, "here")
    meta = trace.meta
    assert (meta.status, meta.memory, meta.runs, meta.device.sm_khz) == (status, "host", (), 2_000_000)
    assert meta.extra["gave_up"] == {"traced": True, "timeout_s": 10, "trap": mistake == "trap"}
    assert [(c.written, len(c.anchors)) for c in meta.ctas] == [((12,) * 5, 1)] * 2
    assert gpu.latest.launches == [True]
    assert gpu.latest.closed == (mistake == "trap")  # a running kernel cannot be waited for
    held = [] if mistake == "trap" else [gpu.latest]
    assert held == pipeline._HELD
    found = conform(program(), trace)
    assert found.divergence is not None
    assert found.divergence.kind is DivergenceKind.NOT_FINISHED


@pytest.mark.slow
def test_a_request_survives_the_way_to_another_process(request_, builds):
    assert load(dump(request_, builds)) == (request_, builds)


@pytest.mark.slow
def test_a_hang_is_repeated_so_that_its_records_survive(gpu, request_, builds, monkeypatch):
    """Two processes, here two calls: the first hangs, the second records in the host's memory."""
    asked = []

    def run_in_subprocess(document, what, limit_s):
        request, carried = load(document)
        asked.append((what, limit_s, request.memory, sorted(carried or {})))
        return capture_here(request, INFO, carried)

    monkeypatch.setattr(pipeline, "run_in_subprocess", run_in_subprocess)
    monkeypatch.setattr(gpu, "mistake", "hang")
    small = replace(request_, capacity=64)
    assert capture(small, builds).meta.status == "deadline"
    once: tuple[object, ...] = ("rowsum.cu", 10, "host", [])
    assert asked == [("rowsum.cu", 80, "", ["plain", "traced"]), once]
    assert capture(replace(small, memory="host")).meta.status == "deadline"
    assert asked[2:] == [once]


@pytest.mark.parametrize(
    ("changes", "kind", "fact"),
    [
        ({"source": "nowhere.cu"}, UsageError, "there is no kernel nowhere.cu"),
        ({"table": "nowhere.table.h"}, UsageError, "there is no table nowhere.table.h"),
        ({"params": {}}, UsageError, "the table has 9 warps, a block of 160 threads has 5"),  # the kernel's own numbers
        ({"defines": {"STAGES": "two"}}, UsageError, "STAGES=two is not a whole number"),
        ({"block": (128,)}, UsageError, "the table has 5 warps, a block of 128 threads has 4"),
        ({"params": PARAMS | {"math_warps": 32}}, UsageError, "the table has 33 warps"),
        ({"block": (33, 32)}, ParameterError, "--block, all threads: 1,056 is out of range"),
        ({"grid": (0,)}, ParameterError, "a number of --grid 0: 0 is out of range"),
        ({"cluster": 17}, ParameterError, "--cluster: 17 is out of range"),
        ({"cluster": 4}, ParameterError, "--cluster 4 does not divide the 2 CTAs of --grid"),
        ({"smem_bytes": 1 << 20}, ParameterError, "--smem: 1,048,576 is out of range"),
        ({"timeout_s": 0}, ParameterError, "--timeout-s: 0 is out of range"),
        ({"nbytes": ()}, UsageError, "the records of loader_expects do not give the number of bytes that it moves"),
        ({"expected": {"other": "x.npy"}}, ParameterError, "--expect other=x.npy does not name an output"),
    ],
)
def test_requests_that_cannot_be_carried_out(request_, changes, kind, fact):
    check_request(request_)  # the twin
    with pytest.raises(kind) as caught:
        check_request(changed(request_, **changes))
    assert caught.value.fact == fact


def test_an_expectation_of_another_size(request_, matrix):
    with pytest.raises(PipesimError, match=r"matrix\.npy has 163,840 bytes, the output sums has 2,560"):
        check_request(changed(request_, expected={"sums": str(matrix)}))


def test_two_outputs_of_one_name(request_):
    twice = tuple(parse_argument("out:2560:sums", n) for n in range(2))
    with pytest.raises(ParameterError, match="two outputs have the same name"):
        check_request(changed(request_, arguments=twice))


@pytest.mark.slow
def test_a_value_of_the_table_is_given_once_for_kernel_table_and_protocol(request_):
    """-D beats the protocol's parameter; whichever it is, all builds are compiled with it."""
    given = changed(request_, defines={"STAGES": "3"})
    assert isinstance(given.subject, SourceSubject)
    assert [group.stages for group in given.subject.table_of(given.params).barriers] == [3, 3]
    assert "-DSTAGES=3" in compile_builds(given)["plain"].options
