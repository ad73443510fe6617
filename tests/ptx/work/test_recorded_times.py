"""Simulated times of kernels that no warp described, beside recorded ones."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipesim.answers.compare import compare_kernel
from pipesim.answers.run import run
from pipesim.conform.compare import times_of
from pipesim.conform.recorded_kernel import recorded_kernel
from pipesim.conform.times import NoTime, TimeVerdict
from pipesim.ptx.kernel import read_kernel
from pipesim.timed.profile import load_profile
from pipesim.timed.work import OVERHEAD
from pipesim.trace.files import read_trace
from tests.support.paths import ROOT

FOLDER = ROOT / "traces" / "h200" / "ptx"
PAGE = ROOT / "docs" / "times.md"
KERNELS = ["gluon-scale_watched", "triton-gemm_tma_w4_s3", "triton-attention_d128_causal", "triton-softmax"]


@pytest.mark.sampled(1, 2)
@pytest.mark.parametrize("name", KERNELS)
def test_the_table_of_the_page_has_what_is_simulated_today(name: str) -> None:
    read, trace = read_kernel(FOLDER / f"{name}.ptx"), read_trace(FOLDER / f"{name}.parquet")
    timing = compare_kernel(read, trace, name).comparison.timing
    assert timing is not None
    whole = next(each for each in timing.figures if each.name == "whole run, traced")
    assert whole.measured
    assert whole.simulated
    assert abs(whole.simulated - whole.measured) < 0.25 * whole.measured
    line = f"| `{name}` | {whole.measured // 1000:,} | {whole.simulated // 1000:,} | "
    assert line in PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_without_its_instructions_a_kernel_is_too_fast() -> None:
    """The twin: the same trace beside the program that is proved, which has no work."""
    name = "triton-attention_d64"
    read, trace = read_kernel(FOLDER / f"{name}.ptx"), read_trace(FOLDER / f"{name}.parquet")
    alone = recorded_kernel(read.program, read.places, trace, read.by_line)
    off = times_of(alone.program, alone.trace).off_permille
    found = compare_kernel(read, trace, name).comparison.time
    assert off is not None
    assert found.off_permille is not None
    assert off < -400 < -250 < found.off_permille < 250


@pytest.mark.slow
def test_what_the_estimate_rests_on_is_said() -> None:
    name = "triton-gemm_tma_w4_s3"
    time = compare_kernel(
        read_kernel(FOLDER / f"{name}.ptx"), read_trace(FOLDER / f"{name}.parquet"), name
    ).comparison.time
    assert time.verdict is TimeVerdict.OUTSIDE
    assert [each.kind.name for each in time.assumed if each.kind.name != "VALUE"] == ["INSTRUCTIONS"]


def test_a_kernel_that_reads_a_clock_has_no_time(tmp_path: Path) -> None:
    name = "triton-softmax"
    kernel = tmp_path / f"{name}.ptx"
    text = (FOLDER / f"{name}.ptx").read_text(encoding="utf-8")
    before, brace, after = text.partition("\n{\n")
    kernel.write_text(f"{before}{brace}.reg .b32 %now;\nmov.u32 %now, %clock;\n{after}", encoding="utf-8")
    kernel.with_suffix(".json").write_bytes((FOLDER / f"{name}.json").read_bytes())
    time = compare_kernel(read_kernel(kernel), read_trace(FOLDER / f"{name}.parquet"), name).comparison.time
    assert (time.verdict, time.why) == (TimeVerdict.NOT_COMPARED, NoTime.CLOCK)


def test_a_kernel_that_hangs_has_no_time() -> None:
    name = "triton-gemm_tma_w8_s4-hangs"
    time = compare_kernel(
        read_kernel(FOLDER / f"{name}.ptx"), read_trace(FOLDER / f"{name}.parquet"), name
    ).comparison.time
    assert (time.verdict, time.why) == (TimeVerdict.NOT_COMPARED, NoTime.KERNEL)


def test_a_run_says_that_its_work_is_estimated() -> None:
    read = read_kernel(FOLDER / "triton-softmax.ptx")
    claim = "the time of the work between operations is estimated from the kernel's instructions"
    profile = load_profile("h200")
    assert [note.claim for note in run(read.timed, profile).advisories] == [claim]
    assert run(read.program, profile).advisories == ()
    names = {work.name for work in read.timed.work}
    measured = replace(profile, values=profile.values | {name + OVERHEAD: 9 for name in names})
    assert run(read.timed, measured).advisories == ()
