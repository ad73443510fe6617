"""On a Hopper GPU: the example of docs/own-kernel.md, right and wrong, recorded as somebody else's kernel."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hwkernels import capture as captures
from hwkernels.capture import CaptureRequest, SourceSubject
from hwkernels.capture.arguments import parse_argument
from pipesim.conform.replay.conformance import conform
from pipesim.conform.result import DivergenceKind, TraceVerdict
from pipesim.errors import ParameterError
from pipesim.targets import find
from pipesim.trace.consistency import check_trace
from pipesim.trace.schema import Trace
from tests.support.paths import EXAMPLES

pytestmark = pytest.mark.gpu
PROGRAM = find(f"{EXAMPLES / 'rowsum.py'}:rowsum").build({}, grid=2)


@pytest.fixture
def captured(tmp_path):
    """The trace of the example with one text of its source replaced."""

    def capture(old: str = "", new: str = "", *, last: str = "i32:64", **changes) -> Trace:
        source = (EXAMPLES / "rowsum.cu").read_text()
        assert old in source
        (tmp_path / "rowsum.cu").write_text(source.replace(old, new) if old else source)
        (tmp_path / "rowsum.table.h").write_text((EXAMPLES / "rowsum.table.h").read_text())
        request = _request(tmp_path, last, **changes)
        trace = captures.capture(request)
        check_trace(trace, "here")
        print(f"{trace.meta.status}: {len(trace.events)} events, {trace.meta.extra}")
        return trace

    return capture


def _request(folder: Path, last: str, *, clock: str = "clock", **changes) -> CaptureRequest:
    matrix = np.random.default_rng(0).integers(0, 16, (4096, 64)).astype(np.float32)
    np.save(folder / "matrix.npy", matrix)
    np.save(folder / "sums.npy", matrix.sum(axis=1))
    words = (f"npy:{folder / 'matrix.npy'}", "out:16384:sums", last)
    usual: dict[str, Any] = {
        "source": str(folder / "rowsum.cu"), "table": str(folder / "rowsum.table.h"), "protocol": "rowsum",
        "grid": (2,), "block": (288,), "smem_bytes": 65664, "nbytes": (16384,),
        "arguments": tuple(parse_argument(text, n) for n, text in enumerate(words)),
        "expected": {"sums": str(folder / "sums.npy")}, "timeout_s": 3,
    }  # fmt: skip
    return CaptureRequest(SourceSubject(**(usual | changes)), dict(PROGRAM.params), clock=clock, repetitions=3)


@pytest.mark.parametrize("clock", ["clock", "globaltimer", "both"])
def test_the_example_conforms_and_its_sums_are_right(captured, clock):
    trace = captured(clock=clock)
    meta = trace.meta
    assert (meta.status, meta.extra["wrong_outputs"], len(meta.extra["outputs"]["sums"])) == ("finished", {}, 1)
    assert [(c.written, c.dropped) for c in meta.ctas] == [((160,) * 8 + (128,), (0,) * 9)] * 2
    assert all(times > 0 for kind in meta.extra["launch_ns"].values() for times in kind)
    found = conform(PROGRAM, trace)
    assert (found.verdict, found.events) == (TraceVerdict.AGREES, 2816)


def test_a_wrong_sum_is_seen(captured):
    trace = captured("if (lane == r) mine = sum;", "if (lane == r) mine = sum + (tile == 5 && warp == 1 && r == 2);")
    assert trace.meta.extra["wrong_outputs"] == {"sums": 1}


def test_a_kernel_that_hangs_leaves_what_it_did(captured):
    """One arrival too few is waited for: the loader stops at the first stage that it wants again."""
    trace = captured("shared.empty[s].init(MATH_WARPS)", "shared.empty[s].init(MATH_WARPS + 1)")
    assert (trace.meta.status, trace.meta.memory) == ("deadline", "host")
    assert [(c.written, len(c.anchors)) for c in trace.meta.ctas] == [((21,) * 8 + (17,), 1)] * 2
    found = conform(PROGRAM, trace)
    assert found.divergence is not None
    assert found.divergence.kind in {DivergenceKind.NOT_FINISHED, DivergenceKind.MISSING_EVENT}


def test_a_kernel_that_traps_leaves_what_it_did(captured):
    """All 32 lanes arrive where 8 arrivals are expected."""
    trace = captured("if (lane == 0) shared.empty[state.index].arrive();", "shared.empty[state.index].arrive();")
    assert (trace.meta.status, trace.meta.memory) == ("trap", "host")
    assert trace.meta.extra["gave_up"]["trap"]
    assert len(trace.events) >= 5


def test_another_stage_than_the_protocols_is_seen(captured):
    behind = ")\n        PIPESIM_RECORD(SITE_math_waits"
    trace = captured(f"state.index, state.phase{behind}", f"0, state.phase{behind}")
    found = conform(PROGRAM, trace).divergence
    assert found is not None
    assert found.kind is DivergenceKind.OTHER_EVENT


def test_arguments_are_held_against_the_kernel(captured):
    with pytest.raises(ParameterError, match="argument 2 of the kernel has 4 bytes"):
        captured(last="i64:64")


def test_a_launch_in_three_dimensions_and_in_clusters(captured):
    assert captured(grid=(2, 1, 1), block=(288, 1, 1), cluster=2).meta.status == "finished"
