"""A long work spread over processes: the order of the results, a process that dies, and Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path

import pytest

from pipesim.answers.spread import processors, spread
from pipesim.process.system import ENDING
from tests.support.paths import with_root

FOREVER = 10_000


def told(part: object, error: BaseException) -> str:
    return f"{part}: {type(error).__name__}"


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_in_the_order_of_the_parts(jobs: int) -> None:
    over: list[int] = []
    assert spread(["a", "bb", "ccc"], len, lambda part, error: -1, over.append, jobs) == [1, 2, 3]
    assert sorted(over) == [0, 1, 2]
    assert active_children() == []


@pytest.mark.slow
def test_a_process_that_dies_is_told() -> None:
    found = spread([0, 1], os._exit, told, lambda n: None, 2)
    assert found == ["0: BrokenProcessPool", "1: BrokenProcessPool"]


@pytest.mark.slow
def test_an_interrupt_ends_what_is_under_way() -> None:
    def interrupted(n: int) -> None:
        raise KeyboardInterrupt

    begun = time.monotonic()
    assert (
        spread([0, FOREVER, FOREVER, FOREVER], time.sleep, told, interrupted, 2)[1:]
        == [f"{FOREVER}: KeyboardInterrupt"] * 3
    )
    assert active_children() == []
    assert time.monotonic() - begun < FOREVER / 2


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_over_when_an_interrupt_comes_is_kept(jobs: int) -> None:
    def interrupted(n: int) -> None:
        raise KeyboardInterrupt

    found = spread([0, FOREVER, FOREVER], time.sleep, told, interrupted, jobs)
    assert found == [None, f"{FOREVER}: KeyboardInterrupt", f"{FOREVER}: KeyboardInterrupt"]
    assert active_children() == []


def test_an_interrupt_before_anything_is_over_is_raised() -> None:
    def interrupted(part: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spread([0, 1], interrupted, told, lambda n: None, 1)


#: A file whose workers say so on a FIFO that they hold open, and wait.
WORKERS = """
import signal, sys
from pipesim.answers.spread import spread
from pipesim.process.watch import SignalError, Watch, exit_code_of

def waits(fifo):
    global held
    held = open(fifo, "wb", buffering=0)
    held.write(b"x")
    signal.pause()

if __name__ == "__main__":
    try:
        with Watch():
            spread(sys.argv[1:3], waits, lambda part, error: None, lambda n: None, 2)
    except SignalError as error:
        sys.exit(exit_code_of(error))
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_outlives_this_one(tmp_path: Path, number: signal.Signals) -> None:
    fifo, program = tmp_path / "fifo", tmp_path / "workers.py"
    os.mkfifo(fifo)
    program.write_text(WORKERS)
    command = [sys.executable, str(program), str(fifo), str(fifo)]
    kept = with_root(os.environ)
    parent = subprocess.Popen(command, env=kept, stderr=subprocess.PIPE)
    with fifo.open("rb", buffering=0) as held:
        begun = b""
        while len(begun) < 2:
            begun += held.read(2)
        parent.send_signal(number)
        assert held.read() == b""  # the end of the file: no process has it open for writing
    _, said = parent.communicate(timeout=60)
    if number == signal.SIGTERM:
        assert (parent.returncode, said) == (143, b"")
    else:  # the process that keeps the semaphores removes them, and says so
        assert (parent.returncode, b"Traceback" in said) == (-9, False)


@pytest.mark.slow
def test_a_process_leaves_the_signals_of_a_terminal_to_this_one() -> None:
    def to_all(n: int) -> None:
        if n == 0:
            for child in active_children():
                for number in ENDING:
                    os.kill(child.pid or 0, number)

    assert spread([0, 0, 0], time.sleep, told, to_all, 2) == [None] * 3


def test_there_is_a_processor() -> None:
    assert processors() >= 1
