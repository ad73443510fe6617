"""Temporary files: names that cannot be guessed, no link followed, none left whatever happens."""

import os
import signal
from pathlib import Path

import pytest

from pipesim.process import files as module
from pipesim.process.files import temporary_beside
from pipesim.process.watch import SignalError, Watch, remove, remove_all


def test_it_is_in_the_folder_of_the_file_and_gone_in_the_end(tmp_path: Path) -> None:
    with temporary_beside(tmp_path / "out") as (name, file):
        file.write(b"part")
        assert (name.parent, name.exists()) == (tmp_path, True)
    assert list(tmp_path.iterdir()) == []


def test_a_link_under_the_name_is_neither_followed_nor_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", bytes)
    planted, victim = tmp_path / f".out.{bytes(8).hex()}.tmp", tmp_path / "victim"
    victim.write_text("kept")
    planted.symlink_to(victim)
    with pytest.raises(FileExistsError), temporary_beside(tmp_path / "out"):
        pytest.fail("it was opened")
    assert (victim.read_text(), planted.is_symlink()) == ("kept", True)


def test_a_signal_leaves_none(tmp_path: Path) -> None:
    with Watch(), pytest.raises(SignalError), temporary_beside(tmp_path / "out"):
        signal.raise_signal(signal.SIGTERM)
    assert list(tmp_path.iterdir()) == []


def test_nor_does_one_while_it_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Path] = []

    def interrupted(name: Path) -> None:
        calls.append(name)
        signal.raise_signal(signal.SIGTERM)
        remove(name)

    monkeypatch.setattr(module, "remove", interrupted)
    with Watch(), pytest.raises(SignalError), temporary_beside(tmp_path / "out"):
        pass
    assert (len(calls), list(tmp_path.iterdir())) == (2, [])


def test_those_that_are_open_can_be_removed_all_together(tmp_path: Path) -> None:
    with temporary_beside(tmp_path / "out"), temporary_beside(tmp_path / "other"):
        remove_all()
        assert list(tmp_path.iterdir()) == []
