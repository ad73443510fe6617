"""Another system than Linux, and a browser: without its signals, limits, forks and packages: the same answers."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path, PureWindowsPath

import pytest

from pipesim.process import system
from pipesim.process.files import write_whole
from pipesim.process.limits import LimitReachedError
from pipesim.process.watch import SignalError, Watch
from pipesim.ptx.emit.names import short_file
from pipesim.ptx.text.locations import source_files
from pipesim.report.text.words import place
from tests.support.paths import ROOT

#: Run before the command: what Windows and a browser do not have is taken away, and what need not be installed.
LESS = """
import sys
from tests.support.less import PACKAGES, take_modules, take_names
take_modules("resource", "fcntl", *PACKAGES)
take_names()
from pipesim.__main__ import run
sys.exit(run())
"""


def said(words: Sequence[str], before: Sequence[str]) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, *before, *words], cwd=ROOT, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize(
    "words",
    [
        ["check", "docs/examples/row_max.ptx", "--json"],
        ["check", "docs/examples/row_max.ptx", "--set", "n=2048", "--json"],
        ["check", "docs/examples/ring.py:ring", "--json"],
        ["check", "docs/examples/ring_forgets.py", "producer_consumer"],
        ["show", "docs/examples/row_max.ptx"],
        ["schema", "check"],
        ["explain", "deadlock"],
    ],
    ids=" ".join,
)
def test_with_less_the_answers_are_the_same(words: list[str]) -> None:
    assert said(words, ["-c", LESS]) == said(words, ["-m", "pipesim"])


@pytest.mark.slow
def test_what_is_less_is_said() -> None:
    code, out, _ = said(["doctor", "--json"], ["-c", LESS])
    parts = json.loads(out)["report"]["parts"]
    problems = [part["problem"] for part in parts if part["name"] == "system"]
    assert code in (0, 1)
    assert problems[0] == system.NO_MEMORY_LIMIT
    assert "no fork" in problems[1]
    assert not list(system.less_than_linux()), "on Linux nothing is"
    _, _, remark = said(["explain", "deadlock", "--max-memory", "1G"], ["-c", LESS])
    assert remark == f"pipesim: {system.NO_MEMORY_LIMIT}\n"


def until_something_is_raised() -> None:
    while True:
        pass


def test_a_package_that_is_missing_is_named() -> None:
    code, out, err = said(["run", "producer_consumer"], ["-c", LESS])
    assert (code, out) == (2, "")
    assert err == "pipesim: this command needs the package simpy, which is not installed\n  try: pip install simpy\n"


class TestWithoutTimers:
    def test_the_thread_looks_at_the_clock(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr(signal, "setitimer")
        monkeypatch.delattr(signal, "pthread_kill")
        with Watch() as watch, pytest.raises(LimitReachedError):  # noqa: PT012  # it may be raised before the loop
            watch.start(0.01)
            until_something_is_raised()


class TestSockets:
    def test_signals_arrive_where_only_sockets_can_be_waited_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(system, "_pipe", system._socket_pair)
        with Watch() as watch:
            with pytest.raises(SignalError):
                signal.raise_signal(signal.SIGTERM)
            assert watch.raised is not None
        assert signal.set_wakeup_fd(-1) == -1


@pytest.mark.skipif(system._fcntl is None and system._msvcrt is None, reason="no file is locked there")
def test_a_file_is_locked_for_one_process(tmp_path: Path) -> None:
    with (tmp_path / "a").open("w+b") as one, (tmp_path / "a").open("r+b") as other:
        system.lock_file(one)
        with pytest.raises(OSError, match="temporarily unavailable"):
            system.lock_file(other)


# Windows: files that are open, and paths


def test_a_file_is_closed_before_it_is_moved_over_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows moves no file that is open."""
    replace = Path.replace

    def moved(path: Path, to: Path) -> Path:
        held = list(Path("/proc/self/fd").iterdir())
        assert path not in [each.readlink() for each in held if each.is_symlink()]
        return replace(path, to)

    monkeypatch.setattr(Path, "replace", moved)
    write_whole(tmp_path / "out", b"before")
    write_whole(tmp_path / "out", b"after", force=True)
    assert (tmp_path / "out").read_bytes() == b"after"


class WindowsPath(PureWindowsPath):
    """A path below the folder in which pipesim runs."""

    @classmethod
    def cwd(cls) -> "WindowsPath":
        return cls("C:/work")


def test_places_have_slashes_on_each_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """As diffs and baselines need them; PTX that was made on Windows is read anywhere."""
    monkeypatch.setattr("pipesim.report.text.words.Path", WindowsPath)
    assert place(r"C:\work\src\k.cu:5") == "src/k.cu:5"
    files = '.file 1 "C:\\\\w\\\\k.cu"\n.file 2 "C:\\\\w" "D:\\\\k.cuh"\n.file 3 "/w" "k.h"'
    assert list(source_files(files).values()) == [r"C:\\w\\k.cu", r"D:\\k.cuh", "/w/k.h"]
    assert [short_file(each) for each in source_files(files).values()] == ["k.cu", "k.cuh", "k.h"]
