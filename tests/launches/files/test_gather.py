"""Records become a report and the texts of files: each distinct launch once, and a reason for the rest."""

from pathlib import Path

import pytest

from pipesim.answers.views.launches import LaunchesReport
from pipesim.errors import UsageError
from pipesim.launches.files import embedded_ptx, launch_file
from pipesim.launches.files import gather as gathering
from pipesim.launches.files.embedded_ptx import dumped_ptx
from pipesim.launches.files.gather import gather
from pipesim.launches.files.launch_file import DescribedLaunch, KernelText
from pipesim.launches.records.record import LaunchRecord
from pipesim.ptx.launch.file import read_launch
from pipesim.ptx.launch.values import Number, Pointer
from tests.support.small_spools import count, gathered, ptx_of, record
from tests.support.spools import write_spool


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


def test_a_mistake_of_ours_in_one_kernel_does_not_lose_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def described(record: LaunchRecord, kernel: KernelText) -> DescribedLaunch:
        if record.grid == (9, 1, 1):
            raise KeyError("x")
        return launch_file.describe_launch(record, kernel)

    def kernel_text(text: str, name: str, kernel: str) -> KernelText:
        if kernel == "other":
            raise RecursionError("deep")
        return launch_file.kernel_text(text, name, kernel)

    monkeypatch.setattr(gathering, "describe_launch", described)
    monkeypatch.setattr(gathering, "kernel_text", kernel_text)
    report, _ = gathered(tmp_path, [record(), record(grid=9), record("other")], i=ptx_of("k", "other"))
    first, second = report.kernels
    assert [each.file for each in first.caught] == ["k.json", ""]
    assert first.caught[1].reason == "an internal error of pipesim: KeyError: 'x'"
    assert second.reason == "an internal error of pipesim: RecursionError: deep"


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


def test_ptx_of_a_fat_binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipesim.launches.images import entry_text

    monkeypatch.setattr(entry_text, "ptx_of_entry", lambda data: ptx_of("k") if data == b"entry" else "")
    spool = write_spool(tmp_path / "spool", [record(code="i.entry")])
    (spool / "i.entry").write_bytes(b"entry")
    assert [each.file for each in gather(spool)[0].written] == ["k.json"]


class TestDump:
    def of(self, tmp_path: Path, **texts: str) -> LaunchesReport:
        dump = tmp_path / "dump"
        dump.mkdir()
        for name, text in texts.items():
            (dump / f"{name}.ptx").write_text(text, encoding="utf-8")
        spool = write_spool(tmp_path / "spool", [record(code="", origin="CuTe DSL", why_not="machine code only")])
        return gather(spool, dumped_ptx(dump))[0]

    def test_two_that_are_equal_are_one(self, tmp_path: Path) -> None:
        assert self.of(tmp_path, a=ptx_of("k"), b=ptx_of("k")).written

    def test_two_that_differ_are_none(self, tmp_path: Path) -> None:
        (kernel,) = self.of(tmp_path, a=ptx_of("k"), b=ptx_of("k", "y")).kernels
        assert kernel.reason == "2 PTX files of the dump have it: a.ptx, ..."

    def test_a_folder_without_ptx(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(UsageError, match="has no kernel"):
            dumped_ptx(tmp_path)
        with pytest.raises(UsageError, match="cannot be read"):
            dumped_ptx(tmp_path / "nothing")
        monkeypatch.setattr(embedded_ptx, "MAX_KERNEL_FILES", 0)
        (tmp_path / "a.ptx").write_text("")
        with pytest.raises(UsageError, match="has 1 files; at most 0 are read"):
            dumped_ptx(tmp_path)
