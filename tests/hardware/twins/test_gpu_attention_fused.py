"""On a Hopper GPU: attention with K and V in one ring at sizes that are not stored, and wrong twins of the kernel."""

from dataclasses import dataclass, fields, replace
from pathlib import Path

import pytest

from hwkernels.capture import CaptureRequest, TwinSubject, capture
from hwkernels.capture.pipeline import capture_here
from hwkernels.capture.plan import plan
from hwkernels.capture.request import check_request
from hwkernels.capture.twin_subject import recorded_request
from hwkernels.device.launch import require_gpu
from hwkernels.device.sources import headers, source_file
from hwkernels.twins import REGISTRY, registered
from hwkernels.twins.twin import Twin
from pipesim.conform.replay.conformance import conform
from pipesim.conform.result import TraceVerdict
from pipesim.errors import HardwareError, MissingExtraError
from pipesim.protocols.limits import MAX_SMEM
from pipesim.targets import find
from pipesim.trace.consistency import check_trace
from tests.support.lanes import long_but, slow_but

NAME = "attention_sm90_fused"
SMALL = {"depth": 64, "block_n": 64}
#: Parameters, grid and clock.
ODD = (
    ({"kv_blocks": 1, "stages": 2}, 3, "clock"),
    ({"kv_blocks": 23, "stages": 2, "pingpong": 0}, 1, "clock"),
    ({"kv_blocks": 2, "stages": 4, "num_consumer": 1}, 1, "both"),
    ({"kv_blocks": 9, "stages": 3, "num_consumer": 1, **SMALL}, 5, "clock"),
    ({"kv_blocks": 13, "stages": 6, "depth": 64}, 1, "globaltimer"),
    ({"kv_blocks": 37, "stages": 5, "block_n": 64}, 2, "clock"),
    ({"kv_blocks": 101, "stages": 27, "num_consumer": 1, **SMALL}, 1, "clock"),
    ({"kv_blocks": 31, "stages": 13, "depth": 64}, 1, "clock"),
    ({"kv_blocks": 5, "stages": 3}, 131, "clock"),
)


@pytest.fixture
def info():
    try:
        return require_gpu()
    except (HardwareError, MissingExtraError) as error:
        pytest.skip(str(error).replace("\n", "; "))


def request(changes, grid=1, clock="clock"):
    params = find(NAME).defaults | changes
    return CaptureRequest(TwinSubject(NAME, grid), params, clock, repetitions=1, deadline_ms=50)


@pytest.mark.gpu
@pytest.mark.parametrize(("changes", "grid", "clock"), ODD)
def test_its_result_is_right_and_its_recording_conforms(info, changes, grid, clock):
    wanted = request(changes, grid, clock)
    trace = capture(wanted)
    check_trace(trace, "here")
    assert (trace.meta.status, trace.meta.wrong_tiles) == ("finished", 0), trace.meta.extra
    program = find(NAME).build(dict(wanted.params), grid=wanted.ctas)
    assert conform(program, trace).verdict is TraceVerdict.AGREES


@dataclass(frozen=True)
class Elsewhere(Twin):
    """The kernel in a folder of its own."""

    folder: Path = Path()

    @property
    def source(self) -> Path:
        return self.folder / f"{NAME}.cu"


def wrong_twin(folder, before, after):
    """The kernel with one text replaced by another, ready to be run as one of the registry."""
    for path in headers():
        (folder / path.name).write_bytes(path.read_bytes())
    text = source_file(f"{NAME}.cu").read_text()
    assert text.count(before) == 1
    (folder / f"{NAME}.cu").write_text(text.replace(before, after))
    twin = registered(NAME)
    return Elsewhere(**{f.name: getattr(twin, f.name) for f in fields(Twin)}, folder=folder)


#: Text of the source, what stands there in the twin, and how the launch ends: right, with wrong tiles, or not at all.
WRONG = {
    "begins at parity 0": ("RingState<STAGES> ring = {0, 1};", "RingState<STAGES> ring = {0, 0};", "deadline"),
    "V is kept": ("        give_tile_back(my, held, 2 * n PIPESIM_PASS);\n", "", "deadline"),
    "V under the number of K": ("give_tile_back(my, held, 2 * n", "give_tile_back(my, keys, 2 * n", "deadline"),
    "V of another slot": ("at.slot(held));", "at.slot((held + 1) % STAGES));", "wrong"),
    "V loaded as K": ("ring, 2 * n + 1, v, row", "ring, 2 * n + 1, k, row", "wrong"),
    "the next block's V": ("ring, 2 * n + 1, v, row", "ring, 2 * n + 1, v, row + BLOCK_N", "wrong"),
    "recorded with the stage of V": ("factor, n, keys PIPESIM_PASS", "factor, n, held PIPESIM_PASS", "right"),
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_twin_is_seen(info, tmp_path, monkeypatch, name):
    before, after, end = WRONG[name]
    wanted = replace(
        request({"kv_blocks": 9, "stages": 3}), encoding="tagged"
    )  # the others say that it is not the kernel
    monkeypatch.setitem(REGISTRY, NAME, wrong_twin(tmp_path, before, after))
    monkeypatch.setattr("hwkernels.device.launch._WARM_UP_S", 0)
    trace = capture_here(wanted, info)
    program = find(NAME).build(dict(wanted.params), grid=wanted.ctas)
    assert trace.meta.status == ("deadline" if end == "deadline" else "finished")
    if end != "deadline":
        assert (trace.meta.wrong_tiles > 0) == (end == "wrong"), trace.meta.extra
    found = conform(program, trace)
    assert found.verdict is (TraceVerdict.AGREES if end == "wrong" else TraceVerdict.DIFFERS)  # barriers carry no data


def test_the_odd_sizes_can_be_recorded():
    stored = [repr(recorded_request(NAME, recorded).params) for recorded in registered(NAME).recorded]
    for changes, grid, clock in ODD:
        wanted = request(changes, grid, clock)
        check_request(wanted)
        assert plan(wanted, MAX_SMEM).shape.grid == (grid,)
        assert repr(wanted.params) not in stored


#: One for each way in which a launch ends.
SAMPLED = ("V is kept", "V loaded as K", "recorded with the stage of V")


@pytest.mark.parametrize("name", long_but(SAMPLED, slow_but([], WRONG)))
def test_the_wrong_twins_compile_to_other_machine_code(name, tmp_path, monkeypatch):
    wanted = replace(request({"kv_blocks": 9, "stages": 3}), encoding="tagged")  # a record that says its stage
    right = wanted.subject.build(wanted, "shared")
    before, after, _ = WRONG[name]
    monkeypatch.setitem(REGISTRY, NAME, wrong_twin(tmp_path, before, after))
    assert wanted.subject.build(wanted, "shared").cubin != right.cubin
