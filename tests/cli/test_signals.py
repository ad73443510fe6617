"""SIGINT, SIGTERM and SIGHUP end a command alike: what is known is kept, nothing is left, the exit code is 128+n."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipesim import targets
from pipesim.process.system import ENDING
from tests.support.fixture_types import Call
from tests.support.paths import ROOT

PC = "producer_consumer"
FEW = ("-p", "tiles=2")
EXPORT = ("export", PC, *FEW, "--to", "promela", "-o", "out.pml")
ENDS = [
    (number, 128 + number, f"pipesim: {'interrupted' if number is signal.SIGINT else f'ended by {number.name}'}\n")
    for number in ENDING
]


def sends(number: signal.Signals) -> Callable[..., None]:
    """What sends a signal to this process, whatever it is given."""
    return lambda *_, **__: signal.raise_signal(number)


@pytest.mark.parametrize(("number", "code", "said"), ENDS)
def test_one_that_a_library_catches_is_not_lost(
    call: Call, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, code: int, said: str
) -> None:
    def swallow(*_: Any, **__: Any) -> None:
        with contextlib.suppress(BaseException):  # as some do where they import what may be missing
            signal.raise_signal(number)

    find = targets.find
    monkeypatch.setattr("pipesim.targets.find", lambda name: swallow() or find(name))
    answer = call("show", PC)
    assert (answer.code, answer.err) == (code, said)


@pytest.mark.parametrize(("number", "code", "said"), ENDS)
def test_one_in_a_write_leaves_nothing(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: signal.Signals, code: int, said: str
) -> None:
    monkeypatch.setattr("os.fsync", sends(number))
    answer = call(*EXPORT)
    assert (answer.code, answer.out, answer.err) == (code, "", said)
    assert list(tmp_path.iterdir()) == []


#: The process sends a signal to itself when a module is looked for; without one, as the interpreter ends.
ITSELF = """
import atexit, importlib.abc, os, signal, sys

number, module = int(sys.argv.pop(1)), sys.argv.pop(1)

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == module:
            os.kill(os.getpid(), number)

if not module:
    atexit.register(os.kill, os.getpid(), number)
sys.meta_path.insert(0, Finder())
from pipesim.__main__ import run
sys.exit(run())
"""


def _to_itself(number: int, module: str, *line: str) -> tuple[int, str, str]:
    command = [sys.executable, "-c", ITSELF, str(int(number)), module, *line]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize(("number", "code", "said"), ENDS)
@pytest.mark.parametrize(
    "module",
    [
        "simpy",
        *(pytest.param(each, marks=pytest.mark.long) for each in ("argparse", "pipesim.targets", "numpy.linalg")),
    ],
)
def test_one_while_modules_are_imported(module: str, number: signal.Signals, code: int, said: str) -> None:
    assert _to_itself(number, module, "run", PC, "-p", "tiles=2") == (code, "", said)


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize(
    ("line", "number"), [("--version" if number is signal.SIGTERM else "schema", number) for number in ENDING]
)
def test_one_as_the_interpreter_ends_changes_nothing(line: str, number: signal.Signals) -> None:
    code, out, err = _to_itself(number, "", line)
    assert (code, bool(out), err) == (0, True, "")
