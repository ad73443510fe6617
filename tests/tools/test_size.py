"""Budgets of lines, and the files that a command enters: a file above its budget is seen, and so is what changed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import size


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two commits and one package."""
    monkeypatch.setattr(size, "ROOT", tmp_path)
    (tmp_path / "made" / "deep").mkdir(parents=True)
    for text in ("one\ntwo\n", "one\nthree\nfour\n"):
        (tmp_path / "made" / "deep" / "a.py").write_text(text)
        (tmp_path / "made" / "picture.bin").write_bytes(b"\0\n\n\n")
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
            who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
            subprocess.run(["git", *who, *words], cwd=tmp_path, check=True)
    return tmp_path


def test_lines_and_changes(checkout: Path) -> None:
    budget = size.Budget("made", "", 3)
    names = size.tracked("made", "")
    assert names == ["made/deep/a.py", "made/picture.bin"]
    assert [size.lines_of(checkout / name) for name in names] == [3, 0]
    assert size.changes("HEAD~1", budget) == {"made/deep": (2, 1)}


@pytest.mark.parametrize(("most", "code"), [(3, 0), (2, 1)])
def test_above_a_budget_it_fails(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], most: int, code: int
) -> None:
    monkeypatch.setattr(size, "BUDGETS", (size.Budget("made", ".py", most),))
    monkeypatch.setattr(size, "ENTERED", ())
    assert size.main([]) == code
    assert ("ABOVE" in capsys.readouterr().out) == bool(code)


def test_a_file_is_entered_where_a_function_runs() -> None:
    found = {Path(name).relative_to(size.ROOT).as_posix() for name in size.entered(["list"])}
    assert {"pipesim/cli/main.py", "pipesim/cli/list_.py"} <= found
    assert "pipesim/cli/check.py" not in found  # imported, but nothing in it is called
