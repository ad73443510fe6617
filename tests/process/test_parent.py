"""A child ends with the process that started it, however that one ends. What a child holds open says that it lives."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

#: A process that starts a child, which says so on a FIFO that it holds open, and then waits without end.
PARENT = """
import os, subprocess, sys
from pipesim.process.parent import environment
env = {**os.environ, **environment()} if sys.argv[3] == "watched" else None
subprocess.run([sys.executable, sys.argv[1], sys.argv[2]], env=env)
"""
CHILD = """
import signal, sys
from pipesim.process.parent import end_with_parent
end_with_parent()
held = open(sys.argv[1], "wb", buffering=0)
held.write(b"x")
signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_ends_with_its_parent(tmp_path: Path, number: signal.Signals) -> None:
    fifo, child = tmp_path / "fifo", tmp_path / "child.py"
    os.mkfifo(fifo)
    child.write_text(CHILD)
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(child), str(fifo), "watched"])
    with fifo.open("rb") as held:
        assert held.read(1) == b"x"
        parent.send_signal(number)
        assert parent.wait(60) == -number
        assert held.read() == b""  # the end of the file: no process has it open for writing


def test_it_ends_also_where_the_parent_has_ended_before(tmp_path: Path) -> None:
    variables = {**os.environ, "PIPESIM_PARENT": "1" * 9}  # no process has this number
    (tmp_path / "child.py").write_text(CHILD)
    ended = subprocess.run([sys.executable, tmp_path / "child.py", tmp_path / "fifo"], env=variables, check=False)
    assert (ended.returncode, (tmp_path / "fifo").exists()) == (1, False)


def test_a_process_that_nobody_watches_goes_on(tmp_path: Path) -> None:
    """The twin: what :func:`end_with_parent` does is done for the children of pipesim only."""
    script = "from pipesim.process.parent import end_with_parent; end_with_parent(); print('there')"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout == "there\n"
