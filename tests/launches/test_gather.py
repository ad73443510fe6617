"""Records become files and a report: each distinct launch once, names that are safe, and a reason for the rest."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipesim.answers.views.conclusion import Conclusion
from pipesim.answers.views.launches import LaunchesReport
from pipesim.errors import OutputExistsError, UsageError
from pipesim.launches import code
from pipesim.launches.checks import check_launches
from pipesim.launches.code import dumped_ptx
from pipesim.launches.file_names import FileNames, launch_file_name
from pipesim.launches.gather import gather
from pipesim.launches.written import index_json, require_folder, write_launches
from pipesim.model.finding import Verdict
from pipesim.ptx.kernel import read_kernel
from pipesim.ptx.launch.file import read_launch
from pipesim.ptx.launch.values import Launch, Number, Parameter, Pointer
from pipesim.report.pages.launches import check_command, launches_lines
from tests.support.paths import ROOT
from tests.support.spools import record_of, write_spool

KERNELS = ROOT / "tests" / "ptx" / "kernels"
HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
MANGLED = "_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalIN4cute5tupleIJiiiiEEEEEEvNT_6ParamsE"


def ptx_of(*names: str, body: str = "bar.sync 0;") -> str:
    return HEAD + "".join(f".visible .entry {each}(.param .u64 a, .param .u32 n) {{ {body} ret; }}\n" for each in names)


def launch_of(name: str = "k", n: int = 1, align: int = 256, grid: int = 2) -> Launch:
    parameters = (Parameter("", Pointer(align)), Parameter("", Number("u32", n)))
    return Launch(name, (grid, 1, 1), (64, 1, 1), parameters=parameters)


def record(name: str = "k", n: int = 1, align: int = 256, grid: int = 2, **more: Any) -> dict[str, Any]:
    return record_of(launch_of(name, n, align, grid), **more)


def count(kernel: str = "k", launches: int = 5, distinct: int = 1, left_out: int = 0, **more: Any) -> dict[str, Any]:
    numbers = {"launches": launches, "distinct": distinct, "left_out": left_out}
    return {"kind": "count", "kernel": kernel, "image": "i"} | numbers | more


def gathered(tmp_path: Path, records: list[dict[str, Any]], **codes: str) -> tuple[LaunchesReport, dict[str, str]]:
    return gather(write_spool(tmp_path / "spool", records, **(codes or {"i": ptx_of("k")})), folder="out")


def test_launches_that_differ_have_a_file_each_beside_one_ptx(tmp_path: Path) -> None:
    report, texts = gathered(tmp_path, [record(n=3), record(n=4), record(n=3), record(n=3, grid=9), count(launches=7)])
    (kernel,) = report.kernels
    assert (kernel.name, kernel.origin, kernel.arch, kernel.ptx) == ("k", "Triton", "sm_90a", "k.ptx")
    assert (kernel.launches, kernel.distinct, kernel.left_out, kernel.barriers) == (7, 3, 0, True)
    assert [each.file for each in kernel.caught] == ["k.json", "k-2.json", "k-3.json"]
    assert [each.grid for each in kernel.caught] == [(2, 1, 1), (2, 1, 1), (9, 1, 1)]
    assert texts["k.ptx"] == ptx_of("k")
    numbers = [read_launch(texts[each.file], "x").parameters[1].content for each in kernel.caught]
    assert numbers == [Number("u32", 3), Number("u32", 4), Number("u32", 3)]


def test_launches_at_other_addresses_are_one_with_the_alignment_of_all(tmp_path: Path) -> None:
    report, texts = gathered(tmp_path, [record(align=4096), record(align=16), record(align=512)])
    assert [each.file for each in report.written] == ["k.json"]
    assert read_launch(texts["k.json"], "x").parameters[0].content == Pointer(16)


def test_two_processes_that_launch_the_same_are_one(tmp_path: Path) -> None:
    for name in ("7", "8"):
        write_spool(tmp_path / "spool", [record(), count()], name=name, i=ptx_of("k"))
    report, _ = gather(tmp_path / "spool")
    (kernel,) = report.kernels
    assert (kernel.launches, len(kernel.caught), report.devices) == (10, 1, ("NVIDIA H200",))


def test_a_process_that_was_killed_does_not_say_how_often(tmp_path: Path) -> None:
    write_spool(tmp_path / "spool", [record(), count()], name="7", i=ptx_of("k"))
    report, _ = gather(write_spool(tmp_path / "spool", [record()], name="8"))
    assert [kernel.launches for kernel in report.kernels] == [None]


def test_one_name_with_two_ptx_is_two_kernels(tmp_path: Path) -> None:
    other = ptx_of("k", body="bar.sync 1;")
    records = [record(), record(image="j", code="j.ptx"), count(), count(image="j", launches=2)]
    report, texts = gathered(tmp_path, records, i=ptx_of("k"), j=other)
    first, second = report.kernels
    assert (first.ptx, first.launches, second.launches) == ("k.ptx", 5, 2)
    assert second.ptx.startswith("k-")
    assert len(second.ptx) == len("k-12345678.ptx")
    assert texts[second.ptx] == other
    assert gathered(tmp_path, records, i=ptx_of("k"), j=other)[1] == texts


def test_kernels_of_one_file_have_their_own(tmp_path: Path) -> None:
    report, texts = gathered(tmp_path, [record("b"), record("a")], i=ptx_of("a", "b"))
    assert [kernel.ptx for kernel in report.kernels] == ["b.ptx", "a.ptx"]
    assert texts["a.ptx"] == texts["b.ptx"]


def test_a_kernel_without_a_barrier_has_no_files(tmp_path: Path) -> None:
    report, texts = gathered(tmp_path, [record(), count()], i=ptx_of("k", body="membar.gl;"))
    (kernel,) = report.kernels
    assert (kernel.barriers, kernel.reason, kernel.caught, kernel.launches) == (False, "no barrier", (), 5)
    assert texts == {}
    assert report.conclusion is Conclusion.UNKNOWN


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"code": "", "why_not": "machine code only: a prebuilt library"}, "machine code only: a prebuilt library"),
        ({"code": ""}, "no PTX: the process loaded machine code only"),
        ({"code": "j.ptx"}, "its PTX cannot be read: No such file or directory"),
        ({"code": "text.ptx"}, "its PTX cannot be read: it is not text in UTF-8: byte 0"),
        ({"code": "link.ptx"}, "its PTX cannot be read: link.ptx is not a file of the folder"),
        ({"code": "bad.ptx"}, "its PTX cannot be read: a function's body is not closed"),
        ({"kernel": "other"}, "its PTX cannot be read: it has no kernel other"),
    ],
)
def test_a_kernel_without_usable_ptx_has_a_reason(tmp_path: Path, more: dict[str, str], reason: str) -> None:
    spool = write_spool(tmp_path / "spool", [record() | more], i=ptx_of("k"), bad=ptx_of("k").rstrip("}\n"))
    (spool / "text.ptx").write_bytes(b"\xff\xfe")
    (tmp_path / "elsewhere.ptx").write_text(ptx_of("k"), encoding="utf-8")
    (spool / "link.ptx").symlink_to(tmp_path / "elsewhere.ptx")
    report, texts = gather(spool)
    (kernel,) = report.kernels
    assert (kernel.caught, kernel.barriers, texts) == ((), None, {})
    assert reason in kernel.reason


def test_ptx_ends_at_its_first_zero(tmp_path: Path) -> None:
    _, texts = gathered(tmp_path, [record()], i=ptx_of("k") + "\0\0rest")
    assert texts["k.ptx"] == ptx_of("k")


def test_ptx_of_a_fat_binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipesim.launches import entry_text

    monkeypatch.setattr(entry_text, "ptx_of_entry", lambda data: ptx_of("k") if data == b"entry" else "")
    spool = write_spool(tmp_path / "spool", [record(code="i.entry")])
    (spool / "i.entry").write_bytes(b"entry")
    assert [each.file for each in gather(spool)[0].written] == ["k.json"]


def test_a_launch_that_cannot_be_described_has_a_reason_beside_those_that_can(tmp_path: Path) -> None:
    short = record(grid=7) | {"parameters": [{"bytes": "00" * 8}]}
    report, _ = gathered(tmp_path, [record(), short, short])
    (kernel,) = report.kernels
    assert [(each.file, each.reason) for each in kernel.caught] == [
        ("k.json", ""), ("", "the launch has 1 parameters, and its PTX 2"),
    ]  # fmt: skip


def test_a_kernel_that_was_only_counted_is_listed(tmp_path: Path) -> None:
    report, _ = gathered(tmp_path, [record(), count(), count("late", launches=3, distinct=2, left_out=2)])
    assert [(each.name, each.launches, each.reason) for each in report.kernels] == [
        ("k", 5, ""), ("late", 3, "no launch of it was recorded"),
    ]  # fmt: skip


def test_of_kernels_that_were_not_asked_for_only_the_number_is_said(tmp_path: Path) -> None:
    spool = write_spool(tmp_path / "spool", [record(), count(), count("elementwise"), count("gemm")], i=ptx_of("k"))
    report, _ = gather(spool, patterns=("k", "g*"))
    assert [each.name for each in report.kernels] == ["k", "gemm"]
    assert report.notes == ("kernels that match no pattern: 1",)


class TestDump:
    def of(self, tmp_path: Path, **texts: str) -> LaunchesReport:
        dump = tmp_path / "dump"
        dump.mkdir()
        for name, text in texts.items():
            (dump / f"{name}.ptx").write_text(text, encoding="utf-8")
        spool = write_spool(tmp_path / "spool", [record(code="", origin="CuTe DSL", why_not="machine code only")])
        return gather(spool, dumped_ptx(dump))[0]

    def test_the_only_file_that_has_the_kernel_is_its_ptx(self, tmp_path: Path) -> None:
        (kernel,) = self.of(tmp_path, a=ptx_of("x", "k"), b=ptx_of("y")).kernels
        assert (kernel.ptx, kernel.origin) == ("k.ptx", "CuTe DSL, a.ptx")

    def test_two_that_are_equal_are_one(self, tmp_path: Path) -> None:
        assert self.of(tmp_path, a=ptx_of("k"), b=ptx_of("k")).written

    def test_two_that_differ_are_none(self, tmp_path: Path) -> None:
        (kernel,) = self.of(tmp_path, a=ptx_of("k"), b=ptx_of("k", "y")).kernels
        assert kernel.reason == "2 PTX files of the dump have it: a.ptx, ..."

    def test_without_one_the_reason_is_the_process_s(self, tmp_path: Path) -> None:
        (kernel,) = self.of(tmp_path, a=ptx_of("y")).kernels
        assert kernel.reason == "machine code only"

    def test_a_folder_without_ptx(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(UsageError, match="has no PTX file"):
            dumped_ptx(tmp_path)
        with pytest.raises(UsageError, match="cannot be read"):
            dumped_ptx(tmp_path / "nothing")
        monkeypatch.setattr(code, "MAX_SPOOL_FILES", 0)
        (tmp_path / "a.ptx").write_text("")
        with pytest.raises(UsageError, match="has 1 PTX files; at most 0 are read"):
            dumped_ptx(tmp_path)


class TestNames:
    def test_they_are_readable_short_and_safe(self) -> None:
        names = FileNames()
        assert names.of("gemm_ws", "a") == "gemm_ws"
        assert names.of(MANGLED, "a") == "cutlass_device_kernel"
        long = names.of("x" * 300, "a")
        assert long == names_again("x" * 300, "a")
        assert (len(long), long[:49]) == (57, "x" * 48 + "-")
        assert names.of("../../etc/$p%", "a") == "etc_p"
        assert names.of("$$", "a") == "kernel"

    def test_no_two_are_one_file(self) -> None:
        names = FileNames()
        every = [names.of(kernel, text) for kernel in ("k", "K", "k$", "launches", "con") for text in ("a", "b")]
        assert len({name.lower() for name in every}) == 10
        assert not {"launches", "con"} & {name.lower() for name in every}

    def test_launches_are_numbered_from_the_second_on(self) -> None:
        assert [launch_file_name("k", n) for n in range(3)] == ["k.json", "k-2.json", "k-3.json"]


def names_again(kernel: str, text: str) -> str:
    return FileNames().of(kernel, text)


class TestWriting:
    def test_the_files_are_those_that_check_reads(self, tmp_path: Path) -> None:
        text = (KERNELS / "scale_ws_s3-sm_90a.ptx").read_text(encoding="utf-8")
        given = read_launch((KERNELS / "scale_ws_s3-sm_90a.json").read_text(encoding="utf-8"), "x")
        report, texts = gathered(tmp_path, [record_of(given), record_of(replace(given, grid=(9, 1, 1)))], i=text)
        write_launches(report, texts, tmp_path / "out")
        names = {"launches.json", "scale_ws.ptx", "scale_ws.json", "scale_ws-2.json"}
        assert {path.name for path in (tmp_path / "out").iterdir()} == names
        first = read_kernel(tmp_path / "out" / "scale_ws.ptx")
        second = read_kernel(tmp_path / "out" / "scale_ws.ptx", tmp_path / "out" / "scale_ws-2.json")
        assert first.program.code == second.program.code
        (kernel,) = report.kernels
        commands = [check_command("out", kernel, each) for each in kernel.caught]
        assert commands == [
            "pipesim check out/scale_ws.ptx", "pipesim check out/scale_ws.ptx --launch out/scale_ws-2.json",
        ]  # fmt: skip

    def test_nothing_is_overwritten_unless_it_is_forced(self, tmp_path: Path) -> None:
        report, texts = gathered(tmp_path, [record()])
        out = tmp_path / "out"
        require_folder(out, force=False)
        out.mkdir()
        (out / ".hidden").write_text("")
        require_folder(out, force=False)
        (out / "k.json").write_text("mine")
        with pytest.raises(OutputExistsError, match="out is not empty"):
            require_folder(out, force=False)
        with pytest.raises(OutputExistsError, match=r"k\.json exists already"):
            write_launches(report, texts, out)
        assert {path.name for path in out.iterdir()} == {"k.json", ".hidden"}
        require_folder(out, force=True)
        write_launches(report, texts, out, force=True)
        assert (out / "k.json").read_text() == texts["k.json"]

    def test_a_folder_that_cannot_be_written_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(UsageError, match="file is not a folder"):
            require_folder(tmp_path / "file" / "below", force=True)
        monkeypatch.setattr("pipesim.launches.written.os.access", lambda *_: False)
        with pytest.raises(UsageError, match="cannot write to the folder"):
            require_folder(tmp_path / "x" / "y", force=True)

    def test_the_index_lists_everything(self, tmp_path: Path) -> None:
        report, _ = gathered(tmp_path, [record(), count()])
        data = json.loads(index_json(report))
        assert (data["format"], data["version"], data["devices"]) == ("pipesim-launches", 1, ["NVIDIA H200"])
        (kernel,) = data["kernels"]
        assert (kernel["name"], kernel["ptx"], kernel["launches"]) == ("k", "k.ptx", 5)
        assert kernel["caught"] == [
            {"file": "k.json", "grid": [2, 1, 1], "block": [64, 1, 1], "cluster": [1, 1, 1], "via": "launch",
             "reason": "", "notes": []},
        ]  # fmt: skip


class TestVerdicts:
    def report(self, tmp_path: Path) -> LaunchesReport:
        given = read_launch((KERNELS / "scale_ws_s3-sm_90a.json").read_text(encoding="utf-8"), "x")
        text = (KERNELS / "scale_ws_s3-sm_90a.ptx").read_text(encoding="utf-8")
        report, texts = gathered(tmp_path, [record_of(given)], i=text)
        write_launches(report, texts, tmp_path / "out")
        return report

    def test_each_file_has_the_verdict_of_check(self, tmp_path: Path) -> None:
        report = check_launches(self.report(tmp_path), tmp_path / "out")
        (launch,) = report.written
        assert (launch.verdict, report.checked, report.conclusion) == (Verdict.PROVED, True, Conclusion.AGREES)
        assert launch.said.startswith("proved: scale_ws: ")

    def test_a_file_that_cannot_be_read_is_unknown(self, tmp_path: Path) -> None:
        report = self.report(tmp_path)
        (tmp_path / "out" / "scale_ws.json").write_text("{}")
        (launch,) = check_launches(report, tmp_path / "out").written
        assert (launch.verdict, launch.said[:9]) == (Verdict.UNKNOWN, "unknown: ")

    def test_the_worst_counts_and_what_has_no_file_is_unknown(self, tmp_path: Path) -> None:
        short = record(grid=7) | {"parameters": [{"bytes": "00" * 8}]}
        report, _ = gathered(tmp_path, [record(), record(n=2), short])
        verdicts = iter([Verdict.PROVED, Verdict.REFUTED])
        checked = check_launches(report, tmp_path, lambda *_: (next(verdicts), "said"))
        assert checked.conclusion is Conclusion.WRONG
        assert [each.verdict for each in checked.kernels[0].caught] == [
            Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN,
        ]  # fmt: skip
        proved = check_launches(report, tmp_path, lambda *_: (Verdict.PROVED, "said"))
        assert proved.conclusion is Conclusion.UNKNOWN


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


def test_nothing_was_launched(tmp_path: Path) -> None:
    assert launches_lines(gathered(tmp_path, [])[0], 80) == [
        "? no launch file was written because no launch was observed",
    ]  # fmt: skip


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_no_line_of_the_table_is_too_long(tmp_path: Path, width: int) -> None:
    lines = launches_lines(shown(tmp_path), width)
    assert max(map(len, lines[:-1])) <= max(width, 66)
