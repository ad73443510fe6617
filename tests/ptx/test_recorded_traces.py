"""Recorded traces beside the programs read from their kernels' PTX: they conform, and a changed line is noticed."""

from functools import cache
from pathlib import Path

import pytest

from pipesim.answers.compare import compare_kernel
from pipesim.answers.views.trace import TraceComparison
from pipesim.cli.main import main
from pipesim.conform.agreement import Agreement, ReasonKind
from pipesim.conform.result import DivergenceKind
from pipesim.errors import EvidenceError
from pipesim.ptx.extract import Extraction, extract
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.text.read import read_module
from pipesim.trace.files import read_meta, read_trace
from tests.support.kernel_files import written
from tests.support.paths import ROOT
from tests.support.twin_launches import recorded_kernel

pytest.importorskip("cuda.bindings.nvrtc")

TRACES = ROOT / "traces" / "h200"
slow = pytest.mark.slow
RING = "producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1"
ONE_OF_EACH = [
    RING,
    pytest.param("attention_sm90-bn128-d128-f0-kb16-nc2-p1-qs1-s900-st2-g1", marks=slow),
    pytest.param("attention_sm90_fused-bn128-d128-kb16-nc2-p1-s900-st3-g1", marks=slow),
    pytest.param("cluster_multicast-c2-cw2-ob8192-sb8192-s4-t16-w600-g2", marks=slow),
    pytest.param("epilogue_residual-a2-at700-cs2-es2-e150-fto1-ki3-od0-r1-sb2048-s4-st4-t6-g1", marks=slow),
    pytest.param("gemm_sm90-bk64-bn256-d0-e300-kgs1-ki16-l0-nc2-s3-t3-tm1-g1-device", marks=slow),
    pytest.param("gemm_sm90-bk64-bn128-d1-e300-kgs1-ki16-l1-nc2-s4-t2-tm1-g1", marks=slow),
    pytest.param("persistent_scheduler-a700-cs2-cw2-ki8-s4-tb16384-t6-w600-g1", marks=slow),
]
FAULTY = "producer_consumer-al1-cw2-s3-tb4096-t24-w200-g1-{}-at-7"


def path_of(name: str) -> Path:
    return TRACES / f"{name}.parquet"


@cache
def kernel_of(name: str) -> tuple[str, Launch]:
    """The PTX and the launch of a recording."""
    meta = read_meta(path_of(name))
    assert meta is not None
    return recorded_kernel(meta.protocol, meta.params, meta.fault)


def extracted(ptx: str, launch: Launch) -> Extraction:
    return extract(read_module(ptx, "kernel.ptx"), launch)


def beside(name: str, text: str = "") -> TraceComparison:
    """A recorded trace beside its kernel, or beside another text in its place."""
    ptx, launch = kernel_of(name)
    return compare_kernel(extracted(text or ptx, launch), read_trace(path_of(name)), name).comparison


@pytest.mark.sampled(1, 2)
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_a_recorded_trace_conforms_to_the_program_of_its_kernels_ptx(name: str) -> None:
    found = beside(name)
    assert found.agreement is Agreement.CONFORMS
    assert found.conformance.events > 0
    assert found.conformance.ended


@pytest.mark.long
@pytest.mark.parametrize("path", sorted(TRACES.glob("*.parquet")), ids=lambda path: path.stem)
def test_no_recorded_trace_differs_but_by_its_fault(path: Path) -> None:
    trace = read_trace(path)
    found = compare_kernel(extracted(*kernel_of(path.stem)), trace, path.stem).comparison
    divergence = found.conformance.divergence
    breaks_a_rule = trace.meta.fault and (divergence is None or divergence.kind is DivergenceKind.FAULT)
    assert found.agreement is not Agreement.DIFFERS or breaks_a_rule


@pytest.mark.slow
def test_a_recorded_hang_is_one_of_the_faulty_kernel_and_not_of_the_right_one() -> None:
    name = FAULTY.format("missing_arrive")
    assert beside(name).agreement is Agreement.HANGS_TOO
    meta = read_meta(path_of(name))
    assert meta is not None
    right = beside(name, recorded_kernel(meta.protocol, meta.params)[0])
    assert right.agreement is Agreement.DIFFERS
    assert right.conformance.divergence is not None
    assert "consumer/0" in right.conformance.divergence.claim


@pytest.mark.slow
def test_of_a_kernel_that_was_not_followed_so_far_nothing_is_known() -> None:
    found = beside(FAULTY.format("no_acquire"))
    assert found.agreement is Agreement.UNKNOWN
    assert found.reason is not None
    assert found.reason.kind is ReasonKind.NOT_FOLLOWED


def test_a_trace_differs_from_its_kernel_with_another_order_of_operations() -> None:
    text = kernel_of(RING)[0]
    at = text.index("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes")
    end = text.index(";", at) + 1
    found = beside(RING, text[:at] + text[end:])
    assert found.agreement is Agreement.DIFFERS
    assert found.conformance.divergence is not None
    assert found.conformance.divergence.kind is DivergenceKind.OTHER_EVENT
    assert "copy 16,384 bytes" in found.conformance.divergence.claim


@pytest.mark.slow
def test_a_trace_of_another_kernel_has_other_warps_or_barriers() -> None:
    ptx, launch = kernel_of(RING)
    found = extract(read_module(ptx, "kernel.ptx"), launch)
    other = read_trace(path_of("producer_consumer-al1-cw4-s4-tb16384-t64-w0-g1"))
    with pytest.raises(EvidenceError, match="has a warp 3"):
        compare_kernel(found, other, "other")
    other = read_trace(path_of("producer_consumer-al1-cw2-s6-tb16384-t64-w200-g1"))
    with pytest.raises(EvidenceError, match="12 mbarriers"):
        compare_kernel(found, other, "other")
    other = read_trace(path_of("producer_consumer-al1-cw1-s4-tb16384-t64-w0-g1"))
    with pytest.raises(EvidenceError, match="empty of the trace completes with 1 arrivals"):
        compare_kernel(found, other, "other")


@pytest.mark.slow
def test_the_command_line_names_the_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ptx, launch = kernel_of(RING)
    kernel = written(tmp_path / "kernel.ptx", ptx, launch)
    assert main(["diff", str(path_of(RING)), "--protocol", kernel]) == 0
    said = capsys.readouterr().out
    assert "conform" in said
    assert "the kernel reads a clock" in said.replace("\n               ", " ")
