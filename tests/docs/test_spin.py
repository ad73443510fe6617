"""docs/spin.md: the commands it gives, and what SPIN prints on them where it is installed."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from pipesim.cli.main import main
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "spin.md").read_text(encoding="utf-8")
COMMANDS = [shlex.split(line) for line in re.findall(r"```\n(pipesim export .*?)```", PAGE, re.DOTALL)[0].splitlines()]


def told(what: str) -> str:
    (block,) = re.findall(rf"<!-- {re.escape(what)} prints -->\n```\n(.*?)```", PAGE, re.DOTALL)
    return str(block)


@pytest.fixture
def exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the page's first command has written its file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    assert main(COMMANDS[0][1:]) == 0
    return tmp_path


def test_the_file_says_the_commands_of_the_page(exported: Path) -> None:
    head = (exported / "ring.pml").read_text(encoding="utf-8").splitlines()[:10]
    said = [line.removeprefix(" *   ").replace("FILE", "ring.pml") for line in head if line.startswith(" *   ")]
    assert said == [" ".join(command) for command in COMMANDS[1:]]


@pytest.mark.skipif(not (shutil.which("spin") and shutil.which("tcc")), reason="spin or tcc is not installed")
def test_what_spin_prints(exported: Path) -> None:
    spin, tcc, pan = COMMANDS[1:]
    subprocess.run([spin[0], "-Pcat", *spin[1:]], check=True, capture_output=True)
    subprocess.run([tcc[0], "-w", *tcc[1:]], check=True, capture_output=True)
    assert told("pan") in subprocess.run(pan, check=False, capture_output=True, text=True).stdout
    walked = subprocess.run(["spin", "-Pcat", "-t", "-p", "ring.pml"], check=False, capture_output=True, text=True)
    assert told("spin -t") in walked.stdout
    line = int(re.findall(r"a0_load:1\) ring.pml:(\d+)", told("spin -t"))[0])
    above = (exported / "ring.pml").read_text(encoding="utf-8").splitlines()[line - 2]
    assert re.search(r"WAIT barrier=5 parity=0 .*ring_forgets.py:\d+", above)
