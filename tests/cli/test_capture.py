"""``pipesim capture``: with a GPU that gives back a recording, and without one."""

import importlib
import sys
from pathlib import Path

import pytest

from hwkernels.capture import CaptureRequest, TwinSubject
from hwkernels.device import launch
from hwkernels.twins.fault import KernelFault
from pipesim.trace.files import read_trace
from pipesim.trace.schema import Trace
from tests.support.fixture_types import Call

PC = "producer_consumer"
REQUIRE_GPU = launch.require_gpu  # the real one, which the other tests replace
USUAL = "producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet"


@pytest.mark.slow
def test_the_trace_is_stored_and_held_against_the_protocol(call: Call, gpu: list[CaptureRequest], good: Trace) -> None:
    answer = call("capture", PC)
    assert (answer.code, answer.err) == (0, "")
    assert "✓ 896 events of 1 CTA conform" in answer.out
    assert answer.verdict == f"✓ recorded 896 events in {USUAL}"
    assert read_trace(USUAL) == good
    assert call("diff", USUAL).code == 0


def test_every_option_reaches_the_request(call: Call, gpu: list[CaptureRequest]) -> None:
    words = "--clock both --repetitions 3 --record-ctas 2 --deadline-ms 100 --seed 7 --ctas 4 -p tiles=8 -o a.parquet"
    call("capture", PC, *words.split())
    params = {"stages": 4, "tiles": 8, "tile_bytes": 16384, "consumer_warps": 2, "work": 600, "arrive_lanes": 1}
    assert gpu == [CaptureRequest(TwinSubject(PC, 4), params, "both", 3, 2, 100, 7)]


@pytest.mark.slow
def test_a_window_another_memory_and_a_fault_reach_the_request(call: Call, gpu: list[CaptureRequest]) -> None:
    call("capture", PC, "--window", "10..42", "--memory", "device", "-o", "a.parquet")
    call("capture", PC, "--fault", "no_acquire@9", "-o", "b.parquet")
    asked = [(request.window, request.memory, request.fault) for request in gpu]
    assert asked == [((10, 42), "device", None), ((), "", KernelFault("no_acquire", 9))]


@pytest.mark.parametrize(("words", "end"), [("", ""), ("--memory device", "-device"), ("--memory shared", "")])
def test_a_memory_reaches_the_request_of_every_kernel(
    call: Call, gpu: list[CaptureRequest], words: str, end: str
) -> None:
    """Left alone, records lie in shared memory where the kernel leaves room, as the file's name says beforehand."""
    call("capture", "persistent_scheduler", *words.split())
    assert [request.memory for request in gpu] == [words.partition(" ")[2]]
    assert Path(f"persistent_scheduler-a700-cs2-cw2-ki8-s4-tb16384-t6-w600-g1{end}.parquet").exists()


@pytest.mark.slow
def test_files_are_named_after_what_is_special_in_them(call: Call, gpu: list[CaptureRequest]) -> None:
    for words, end in (
        ("--fault no_acquire@9", "no_acquire-at-9"),
        ("--window 3..9", "window3..9"),
        ("--memory device", "device"),
    ):
        call("capture", PC, *words.split())
        assert Path(USUAL.replace("-g1", f"-g1-{end}")).exists()


@pytest.mark.slow
def test_an_encoding_that_cannot_be_had_is_a_usage_error(call: Call, gpu: list[CaptureRequest]) -> None:
    answer = call("capture", PC, "--encoding", "positional", "--window", "3..9")
    assert answer.code == 2
    assert answer.err.startswith(f"pipesim: {PC} cannot be recorded with the positional encoding here\n")
    assert answer.err.endswith("  try: use --encoding tagged\n")
    assert gpu == []
    answer = call("capture", "gemm_sm90", "-p", "lookahead=1", "--encoding", "positional")
    assert answer.err.endswith("  try: use --encoding full or --encoding tagged\n")
    assert call("capture", PC, "--encoding", "full").code == 0
    assert gpu[0].encoding == "full"


class TestWithoutTheExtra:
    """The CUDA packages are not installed: capture says which extra brings them, verify does without them."""

    @pytest.fixture(autouse=True)
    def hidden(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(launch, "require_gpu", REQUIRE_GPU)
        loaded = [name for name in sys.modules if name.partition(".")[0] == "cuda"]
        for name in {*loaded, "cuda", "cuda.bindings", "cuda.core"}:
            monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError):
            importlib.import_module("cuda.bindings.driver")

    def test_capture(self, call: Call) -> None:
        answer = call("capture", PC)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.startswith("pipesim: the CUDA packages are not installed\n  probable cause: ")
        assert answer.err.endswith("\n  try: pip install 'pipesim[gpu]'\n")

    @pytest.mark.slow
    def test_verify(self, call: Call) -> None:
        assert call("verify", PC).code == 0
