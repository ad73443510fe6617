"""What a protocol's file does to its process is not done to the command: no wrong exit code, no word in its report."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipesim import protocol_process, targets
from pipesim.errors import ProtocolError
from pipesim.process.limits import LimitReachedError
from pipesim.process.system import ENDING
from pipesim.process.watch import Watch
from tests.support.fixture_types import Call
from tests.support.paths import ROOT, with_root

User = Callable[[str], None]

MINE = "a raised Mine: (its text cannot be read)"
RING = """
import os, signal, sys, threading, time
from pipesim import Protocol
{module}

def ring(tiles: int = 2):
    p = Protocol("ring")
    full = p.mbarriers("full", 1, 1)

    @p.role("a")
    def a(w):
        {role}
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                full[0].arrive()
                full[0].wait(i & 1)
    return p
"""
CHECK = ("check", "mine.py:ring", "--quick")


def ring(role: str = "pass", module: str = "") -> str:
    return RING.format(role=role, module=module)


@pytest.fixture(autouse=True)
def _nothing_runs_afterwards() -> Any:
    yield
    assert not protocol_process._running


SPOIL = """
def spoil():
    for descriptor in range(3, 99):
        try:
            os.write(descriptor, b"x" * 99)
        except OSError:
            pass
"""
ENDED = "pipesim: the process of mine.py:ring ended before it returned a program"


@pytest.mark.parametrize(
    ("text", "how"),
    [
        pytest.param(ring("os._exit(0)"), "exit code 0", id="exit in a role"),
        pytest.param(ring(module="os._exit(0)"), "exit code 0", id="exit at import"),
        pytest.param(ring("os._exit(7)"), "exit code 7", id="another exit code"),
        pytest.param(ring("os.kill(os.getpid(), signal.SIGKILL)"), "ended by SIGKILL", id="killed"),
        pytest.param(ring("os.kill(os.getpid(), signal.SIGTERM)"), "ended by SIGTERM", id="ended"),
        pytest.param(ring("os.closerange(3, 99)"), "exit code 1", id="files closed"),
        pytest.param(ring("spoil()", SPOIL), "its answer is damaged", id="its answer written over"),
    ],
)
def test_a_process_that_ends_early_or_lies_is_no_success(call: Call, user: User, text: str, how: str) -> None:
    user(text)
    answer = call(*CHECK)
    assert (answer.code, answer.out, answer.error[0]) == (2, "", ENDED)
    assert answer.error[1].startswith(f"  probable cause: {how}: ")


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_that_the_command_ignores_does_not_end_one(call: Call, user: User, number: signal.Signals) -> None:
    """As under nohup, and in a worker, which leaves the signals of a terminal to its parent."""
    user(ring(f"os.kill(os.getpid(), {int(number)})"))
    usual = signal.signal(number, signal.SIG_IGN)
    try:
        assert call(*CHECK).code == 0
    finally:
        signal.signal(number, usual)


@pytest.mark.parametrize(
    ("text", "fact", "line"),
    [
        (ring("sys.exit(0)"), "a role of mine.py:ring calls sys.exit()", 12),
        (ring(module="sys.exit(0)"), "mine.py cannot be imported: SystemExit: 0", 4),
        (ring("raise Mine('no')", "class Mine(BaseException): pass"), "a raised Mine: no", 12),
        (ring(module="globals().clear()"), "mine.py:ring raised NameError: name 'Protocol' is not defined", 7),
        (ring(module="raise BaseException"), "mine.py cannot be imported: BaseException", 4),
        (ring("raise KeyboardInterrupt"), "a role or the file raised KeyboardInterrupt", 12),
        (ring("raise Mine", "class Mine(Exception):\n    def __str__(self): raise ValueError"), MINE, 13),
        (ring("raise Mine", "class Mine(Exception):\n    def __str__(self): sys.exit(0)"), MINE, 13),
    ],
)
def test_whatever_is_raised_is_an_error_at_its_line(
    call: Call, user: User, tmp_path: Path, text: str, fact: str, line: int
) -> None:
    user(text)
    answer = call(*CHECK)
    assert (answer.code, answer.out) == (2, "")
    assert answer.error[:2] == [f"pipesim: {fact}", f"  at: {tmp_path / 'mine.py'}:{line}"]


@pytest.mark.sampled(2, 7)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ring(), id="nothing"),
        pytest.param(ring("os.write(1, b'raw')", "print('loud')\nos.write(1, b'raw')"), id="output"),
        pytest.param(ring("sys.__stdout__.write('loud')"), id="output of the interpreter"),
        pytest.param(ring("threading.Thread(target=threading.Event().wait).start()"), id="a thread that stays"),
        pytest.param(ring("os.fork()"), id="a fork"),
        pytest.param(ring("os.fork() or signal.pause()"), id="a fork that stays"),
        pytest.param(ring(module="def __getattr__(name): raise RuntimeError(name)"), id="a module that raises"),
        pytest.param(ring(module="sys.stdout = sys.stderr = None"), id="no output"),
        pytest.param(ring(module="import json, marshal\njson.dumps = None"), id="modules changed"),
        pytest.param(ring(module="import pipesim.prove.check as c\nc.check = None"), id="pipesim changed"),
        pytest.param(ring(module="os.chdir('/')\nsys.path.clear()"), id="another folder"),
        pytest.param(ring(module="signal.signal(signal.SIGTERM, signal.SIG_IGN)"), id="signals ignored"),
    ],
)
def test_the_report_is_that_of_the_program(call: Call, user: User, text: str) -> None:
    user(ring())
    plain = call(*CHECK)
    assert plain.code == 0
    user(text)
    assert call(*CHECK) == plain


@pytest.mark.slow
def test_its_program_is_what_it_is_in_one_process() -> None:
    """The twin: every table and operation comes through, and other parameters make another program."""
    name = f"{ROOT}/tests/support/nine_warps.py:nine_warps"
    apart, here = protocol_process.find(name), targets.find(name)
    try:
        assert (apart.defaults, apart.summary, apart.description, apart.spelling) == (
            here.defaults, here.summary, here.description, here.spelling,
        )  # fmt: skip
        for params in ({}, {"tiles": 2}, {"stages": 1, "full_count": 2}):
            assert apart.build(params, twice=False) == here.build(params)
    finally:
        protocol_process.close()


class TestMemory:
    def test_a_role_that_takes_too_much_of_it(self, user: User, monkeypatch: pytest.MonkeyPatch) -> None:
        """Not of this process: what the other one has is looked at."""
        most = 1 << 40
        monkeypatch.setattr(
            "pipesim.process.watch.resident_bytes", lambda process="self": 0 if process == "self" else most + 1
        )
        user(ring("signal.pause()"))
        with Watch(most) as watch, pytest.raises(LimitReachedError):  # noqa: PT012
            watch.start(None)
            protocol_process.find("mine.py:ring").build()
        protocol_process.close()

    def test_without_a_limit_it_is_an_error_of_the_file(self, user: User) -> None:
        user(ring("bytearray(1 << 62)"))
        with pytest.raises(ProtocolError, match="needs more memory than there is"):
            protocol_process.find("mine.py:ring").build()
        protocol_process.close()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left_by_a_command_that_is_ended(user: User, tmp_path: Path, number: signal.Signals) -> None:
    """Every process that the command starts has its standard error, whose end is read when the last of them is gone."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    user(ring(f"open({str(fifo)!r}, 'w').close(); os.fork(); signal.pause()"))
    command = [sys.executable, "-m", "pipesim", *CHECK]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, env=with_root(os.environ))
    fifo.open("rb").close()  # the role has opened it, too
    child.send_signal(number)
    _, said = child.communicate(timeout=60)
    expected = (143, b"pipesim: ended by SIGTERM\n") if number == signal.SIGTERM else (-number, b"")
    assert (child.returncode, said) == expected
