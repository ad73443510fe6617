"""When a program is dumped: a person asks, or nothing has moved in it for a time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from pipesim.answers.views.launches import HangCause, ProcessDump
from pipesim.errors import UsageError
from pipesim.hang.dumps import (
    ENABLE,
    LEFT_OUT,
    WATCHER,
    environment_of,
    is_alive,
    is_complete,
    moved,
    sees_other_files,
    take_dumps,
    targets_of,
    tree_of,
)

_PLACES = (Path("/usr/local/cuda/bin/cuda-gdb"), Path("/opt/cuda/bin/cuda-gdb"))
_PATIENCE_S = 120.0
_MOST_SHOWN = 3  #: lines of what the debugger said


def dump_by_debugger(process: int, file: Path) -> None:
    """Have cuda-gdb write the dump of a process's GPUs. UsageError if it is not installed, or does not."""
    if not is_alive(process):
        raise UsageError(f"there is no process {process}", correction="give the number of the program that hangs")
    found = shutil.which("cuda-gdb") or next((str(each) for each in _PLACES if os.access(each, os.X_OK)), None)
    if found is None:
        raise UsageError(
            "cuda-gdb is not installed",
            cause="it is neither in PATH nor in /usr/local/cuda/bin",
            correction="install it with the CUDA toolkit; a program that was started by `pipesim hang` needs no "
            f"debugger: pipesim hang --now {process}",
        )
    write = f"generate-core-file --no-cpu --cuda-flags {LEFT_OUT} --cuda-core-file {file}"
    words = [found, "-nx", "--pid", str(process), "-batch", "-ex", "set confirm off", "-ex", write, "-ex", "detach"]
    try:
        ran = subprocess.run(  # noqa: S603  # a debugger by its path, without a shell
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PATIENCE_S,
            check=False,
        )
        said = ran.stdout
    except subprocess.TimeoutExpired as error:
        said = error.stdout or b""
    if not is_complete(file):
        lines = [each for each in said.decode("utf-8", "replace").splitlines() if each.strip()]
        raise UsageError(
            "cuda-gdb wrote no core dump",
            place=f"process {process}",
            cause="; ".join(lines[-_MOST_SHOWN:]) or "it said nothing",
            correction="run as the program's user, or as root; in a container with --cap-add SYS_PTRACE; elsewhere "
            "kernel.yama.ptrace_scope may forbid it. No other debugger may be attached, and cuda-gdb has to know "
            "generate-core-file --no-cpu (CUDA 13 does)",
        )


_EVERY_S = 1.0  #: between two looks at what has moved


class HangWatch:
    """Looks at a program while it runs, and has it dumped once.

    ``after``: seconds in which no process that has a CUDA context, and none that it has started, has read or written a
    byte, begun or ended; None: as long as a person likes. What a GPU does cannot be seen from outside, so a program
    that computes for so long without a word counts as one that makes no progress. ``tell`` gets what a person is to
    know while the program runs.
    """

    def __init__(
        self, after: float | None, tell: Callable[[str], None], clock: Callable[[], float] = monotonic
    ) -> None:
        self.cause: HangCause | None = None
        self.dumps: tuple[ProcessDump, ...] = ()
        self._after = after
        self._tell, self._clock = tell, clock
        self._looked = self._since = clock()
        self._moved: dict[str, int] = {}
        self._asked = False

    def ask(self) -> None:
        """A person wants the dump now."""
        self._asked = True

    def look(self, program: int) -> None:
        """Dump the program if it is time to, which ends it."""
        cause = self._due(program) if self.cause is None else None
        if cause is not None and targets_of(tree_of(program)):
            self.cause, self.dumps = cause, take_dumps(program)
        elif cause is not None:
            self._asked = False
            self._tell("no process of the program has a CUDA context that can be dumped: it continues")

    def _due(self, program: int) -> HangCause | None:
        if self._asked:
            return HangCause.ASKED
        now = self._clock()
        if self._after is None or now - self._looked < min(_EVERY_S, self._after):
            return None
        self._looked, before = now, self._moved
        targets = targets_of(tree_of(program))
        self._moved = moved({each for target in targets for each in tree_of(target.process)})
        if self._moved != before or not targets:
            self._since = now
        return HangCause.STOOD_STILL if now - self._since >= self._after else None


def dump_now(process: int) -> tuple[ProcessDump, ...] | None:
    """Have a program dumped by another terminal's wish.

    None where ``pipesim hang`` watches it: that process does it, and says what it found. Otherwise the program was
    started with the driver's variables, and this process does it. UsageError if neither is so.
    """
    everyone = tree_of(process)
    if not everyone:
        raise UsageError(f"there is no process {process}", correction="name the program, or the pipesim that runs it")
    for each in everyone:
        watcher = environment_of(each).get(WATCHER, "")
        if watcher.isdecimal() and each in tree_of(int(watcher)):
            os.kill(int(watcher), signal.SIGQUIT)
            return None
    if not targets_of(everyone) and sees_other_files(process):
        raise UsageError(
            f"process {process} is in another container",
            cause="its pipe and its core dump are files there",
            correction="ask there, with the number that the process has there: "
            "docker exec CONTAINER pipesim hang --now PID",
        )
    if not targets_of(everyone):
        raise UsageError(
            f"process {process} cannot be dumped",
            cause=f"neither it nor one that it started has a CUDA context and was started with {ENABLE}=1, and with "
            "CUDA_COREDUMP_PIPE and CUDA_COREDUMP_FILE; or they are another user's",
            correction="start it with: pipesim hang -- COMMAND",
        )
    return take_dumps(process)
