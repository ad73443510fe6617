"""``pipesim capture --kernel``: every word of the command line, on a GPU that answers with a simulated trace."""

import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hwkernels.capture
from hwkernels.capture import CaptureRequest, SourceSubject
from hwkernels.capture.arguments import Argument
from hwkernels.device import launch
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.files import read_trace
from pipesim.trace.schema import Trace
from tests.support.fixture_types import Call
from tests.support.paths import EXAMPLES

KERNEL = ("capture", "--kernel", EXAMPLES / "rowsum.cu", "--protocol", f"{EXAMPLES / 'rowsum.py'}:rowsum")
USUAL = "rowsum-mw8-s4-tb16384-t32-w470-g2.parquet"
WORDS = "--grid 2 --block 288 --smem 65664 --arg npy:matrix.npy --arg out:16384:sums --arg i32:64 --bytes tile_bytes"


@pytest.fixture(autouse=True)
def matrix() -> None:
    np.save("matrix.npy", np.zeros((4096, 64), dtype=np.float32))


@pytest.fixture
def recorded() -> Trace:
    """What the GPU answers: the simulated protocol, as if a chip had recorded it."""
    program = find(str(KERNEL[-1])).build(grid=2)
    trace = simulate(program, load_profile("h100")).trace
    extra = {"launch_ns": {"untraced": [20_000, 22_000, 21_000], "traced": [24_500] * 3}, "outputs": {"sums": ["ab12"]}}
    return Trace(replace(trace.meta, source="hardware", memory="device", extra=extra), trace.events)


@pytest.fixture
def gpu(recorded: Trace, monkeypatch: pytest.MonkeyPatch) -> list[CaptureRequest]:
    asked: list[CaptureRequest] = []

    def capture(request: CaptureRequest, builds: dict[str, Any]) -> Trace:
        marked = ["marked"] if request.subject.marks_at else []  # type: ignore[attr-defined]
        assert sorted(builds) == (["traced"] if request.memory == "host" else [*marked, "plain", "traced"])
        asked.append(request)
        return recorded

    monkeypatch.setattr(launch, "require_gpu", lambda ordinal=0: None)
    monkeypatch.setattr(hwkernels.capture, "capture", capture)
    return asked


@pytest.mark.long
def test_the_trace_is_stored_and_held_against_the_protocol(call: Call, gpu: list[Any], recorded: Trace) -> None:
    answer = call(*KERNEL, *WORDS.split())
    assert (answer.code, answer.err) == (0, "")
    assert answer.verdict == f"✓ recorded 1,408 events in {USUAL}; sums is ab12 after each launch"
    text = " ".join(answer.out.split())
    assert "✓ 1,408 events of 1 CTA conform" in text
    assert "a launch takes 21.0 µs, recorded 24.5 µs (CUDA events)" in text
    assert read_trace(USUAL) == recorded
    diff = call("diff", USUAL, "--protocol", KERNEL[-1])
    assert (diff.code, diff.err) == (0, "")


@pytest.mark.slow
def test_the_documented_commands_are_what_they_say(call: Call, gpu: list[Any]) -> None:
    """Those of docs/own-kernel.md: the one that makes the data is run, the other reaches the request."""
    text = (EXAMPLES.parent / "own-kernel.md").read_text(encoding="utf-8")
    (block,) = (b for b in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if "rowsum.cu" in b and "capture" in b)
    make, capture = (shlex.split(command) for command in block.replace("\\\n", " ").split("\n\n"))
    Path("docs").symlink_to(EXAMPLES.parent)
    Path("matrix.npy").unlink()
    subprocess.run([sys.executable, *make[1:]], check=True)
    answer = call(*capture[1:])
    assert (answer.code, answer.err) == (0, "")
    (request,) = gpu
    matrix, sums = np.load("matrix.npy"), np.load("sums.npy")
    assert (matrix.shape, matrix.dtype, sums.tolist()) == ((4096, 64), np.float32, matrix.sum(axis=1).tolist())
    assert (request.ctas, request.subject.block, request.subject.nbytes, request.subject.expected) == (
        2,
        (288,),
        (16384,),
        {"sums": "sums.npy"},
    )


@pytest.mark.slow
def test_every_option_reaches_the_request(call: Call, gpu: list[Any]) -> None:
    words = (
        "--grid 4,2 --block 32,9,1 --cluster 2 --smem 1024 --arg out:4:x --arg out:4 --arg u32:7 "
        "--expect x=x.npy --bytes 16,tile_bytes -D STAGES=2 -D FAST --nvrtc-option=-lineinfo --entry rowSums "
        "--clock both --repetitions 3 --record-ctas 2 --seed 7 --capacity 100 --timeout-s 3 --may-hang "
        "-p tiles=8 -o a.parquet"
    )
    np.save("x.npy", np.zeros(1, dtype=np.float32))
    call(*KERNEL, "--table", EXAMPLES / "rowsum.table.h", *words.split())
    (request,) = gpu
    subject = SourceSubject(
        source=str(EXAMPLES / "rowsum.cu"), table=str(EXAMPLES / "rowsum.table.h"), protocol="rowsum",
        grid=(4, 2), block=(32, 9, 1), entry="rowSums", cluster=2, smem_bytes=1024, expected={"x": "x.npy"},
        arguments=(Argument("out", "4", "x"), Argument("out", "4", "out1"), Argument("u32", "7")),
        defines={"STAGES": "2", "FAST": "1"}, options=("-lineinfo",), nbytes=(16, 16384),
        timeout_s=3,
    )  # fmt: skip
    params = {"stages": 4, "tiles": 8, "tile_bytes": 16384, "math_warps": 8, "work": 470}
    assert request == CaptureRequest(
        subject, params, clock="both", repetitions=3, record_ctas=2, seed=7, capacity=100, memory="host"
    )


@pytest.mark.slow
def test_a_wrong_output_is_a_finding_now_and_in_a_later_diff(
    call: Call, gpu: list[Any], recorded: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = recorded.meta.extra | {"wrong_outputs": {"sums": 3}}
    wrong = Trace(replace(recorded.meta, extra=extra), recorded.events)
    monkeypatch.setattr(hwkernels.capture, "capture", lambda *_, **__: wrong)
    answer = call(*KERNEL, *WORDS.split())
    assert answer.code == 1
    assert answer.verdict == (
        f"✗ recorded 1,408 events in {USUAL}; output sums differs from the expected values (3 elements differ)"
    )
    assert call("diff", USUAL, "--protocol", KERNEL[-1]).code == 1


@pytest.mark.slow
def test_without_a_gpu_it_says_that_the_kernel_compiles(call: Call) -> None:
    answer = call(*KERNEL, *WORDS.split())
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.endswith("  try: the kernel compiles; launch it on a machine with an H100 or H200\n")


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize(
    ("words", "fact"),
    [
        ("--arg i32:64", "the kernel takes 3 arguments, but 1 were given"),
        ("--arg zero:64 --arg zero:64 --arg f64:64", "argument 2 of the kernel has 4 bytes, and f64:64 has 8"),
    ],
)
def test_wrong_arguments_are_found_without_a_gpu(call: Call, words: str, fact: str) -> None:
    """The cubin says what its kernel takes."""
    answer = call(*KERNEL, *f"--grid 2 --block 288 --smem 65664 --bytes tile_bytes {words}".split())
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"pipesim: {fact}\n")


def test_nothing_is_overwritten(call: Call, gpu: list[Any]) -> None:
    Path(USUAL).write_text("precious", encoding="utf-8")
    answer = call(*KERNEL, *WORDS.split())
    assert answer.code == 2
    assert gpu == []
