"""An answer does not depend on what else the machine does: six commands side by side say what each says alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipesim.model.program_json import dumps
from tests.support.paths import EXAMPLES, with_root
from tests.support.random_programs import FAMILIES

#: A kernel that hangs and one that is right, with corrections of each kind; a search; processes of the command's own.
COMMANDS = (
    ("check", str(EXAMPLES / "row_max.ptx")),
    ("check", str(EXAMPLES / "ring_forgets.py"), "--json"),
    ("check", str(EXAMPLES / "scale_forgets.py")),
    ("check", "searched.json"),
    ("verify", "producer_consumer", str(EXAMPLES / "ring.py"), "--no-hardware", "--jobs", "2"),
    ("sweep", "producer_consumer", "-p", "tiles=4", "-p", "stages=1..3", "--jobs", "2", "--csv", "rows.csv"),
)


def started(words: tuple[str, ...], folder: Path, seed: int) -> subprocess.Popen[bytes]:
    """The command in a folder of its own, with another order of what Python does not order."""
    folder.mkdir()
    (folder / "searched.json").write_text(dumps(FAMILIES["exchanged"](4)), encoding="utf-8")
    line = [sys.executable, "-m", "pipesim", *words]
    environment = with_root(os.environ) | {"PYTHONHASHSEED": str(seed)}
    return subprocess.Popen(line, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def answer(process: subprocess.Popen[bytes], folder: Path) -> tuple[int, bytes, bytes, dict[str, bytes]]:
    out, err = process.communicate()
    return process.returncode, out, err, {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.long
def test_six_side_by_side_say_what_each_says_alone(tmp_path: Path) -> None:
    alone = []
    for n, words in enumerate(COMMANDS):
        folder = tmp_path / f"alone{n}"
        alone.append(answer(started(words, folder, 0), folder))
    folders = [tmp_path / f"beside{n}" for n in range(len(COMMANDS))]
    running = [started(words, folder, n + 1) for n, (words, folder) in enumerate(zip(COMMANDS, folders, strict=True))]
    beside = [answer(process, folder) for process, folder in zip(running, folders, strict=True)]
    assert [code for code, *_ in alone] == [1, 1, 1, 0, 0, 0]
    for words, here, there in zip(COMMANDS, alone, beside, strict=True):
        assert here == there, words
