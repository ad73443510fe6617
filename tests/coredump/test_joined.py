"""Dumps with several kernels and several devices: each is said."""

import lzma

import pytest

from pipesim.answers.autopsy.autopsy import autopsy_of
from pipesim.answers.views.autopsy import AutopsyReport
from pipesim.report.pages.programs.autopsy import autopsy_lines
from tests.coredump.joined import joined, opened, without_kernels
from tests.coredump.test_hangs import DUMPS


def report_of(first: str, second: str, device: int) -> AutopsyReport:
    """The autopsy of two of our dumps together."""
    one, two = (lzma.decompress((DUMPS / f"{name}.elf.xz").read_bytes()) for name in (first, second))
    return autopsy_of(opened(joined(one, two, device=device)), "core")


def said(report: AutopsyReport) -> str:
    return " ".join(" ".join(autopsy_lines(report, 100)).split())


@pytest.mark.sampled(1, 1)
@pytest.mark.parametrize("device", [0, 1])
def test_each_kernel_is_said_with_its_own_warps(device: int) -> None:
    """On one device both grids have the number 2: which CTAs are of which kernel, their program counters say."""
    report = report_of("wrong_bytes.h200", "missing_arrive_bare.h200", device)
    apart = [report_of_one(name) for name in ("wrong_bytes.h200", "missing_arrive_bare.h200")]
    assert [each.device for each in report.launches] == [0, device]
    assert [each.groups for each in report.launches] == [each.launches[0].groups for each in apart]
    assert all(each.started == 1 for each in report.launches)
    text = said(report)
    assert "hangs: wrong_bytes, missing_arrive" in text
    assert ("block 96 threads · device 0 · sm_90" in text) == ("block 160 threads · device 1" in text) == bool(device)


def report_of_one(name: str) -> AutopsyReport:
    return autopsy_of(opened(lzma.decompress((DUMPS / f"{name}.elf.xz").read_bytes())), "core")


@pytest.mark.slow
def test_one_kernel_on_two_devices_is_named_with_them() -> None:
    report = report_of("missing_arrive.h200", "missing_arrive_bare.h200", 1)
    assert "hangs: missing_arrive on device 0, missing_arrive on device 1" in said(report)


@pytest.mark.slow
def test_a_device_on_which_nothing_runs_is_not_said() -> None:
    data = lzma.decompress((DUMPS / "missing_arrive.h200.elf.xz").read_bytes())
    (launch,) = autopsy_of(opened(joined(without_kernels(data), data)), "core").launches
    assert (launch.device, launch.arch) == (1, "sm_90")
    assert launch.groups == report_of_one("missing_arrive.h200").launches[0].groups
