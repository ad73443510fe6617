"""``pipesim confirm -- PROGRAM``: its launches on a chip of the tests, with copies of its buffers."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipesim.cli.main import main
from pipesim.cli.programs import confirm as command
from pipesim.confirm.confirm import ConfirmOptions
from pipesim.confirm.launches import ChipOutcome, LaunchSeen
from pipesim.confirm.report import ChipVerdict, ConfirmProgramReport
from pipesim.errors import LaunchFileError
from pipesim.formats.documents import document_of
from pipesim.launches.confirmed import LaunchConfirming, copied_memory
from pipesim.launches.records.read import read_spool
from pipesim.model.finding import Verdict
from pipesim.report.pages.programs.confirm import confirm_program_lines
from pipesim.report.text.console import text_of
from tests.support.machine_chip import MachineChip, Scripted
from tests.support.planted_ptx import PLANTED
from tests.support.small_spools import ptx_of, record
from tests.support.spools import ADDRESS, PROCESS, record_of, write_spool

BY_NAME = {each.name: each for each in PLANTED}
LAPPED = LaunchSeen(ChipOutcome.HANG, ((0, 2, 3),))


def spool_of(folder: Path, *names: str, memory: bool = True, data: bytes = b"") -> Path:
    """Launches of planted kernels, both buffers of which are parts of one allocation of 16 KiB."""
    copies = {"memory": [[ADDRESS - 256, 1 << 14, "m.memory"]]} if memory else {}
    records = []
    for name in names:
        made = record_of(BY_NAME[name].launch, code=f"{name}.ptx", image=name, **copies)
        for n, each in enumerate(made["parameters"]):
            each["bytes"] = (ADDRESS + 4096 * n).to_bytes(8, "little").hex()
        records.append(made)
    made_in = write_spool(folder, [PROCESS, *records], **{name: BY_NAME[name].text for name in names})
    (made_in / "m.memory").write_bytes(data or bytes(1 << 14))
    return made_in


def confirmed(tmp_path: Path, chip: Any, *names: str, **more: Any) -> ConfirmProgramReport:
    options = ConfirmOptions(launches=2, deadline_ms=1, delay_us=200)
    return LaunchConfirming(tmp_path / "out", chip, options).report(spool_of(tmp_path / "spool", *names, **more))


def test_each_launch_has_its_verdict_and_a_refuted_one_is_launched_again(tmp_path: Path) -> None:
    report = confirmed(tmp_path, Scripted(LAPPED), "right", "lapped")
    right, lapped = report.launches
    assert (right.verdict, right.on_chip, lapped.verdict) == (Verdict.PROVED, None, Verdict.REFUTED)
    assert lapped.on_chip is not None
    assert lapped.on_chip.findings_on_chip[0].verdict is ChipVerdict.CONFIRMED
    assert (tmp_path / "out" / lapped.ptx).read_text() == BY_NAME["lapped"].text
    text = text_of(confirm_program_lines(report, 100))
    for said in ("proved", "confirmed on NVIDIA H200: warp 2 waits at", "of kernels with barriers; their"):
        assert said in text
    assert document_of(report)["exit_code"] == 1


@pytest.mark.slow
def test_the_machine_runs_them_with_the_data_of_the_program(tmp_path: Path) -> None:
    seen = []

    class Filled(MachineChip):
        def launch(self, *given: Any) -> Any:
            seen.append(given[2])
            return super().launch(*given)

    confirmed(tmp_path, Filled(), "lapped")
    (buffer,) = seen[0].buffers
    assert (buffer.nbytes, Path(buffer.file).name) == (1 << 14, "m.memory")
    assert [each.pointers for each in seen[0].parameters] == [[(0, 0, 256)], [(0, 0, 256 + 4096)]]
    assert seen[0].names == ["x"]


def test_what_cannot_be_launched_again_is_said(tmp_path: Path) -> None:
    (lapped,) = confirmed(tmp_path, Scripted(), "lapped", memory=False).launches
    assert (lapped.verdict, lapped.on_chip) == (Verdict.REFUTED, None)
    assert lapped.said.endswith("not launched again: its memory was not copied")


def test_memory_for_which_there_was_no_room_and_memory_in_parts(tmp_path: Path) -> None:
    def copied(name: str, start: int) -> None:
        spool = tmp_path / name
        write_spool(spool, [PROCESS, record(memory=[[start, 64, "" if name == "a" else "m.memory"]])], i=ptx_of("k"))
        copied_memory(read_spool(spool).launches[0], ["a", "n"], spool)

    with pytest.raises(LaunchFileError, match="64 bytes"):
        copied("a", 1)
    with pytest.raises(LaunchFileError, match="a leads to memory that is mapped in parts"):
        copied("b", 1)


def test_a_record_that_names_no_file_of_the_folder_is_not_read(tmp_path: Path) -> None:
    write_spool(tmp_path, [PROCESS, record(memory=[[1, 64, "../m.memory"]])], i=ptx_of("k"))
    found = read_spool(tmp_path)
    assert (found.launches, len(found.notes)) == ([], 1)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "require_gpu_or", lambda _: None)
    assert main(["confirm", "--json", "--", "sh", "-c", "exit 5"]) == 5
    report = json.loads(capsys.readouterr().out)["report"]
    assert (report["command"], report["status"], report["launches"]) == (["sh", "-c", "exit 5"], 5, [])
    assert main(["confirm", "no.ptx"]) == 2
    assert main(["confirm", "--no-run", "--", "sh", "-c", "exit 5"]) == 2
    assert "--no-run is of one kernel" in capsys.readouterr().err
