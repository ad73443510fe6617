"""Cases in a process of their own: 60 seconds and 500 MB each, what it cost, and what the process left running."""

import os
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

from tools.fuzz.cases import Case, judged
from tools.fuzz.kinds import KINDS
from tools.fuzz.runner import run

SECONDS = 60
MEGABYTES = 500
_LOOK = 0.05  #: seconds between two looks at a worker


@dataclass(frozen=True)
class Result:
    """What came of one case. ``code`` is None if its process did not live to say it."""

    kind: str
    seed: int
    what: str = ""
    code: int | None = None
    wrong: tuple[str, ...] = ()
    seconds: float = 0.0
    megabytes: int = 0
    confirmed: bool = False


def case_of(kind: str, seed: int) -> Case:
    """The case of a seed: the same on every machine."""
    return KINDS[kind](Random(f"{kind}:{seed}"))  # no secret


def carry_out(kind: str, seed: int) -> Result:
    """One case in this process, in a folder that is gone afterwards."""
    case = case_of(kind, seed)
    folder = Path(tempfile.mkdtemp(prefix="fuzz"))
    _forget_peak()
    try:
        answer = run(case, folder)
        peak = _memory(os.getpid(), "VmHWM")
        with chdir(folder):  # where the case's files are
            wrong, confirmed = judged(case, answer)
    except Exception as error:  # noqa: BLE001  # a mistake of the fuzzer is not an answer either
        last = traceback.extract_tb(error.__traceback__)[-1]
        said = f"the fuzzer itself: {type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
        return Result(kind, seed, case.what, None, (said,))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Result(kind, seed, _short(case), answer.code, tuple(wrong), answer.seconds, peak, confirmed)


def _short(case: Case) -> str:
    return f"{case.what}; {' '.join(case.words)}"[:200]


def in_workers(tasks: Iterable[tuple[str, int]], workers: int) -> Generator[Result]:
    """The results of all cases, each in one of ``workers`` processes, in the order of the tasks."""
    started = [_Worker() for _ in range(workers)]
    idle = list(started)

    def one(task: tuple[str, int]) -> Result:
        worker = idle.pop()
        try:
            return worker.result(*task)
        finally:
            idle.append(worker)

    try:
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(one, tasks)
    finally:
        for worker in started:
            worker.end()


class _Worker:
    """One process, started where there is none, and killed where a case goes beyond a limit."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        context = get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there,), daemon=True)
        self._process.start()
        there.close()
        self._here.recv()  # its imports are done

    def result(self, kind: str, seed: int) -> Result:
        """One case's."""
        self._here.send((kind, seed))
        began, most = time.monotonic(), 0
        assert self._process.pid is not None
        while not self._here.poll(_LOOK):
            spent, used = time.monotonic() - began, _memory(self._process.pid, "VmRSS")
            most = max(most, used)
            if spent > SECONDS or used > MEGABYTES:
                said = f"more than {SECONDS} s" if spent > SECONDS else f"more than {MEGABYTES} MB"
                self._again()
                return Result(kind, seed, _short(case_of(kind, seed)), None, (said,), spent, most)
        try:
            found: Result = self._here.recv()
        except EOFError:
            self._process.join()
            code = self._process.exitcode
            self._again()
            return Result(kind, seed, _short(case_of(kind, seed)), None, (f"the process ended with {code}",))
        left = _children(self._process.pid)
        if left:
            self._again()
            found = replace(found, wrong=(*found.wrong, f"left running: {left} processes"))
        if found.megabytes > MEGABYTES:
            found = replace(found, wrong=(*found.wrong, f"more than {MEGABYTES} MB"))
        return found

    def _again(self) -> None:
        self.end()
        self._start()

    def end(self) -> None:
        """Kill the process and all that it started, which are one group."""
        if self._process.pid is not None and self._process.is_alive():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._here.close()
        self._process.join()


def _serve(pipe: Connection) -> None:
    """In the process: case after case, until the pipe ends. Its own streams go nowhere."""
    os.setpgid(0, 0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    pipe.send(None)
    with suppress(EOFError, OSError):
        while True:
            pipe.send(carry_out(*pipe.recv()))


def _memory(pid: int, field: str) -> int:
    """Megabytes of a process; 0 if it has gone."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) // 1024
    return 0


def _forget_peak() -> None:
    """Let the peak of this process count from now on (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _children(pid: int) -> int:
    """Processes that a process has started and that still run (Linux)."""
    with suppress(OSError):
        return len(Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split())
    return 0
