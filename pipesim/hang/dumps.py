"""Core dumps on request: each process of a program is asked for one, and all are waited for."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

from pipesim.answers.views.hang import DumpEnd, ProcessDump
from pipesim.coredump.elf import open_elf
from pipesim.errors import PipesimError
from pipesim.hang.coredump_variables import ENABLE, FILE, PIPE, place_of
from pipesim.hang.processes import environment_of, is_alive, send, tree_of

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_QUIET_S = 2.0  #: a complete file that has not grown for so long is final, although its process has not ended
_PATIENCE_S = 60.0  #: for a file that does not grow
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
            target = DumpTarget(each, rank, place_of(given[PIPE], each), place_of(given[FILE], each))
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
            if complete or not alive or quiet > _PATIENCE_S:
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
