"""The parts of a long work spread over processes: results in the order of the parts; whatever ends one ends all."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import TypeVar

from pipesim.process.parent import end_with
from pipesim.process.system import ENDING, HAS_FORK, HELD, hold_signals, set_held
from pipesim.process.watch import Watch, current, signals_held

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")
_SAFE_PATH = "PYTHONSAFEPATH"  #: of the environment: a Python that is started has no folder of its own on its path


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spread(
    parts: Sequence[_Part],
    do: Callable[[_Part], _Result],
    failed: Callable[[_Part, BaseException], _Result],
    done: Callable[[int], None],
    jobs: int,
    keep: Callable[[int, _Result], None] = lambda n, result: None,  # noqa: ARG005
) -> list[_Result]:
    """``do`` of every part, in ``jobs`` processes; in this one if that is 1.

    ``do`` must not raise, and parts and results can be pickled; ``failed`` is asked for the result of a part whose
    process died, and of all that is left when a KeyboardInterrupt ends the work, which is raised if nothing is over.
    ``done`` is called with the index of every part that is over, in any order, and before that ``keep`` with its
    result as well. The processes have the memory limit of this one. They end with it, however it ends, and leave the
    signals to it.
    """
    found: dict[int, _Result] = {}
    try:
        if min(jobs, len(parts)) <= 1:
            for n, part in enumerate(parts):
                found[n] = do(part)
                keep(n, found[n])
                done(n)
        else:
            with processes(min(jobs, len(parts))) as pool:
                with children_started():
                    waiting = {pool.submit(do, part): n for n, part in enumerate(parts)}
                for future in as_completed(waiting):
                    n, error = waiting[future], future.exception()
                    found[n] = future.result() if error is None else failed(parts[n], error)
                    keep(n, found[n])
                    done(n)
    except KeyboardInterrupt as error:
        if not found:
            raise
        current().resume()
        found = {n: failed(part, error) for n, part in enumerate(parts)} | found
    return [found[n] for n in range(len(parts))]


@contextmanager
def children_started() -> Iterator[None]:
    """Processes are started in the block, whole, and get no signal of a terminal before they can ignore it.

    One of them keeps the semaphores of the others, and ignores only two of the signals by itself. None of them looks
    for modules in the current folder, where a file may be called ``multiprocessing.py``: ``python -c`` would.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        with signals_held():
            if HAS_FORK:
                from multiprocessing.resource_tracker import ensure_running

                ensure_running()
                hold_signals(HELD)  # starting that process has unblocked two
            yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def begin_process(parent: int, most_bytes: int | None) -> None:
    """In a new process."""
    end_with(parent)
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)  # a signal that waits is dropped
    set_held(hold_signals(()) - {*HELD})
    Watch(most_bytes, signals=()).__enter__()  # as long as the process lives


@contextmanager
def processes(
    jobs: int, begin: Callable[..., None] = begin_process, given: tuple[object, ...] = ()
) -> Iterator[ProcessPoolExecutor]:
    """Processes, ``jobs`` of them, which end with the block; where it raises they are killed.

    ``begin``: what each does first, :func:`begin_process` with what is ``given`` as well.
    """
    others = set(active_children())
    # spawned, not forked: a fork would copy the locks of the threads that Arrow and the progress line have
    with children_started():
        known = (os.getpid(), current().most_bytes, *given)
        pool = ProcessPoolExecutor(jobs, get_context("spawn"), begin, known)
    try:
        yield pool
    except BaseException:
        for child in set(active_children()) - others:
            child.kill()  # what they compute is not needed any more, may take long, and exists only in them
        raise
    finally:
        pool.shutdown(cancel_futures=True)
