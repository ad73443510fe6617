"""The table of errors: what is compared, what is sealed stays unread, and a wrong profile is seen."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pipesim.trace.files import read_trace
from pipesim.trace.library import trace_folder
from pipesim.trace.split import FILE, SplitPart, read_split
from tools import accuracy


def rows(tmp_path: Path, *words: str) -> list[dict[str, object]]:
    path = tmp_path / "rows.json"
    assert accuracy.main([*words, "--json", str(path)]) == 0
    found = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(found, list)
    return found


#: Short recordings: one that may be fitted, two that are held out, and one that is sealed.
SHORT = (
    "h100/producer_consumer-al1-cw2-s4-tb16384-t5-w600-g1",
    "h100/producer_consumer-al1-cw1-s3-tb2048-t64-w0-g1",
    "h200/producer_consumer-al1-cw1-s1-tb16384-t24-w0-g1",
    "h200/producer_consumer-al1-cw1-s3-tb4096-t64-w0-g1",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of traces that has these."""
    for name in SHORT:
        path = tmp_path / "traces" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(trace_folder() / f"{name}.parquet", path)
    return tmp_path / "traces"


def test_recordings_and_simulations_are_a_table(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = rows(tmp_path, "--traces", str(folder), "--rows")
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1].startswith("* held out")
    assert sorted((row["part"], row["device"]) for row in found) == [
        ("fit", "h100"), ("held out", "h100"), ("held out", "h200"),
    ]  # fmt: skip
    assert any("held out*" in line for line in printed)


def test_sealed_recordings_are_read_if_asked_for_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    split, read = read_split(trace_folder() / FILE), []

    def reading(path: Path) -> object:
        trace = read_trace(path)
        read.append(split.part_of_trace(trace.meta))
        return trace

    monkeypatch.setattr(accuracy, "read_trace", reading)
    monkeypatch.setattr(accuracy, "row", lambda trace, part, profile: part)
    monkeypatch.setattr(accuracy, "table", lambda rows: ())
    accuracy.main(["--traces", str(folder)])
    assert {*read} == {SplitPart.FIT, SplitPart.HELD_OUT}
    accuracy.main(["--traces", str(folder), "--sealed"])
    assert SplitPart.SEALED in read
