"""``autopsy --pid``: cuda-gdb writes the dump of a program that was started without any preparation."""

import lzma
import os
import sys
from pathlib import Path

import pytest

from pipesim.cli.main import main

DUMP = Path(__file__).with_name("dumps") / "one_of_64_bare.h200.elf.xz"
#: Does what cuda-gdb was seen to do: one command has the file's name at its end.
DEBUGGER = """#!{python}
import sys
from pathlib import Path
(write,) = [each for each in sys.argv if each.startswith("generate-core-file")]
print("[New LWP 1]")
{does}
"""


def debugger(folder: Path, does: str) -> None:
    file = folder / "cuda-gdb"
    file.write_text(DEBUGGER.format(python=sys.executable, does=does), encoding="utf-8")
    file.chmod(0o755)


def said(capsys: pytest.CaptureFixture[str]) -> str:
    both = capsys.readouterr()
    return " ".join((both.out + both.err).split())


def test_a_dump_by_the_debugger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "core").write_bytes(lzma.decompress(DUMP.read_bytes()))
    debugger(tmp_path, f"Path(write.split()[-1]).write_bytes(Path({str(tmp_path / 'core')!r}).read_bytes())")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["autopsy", "--pid", str(os.getpid())]) == 1
    assert "CTA 37 of 64" in said(capsys)


@pytest.mark.parametrize(
    ("does", "words"),
    [
        (
            "print('ptrace: Operation not permitted.')",
            "ptrace: Operation not permitted. try: run as the program's user",
        ),
        ("Path(write.split()[-1]).write_bytes(bytes(100))", "cuda-gdb wrote no core dump"),
        (None, "cuda-gdb is not installed"),
    ],
)
def test_what_is_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], does: str | None, words: str
) -> None:
    if does is not None:
        debugger(tmp_path, does)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["autopsy", "--pid", str(os.getpid())]) == 2
    assert words in said(capsys)
    assert main(["autopsy", "--pid", "99999999"]) == 2
    assert "there is no process" in said(capsys)
