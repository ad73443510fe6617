"""Values that look like secrets are not in a file or a report that has a command line; everything else is."""

import stat
from pathlib import Path

import pytest

from pipesim.process.files import write_whole
from pipesim.process.program import without_secrets


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["python", "t.py", "--api-key=abc"], ["python", "t.py", "--api-key=***"]),
        (["python", "t.py", "--hf-token", "abc", "--lr", "3"], ["python", "t.py", "--hf-token", "***", "--lr", "3"]),
        (
            ["env", "AWS_SECRET_ACCESS_KEY=x/y", "A=1", "./a.out"],
            ["env", "AWS_SECRET_ACCESS_KEY=***", "A=1", "./a.out"],
        ),
        (["run", "--password", "--verbose"], ["run", "--password", "--verbose"]),
        (["run", "hf_abcdefghijklmnopqr"], ["run", "***"]),
        (["run", "ghp_0123456789abcdefgh"], ["run", "***"]),
        (["git", "https://me:word@host/x"], ["git", "https://***@host/x"]),
        (["python", "tokenizer.py", "--tokens=4096"], ["python", "tokenizer.py", "--tokens=4096"]),
        (["python", "t.py", "--max-tokens", "4096"], ["python", "t.py", "--max-tokens", "4096"]),
        (["./a.out", "m=4", "s.empty[1]"], ["./a.out", "m=4", "s.empty[1]"]),
    ],
)
def test_of_a_command_line(words: list[str], told: list[str]) -> None:
    assert list(without_secrets(words)) == told


@pytest.mark.parametrize(("private", "mode"), [(True, 0o600), (False, 0o644)])
def test_who_can_read_a_file(tmp_path: Path, private: bool, mode: int) -> None:
    path = tmp_path / "launches.json"
    write_whole(path, b"{}", private=private)
    assert stat.S_IMODE(path.stat().st_mode) == mode
