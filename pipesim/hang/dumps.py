"""Core dumps of a program, when a person asks or nothing has moved in it for a time: of each of its processes.

A process with these variables makes a pipe for each CUDA context; one byte into it, and the driver stops the GPU,
writes the file, and aborts the process (CUDA-GDB, "GPU core dump support"; seen with driver 580). Nothing is
recompiled, and a launch costs no more.
"""

import os
import platform
import shutil
import signal
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

from pipesim.answers.views.launches import DumpEnd, HangCause, ProcessDump
from pipesim.coredump.elf import open_elf
from pipesim.errors import PipesimError, UsageError
from pipesim.hang.processes import (
    environment_of,
    inner_number,
    is_alive,
    moved,
    sees_other_files,
    send,
    tree_of,
    watcher_of,
)

ENABLE, PIPE, FILE = "CUDA_ENABLE_USER_TRIGGERED_COREDUMP", "CUDA_COREDUMP_PIPE", "CUDA_COREDUMP_FILE"
FLAGS = "CUDA_COREDUMP_GENERATION_FLAGS"
WATCHER = "PIPESIM_HANG"  #: the process that watches
#: Left out of a dump: copies of the machine code, what can be as large as the GPU's memory, and the constant banks. If
#: only the banks are kept of these, driver 580 fails on some kernels: the file ends after the banks, always.
LEFT_OUT = "skip_nonrelocated_elf_images,skip_global_memory,skip_local_memory,skip_constbank_memory"


def dump_environment(
    folder: Path, pipes: Path, *, memory: bool, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The environment of a program whose processes can be dumped to ``folder``, each as ``core.HOST.PID``.

    ``pipes``: another folder, for the pipes, which the driver leaves there. ``memory``: with global and local memory.
    """
    mine = {ENABLE: "1", PIPE: f"{pipes}/%h.%p", FILE: f"{folder.resolve()}/core.%h.%p", WATCHER: str(os.getpid())}
    return {**environment, **({} if memory else {FLAGS: LEFT_OUT}), **mine}


def place_of(value: str, process: int) -> Path:
    """The path that the driver makes of a variable: ``%h`` is the host, ``%p`` the process. ``%t``, a time, stays."""
    return Path(value.replace("%h", platform.node()).replace("%p", str(process)))


_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_QUIET_S = 2.0  #: a complete file that has not grown for so long is final, although its process has not ended
_DUMP_PATIENCE_S = 60.0  #: for a file that does not grow
_ENDING_S = 5.0  #: for a process that was killed
_POLL_S = 0.02


@dataclass(frozen=True)
class DumpTarget:
    """A process that has a CUDA context, and is dumped on request. ``rank``: of a distributed program, "" if none."""

    process: int
    rank: str
    pipe: Path
    file: Path


def targets_of(processes: Iterable[int]) -> tuple[DumpTarget, ...]:
    """Those of the processes whose driver waits at its pipe."""
    found = []
    for each in processes:
        given = environment_of(each)
        if given.get(ENABLE) == "1" and given.get(PIPE) and given.get(FILE):
            rank = next((given[name] for name in _RANKS if name in given), "")
            inner = inner_number(each)
            target = DumpTarget(each, rank, place_of(given[PIPE], inner), place_of(given[FILE], inner))
            if target.pipe.is_fifo():
                found.append(target)
    return tuple(found)


def take_dumps(program: int, wait: Callable[[float], None] = sleep) -> tuple[ProcessDump, ...]:
    """Have each process of a program that uses a GPU dumped, and wait until the files are complete.

    Meanwhile the others are stopped: a launcher that sees one of its ranks end would end the rest, and their dumps
    with them. At the end the program is killed: its contexts are lost.
    """
    everyone = tree_of(program)
    targets = targets_of(everyone)
    others = set(everyone) - {each.process for each in targets}
    send(others, signal.SIGSTOP)
    try:
        asked = {each: _ask(each) for each in targets}
        ends = _wait_for([each for each in targets if asked[each]], wait)
    finally:
        _kill({*others, *tree_of(program)}, wait)
    return tuple(_dump_of(each, ends.get(each, DumpEnd.MISSING)) for each in targets)


def written_meanwhile(folder: Path, before: Collection[Path]) -> tuple[ProcessDump, ...]:
    """Dumps that are new in a folder: the driver writes one of an exception too, and the program ends by itself."""
    new = sorted(each for each in folder.glob("core.*") if each not in before)
    numbers = [(each, each.name.rpartition(".")[2]) for each in new]
    targets = [DumpTarget(int(number), "", folder, each) for each, number in numbers if number.isdecimal()]
    return tuple(_dump_of(each, DumpEnd.COMPLETE if is_complete(each.file) else DumpEnd.TRUNCATED) for each in targets)


def is_complete(path: Path) -> bool:
    """True if a file has all the sections that its header announces; the driver writes their table last."""
    try:
        found = open_elf(path)
    except PipesimError:
        return False
    return found.listed == found.expected > 0 and not found.missing


def _ask(target: DumpTarget) -> bool:
    """Write the byte; False where no driver reads it, as its process is ending. Never waits for a reader."""
    try:
        pipe = os.open(target.pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return os.write(pipe, b"1") == 1
    except OSError:
        return False
    finally:
        os.close(pipe)


def _wait_for(targets: Sequence[DumpTarget], wait: Callable[[float], None]) -> dict[DumpTarget, DumpEnd]:
    """How the dump of each ended. It is final when its process has ended, or it is complete and grows no more."""
    ends: dict[DumpTarget, DumpEnd] = {}
    grown = {each: (0, monotonic()) for each in targets}
    while len(ends) < len(targets):
        for each in targets:
            if each in ends:
                continue
            alive = is_alive(each.process)  # asked first: what it wrote before it ended is in the file
            size = _size(each.file)
            if size != grown[each][0]:
                grown[each] = size, monotonic()
            quiet = monotonic() - grown[each][1]
            if alive and quiet < _QUIET_S:
                continue
            complete = is_complete(each.file)
            if complete or not alive or quiet > _DUMP_PATIENCE_S:
                ends[each] = DumpEnd.COMPLETE if complete else DumpEnd.TRUNCATED if size else DumpEnd.MISSING
        wait(_POLL_S)
    return ends


def _kill(processes: Collection[int], wait: Callable[[float], None]) -> None:
    """Kill them, and see them end, unless one is held in a call of the driver."""
    send(processes, signal.SIGKILL)
    patience = monotonic() + _ENDING_S
    while any(map(is_alive, processes)) and monotonic() < patience:
        wait(_POLL_S)


def _dump_of(target: DumpTarget, end: DumpEnd) -> ProcessDump:
    return ProcessDump(target.process, target.rank, str(target.file), _size(target.file), end)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


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
        watcher = watcher_of(each, environment_of(each).get(WATCHER, ""))
        if watcher is not None:
            os.kill(watcher, signal.SIGQUIT)
            return None
    if not targets_of(everyone) and sees_other_files(process):
        raise UsageError(
            f"process {process} is in another container",
            cause="its pipe and its core dump are files there",
            correction="ask there, with the number that the process has there: docker exec CONTAINER "
            f"pipesim hang --now {inner_number(process)}. Of a program that was started there by pipesim hang, "
            "--now of that one can be asked from here too",
        )
    if not targets_of(everyone):
        raise UsageError(
            f"process {process} cannot be dumped",
            cause=f"neither it nor one that it started has a CUDA context and was started with {ENABLE}=1, and with "
            "CUDA_COREDUMP_PIPE and CUDA_COREDUMP_FILE; or they are another user's",
            correction="start it with: pipesim hang -- COMMAND",
        )
    return take_dumps(process)
