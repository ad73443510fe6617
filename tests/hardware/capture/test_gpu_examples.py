"""On a Hopper GPU: the examples in other styles, right and wrong; each wrong one is named by its mistake."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hwkernels import capture as captures
from hwkernels.capture import CaptureRequest, SourceSubject
from hwkernels.capture.arguments import parse_argument
from pipesim.conform.diagnose.diagnose import examine
from pipesim.conform.replay.conformance import conform
from pipesim.conform.result import Conformance, TraceVerdict
from pipesim.conform.timing import median_period
from pipesim.model.ending import Ending
from pipesim.model.program import Program
from pipesim.model.steady import marked_iterations
from pipesim.targets import find
from pipesim.trace.consistency import check_trace
from pipesim.trace.schema import Trace
from tests.support.paths import EXAMPLES, EXCHANGE

pytestmark = pytest.mark.gpu
TILES = 37


def captured(name: str, params: dict[str, int], words: list[str], expected: dict[str, str], **own: Any) -> Any:
    """The program, the trace and its conformance; ``wrong``: the kernel's WRONG."""
    wrong = own.pop("wrong", 0)
    folder = EXCHANGE if name == "exchange" else EXAMPLES
    program = find(f"{folder / name}.py:{name}").build(params, grid=2)
    subject = SourceSubject(
        str(folder / f"{name}.cu"), str(folder / f"{name}.table.h"), name,
        arguments=tuple(parse_argument(text, n) for n, text in enumerate(words)), expected=expected, timeout_s=2,
        defines={"WRONG": str(wrong)} if wrong else {}, marks_at=marked_iterations(program) or (), **own,
    )  # fmt: skip
    request = CaptureRequest(subject, dict(program.params), repetitions=3, memory="host" if wrong else "")
    trace = captures.capture(request)
    check_trace(trace, "here")
    return program, trace, conform(program, trace)


def relay(folder: Path, wrong: int = 0, **params: int) -> tuple[Program, Trace, Conformance]:
    matrix = np.random.default_rng(0).integers(0, 100, (2 * TILES * 128, 16)).astype(np.float32)
    np.save(folder / "matrix.npy", matrix)
    np.save(folder / "doubled.npy", 2 * matrix)
    words = [f"npy:{folder / 'matrix.npy'}", f"out:{matrix.nbytes}:doubled", f"u32:{TILES}"]
    smem = 8192 * (params.get("stages", 3) + 2) + 256
    found: tuple[Program, Trace, Conformance] = captured(
        "relay", {"tiles": TILES} | params, words, {"doubled": str(folder / "doubled.npy")},
        grid=(2,), block=(288,), smem_bytes=smem, wrong=wrong,
    )  # fmt: skip
    return found


def exchange(folder: Path, **params: int) -> tuple[Program, Trace, Conformance]:
    matrix = np.random.default_rng(0).integers(0, 100, (2 * TILES * 64, 32)).astype(np.float32)
    sums = matrix.reshape(2, TILES, 4, 16, 32).sum(axis=3)
    np.save(folder / "matrix.npy", matrix)
    np.save(folder / "sums.npy", np.stack([sums, 2 * sums], axis=1))
    words = [f"map:{folder / 'matrix.npy'},box=32x32,swizzle=128", f"out:{4 * TILES * 512}:sums", f"u32:{TILES}"]
    found: tuple[Program, Trace, Conformance] = captured(
        "exchange", {"tiles": TILES} | params, words, {"sums": str(folder / "sums.npy")},
        grid=(4,), block=(160,), smem_bytes=8192 * params.get("stages", 3) + 1024, cluster=2, nbytes=(8192, 4096),
    )  # fmt: skip
    return found


@pytest.mark.parametrize("params", [{}, {"stages": 5}, {"noinc": 0}], ids=str)
def test_the_relay_conforms(tmp_path: Path, params: dict[str, int]) -> None:
    _, trace, found = relay(tmp_path, **params)
    assert (trace.meta.status, trace.meta.extra["wrong_outputs"]) == (Ending.FINISHED, {})
    assert found.divergence is None
    assert found.verdict is TraceVerdict.AGREES
    assert found.words == 2 * (2 * params.get("stages", 3) + 2)
    assert median_period(trace.meta.runs, traced=False)


@pytest.mark.parametrize("params", [{}, {"stages": 2}], ids=str)
def test_the_exchange_conforms(tmp_path: Path, params: dict[str, int]) -> None:
    _, trace, found = exchange(tmp_path, **params)
    assert (trace.meta.status, trace.meta.extra["wrong_outputs"]) == (Ending.FINISHED, {})
    assert found.divergence is None
    assert found.verdict is TraceVerdict.AGREES
    assert trace.meta.extra["launch"]["cluster"] == 2
    assert median_period(trace.meta.runs, traced=False)


#: What the kernel's WRONG does wrong, .noinc of the right one, how it ends, and what is said.
WRONG = {
    1: (1, Ending.DEADLINE, "load's cp.async arrive on in_full without .noinc"),
    2: (0, Ending.DEADLINE, "load's cp.async arrive on in_full with .noinc, which is not meant there"),
    3: (1, Ending.DEADLINE, "store does not arrive at named barriers 2 and 3"),
    4: (1, Ending.TRAP, "math syncs on named barriers 2 and 3 with 32, 64, 96, 128,"),
    5: (1, Ending.DEADLINE, "store arrives at named barriers "),
    6: (1, Ending.DEADLINE, "store syncs on named barriers 2 and 3 where it should only arrive"),
    7: (1, Ending.TRAP, "store arrives at named barriers 2 and 3 with "),
    8: (1, Ending.DEADLINE, "math syncs on named barrier 1 with 160,"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_relay_is_named(tmp_path: Path, wrong: int) -> None:
    noinc, ending, claim = WRONG[wrong]
    program, trace, found = relay(tmp_path, wrong=wrong, noinc=noinc)
    assert trace.meta.status is ending
    seen = examine(program, trace, found)
    assert seen is not None
    assert seen.diagnosis is not None
    claims = [explanation.claim for explanation in seen.diagnosis.explanations]
    print(claims)
    assert [said for said in claims if said.startswith(claim)]
    assert seen.autopsy is not None
    assert seen.autopsy.contradiction == ""
