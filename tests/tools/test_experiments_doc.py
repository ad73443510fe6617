"""The page of experiments says what the stored files say, and notices when it no longer does."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwkernels.experiments.catalogue import EXPERIMENTS
from hwkernels.experiments.results import dump
from tools import experiments_doc as tool


def store(folder: Path, device: str, outcomes: dict[str, int]) -> None:
    cases = {"alive": {"outcomes": outcomes, "data": {"said": [4, 5]}}}
    entry = {"remote": {"kernel": "0", "cases": cases}}
    header = {"name": device, "sms": 132, "driver": "580", "nvrtc": "13.0"}
    (folder / device).mkdir(parents=True)
    (folder / device / "experiments.json").write_text(
        dump({"version": 1, "device": header, "experiments": entry}), encoding="utf-8"
    )


def test_the_page_is_what_the_stored_files_say() -> None:
    assert tool.main(["--check"]) == 0


def test_questions_stand_there_without_answers() -> None:
    text = tool.page(())
    assert "No results are stored yet" in text
    assert all(f"## {each.question}" in text for each in EXPERIMENTS)


def test_each_device_has_a_column_and_what_differs_is_bold(tmp_path: Path) -> None:
    store(tmp_path, "A", {"the wait returned": 20})
    store(tmp_path, "B", {"the wait did not return": 1, "the wait returned": 19})
    options = ["--traces", str(tmp_path), "--page", str(tmp_path / "page.md")]
    assert tool.main([*options, "--check"]) == 1
    assert tool.main(options) == 0
    assert tool.main([*options, "--check"]) == 0
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "Stored: an A (driver 580, NVRTC 13.0) and an B (driver 580, NVRTC 13.0)." in text
    assert (
        "| case | the model | A | B |\n| --- | --- | --- | --- |\n"
        "| alive | the wait returns | the wait returned 20 | **the wait did not return 1, the wait returned 19** |\n"
        "| exited | – | not measured | not measured |\n\n"
        "**The model differs** in 1 of 2: alive (B).\n"
    ) in text


def test_a_damaged_file_ends_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "experiments.json").write_text("{")
    assert tool.main(["--traces", str(tmp_path), "--page", str(tmp_path / "page.md")]) == 3
    assert "not a results file of the experiments" in capsys.readouterr().err
