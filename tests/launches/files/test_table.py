"""The table of launches that were caught, as a person reads it."""

from dataclasses import replace
from pathlib import Path

from pipesim.answers.views.launches import LaunchesReport
from pipesim.launches.checks import check_launches
from pipesim.model.finding import Verdict
from pipesim.report.pages.programs.launches import launches_lines
from tests.support.small_spools import MANGLED, count, gathered, ptx_of, record

LONG = "gemm_with_a_name_that_is_longer_than_a_line_of_a_terminal_has_room_for_it"


def shown(tmp_path: Path) -> LaunchesReport:
    records = [
        record(n=3), record(n=4), record(MANGLED, code="", why_not="machine code only: no PTX in the module"),
        record("copy", code="c.ptx", image="c"), {"kind": "note", "text": "another profiler is there"},
        record(LONG, code="g.ptx", image="g", via="graph", cluster=[2, 1, 1]),
        count(launches=1200, distinct=4, left_out=2), count("copy", image="c", launches=1),
    ]  # fmt: skip
    return gathered(tmp_path, records, i=ptx_of("k"), c=ptx_of("copy", body=""), g=ptx_of(LONG))[0]


def test_the_table(tmp_path: Path) -> None:
    assert (
        "\n".join(launches_lines(shown(tmp_path), 80))
        == """\
  kernel                                      PTX from  launches        distinct
  k                                           Triton       1,200  4 (2 left out)
    k.json    grid 2 · block 64
    k-2.json  grid 2 · block 64
  gemm_with_a_na…_a_terminal_has_room_for_it  Triton           –               1
    gemm_with_a_name_that_is_longer_than_a_line_of_a-770ab75c.json
      grid 2 · block 64 · cluster 2 · in a graph

  machine code only: no PTX in the module
    cutlass::device_kernel

  no barrier
    copy  1 launch

  note: another profiler is there

✓ 3 launch files of 2 kernels written to out

  pipesim check out/k.ptx"""
    )


def test_the_table_with_verdicts(tmp_path: Path) -> None:
    verdicts = iter([Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN])
    report = check_launches(shown(tmp_path), tmp_path, lambda *_: (next(verdicts), "what is said of it"))
    lines = launches_lines(replace(report, status=134), 90)
    assert lines[2:4] + lines[5:7] == [
        "    ✓ k.json    what is said of it",
        "    ✗ k-2.json  what is said of it",
        "    ? gemm_with_a_name_that_is_longer_than_a_line_of_a-770ab75c.json",
        "      what is said of it",
    ]
    assert lines[-3:] == [
        "✗ 3 launches: 1 proved, 1 refuted and 1 unknown; the command ended with status 134", "",
        "  pipesim check out/k.ptx --launch out/k-2.json",
    ]  # fmt: skip
