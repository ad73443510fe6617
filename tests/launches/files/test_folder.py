"""Names that are safe, files that are not overwritten, and a verdict on each of them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pipesim.answers.views.conclusion import Conclusion
from pipesim.answers.views.launches import LaunchesReport
from pipesim.errors import UsageError
from pipesim.launches import checks
from pipesim.launches.checks import check_launches
from pipesim.launches.files.gather import FileNames, index_json, require_folder, write_launches
from pipesim.model.finding import Verdict
from pipesim.ptx.kernel import read_kernel
from pipesim.ptx.launch.file import read_launch
from pipesim.report.pages.programs.launches import check_command
from tests.support.small_spools import KERNELS, count, gathered, record
from tests.support.spools import record_of


class TestNames:
    def test_no_two_are_one_file(self) -> None:
        names = FileNames()
        every = [names.name_of(kernel, text) for kernel in ("k", "K", "k$", "launches", "con") for text in ("a", "b")]
        assert len({name.lower() for name in every}) == 10
        assert not {"launches", "con"} & {name.lower() for name in every}


class TestWriting:
    @pytest.mark.slow
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

    def test_a_folder_that_cannot_be_written_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(UsageError, match="file is not a folder"):
            require_folder(tmp_path / "file" / "below", force=True)
        monkeypatch.setattr("pipesim.launches.files.gather.os.access", lambda *_: False)
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

    @pytest.mark.slow
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

    @pytest.mark.slow
    def test_a_mistake_of_ours_is_unknown(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        report = self.report(tmp_path)

        def fails(*_: object, **__: object) -> None:
            raise KeyError("x")

        monkeypatch.setattr(checks, "check", fails)
        (launch,) = check_launches(report, tmp_path / "out").written
        assert (launch.verdict, launch.said) == (
            Verdict.UNKNOWN, "unknown: an internal error of pipesim: KeyError: 'x'",
        )  # fmt: skip

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
