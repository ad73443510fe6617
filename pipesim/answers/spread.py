"""The parts of a long work spread over processes: results in the order of the parts, Ctrl-C ends them all."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import active_children, get_context
from typing import TypeVar

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")


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
) -> list[_Result]:
    """``do`` of every part, in ``jobs`` processes; in this one if that is 1.

    ``do`` must not raise, and parts and results can be pickled; ``failed`` is asked for the result of a part whose
    process died. ``done`` hears the index of every part that is over, in any order.
    """
    if min(jobs, len(parts)) <= 1:
        results = []
        for n, part in enumerate(parts):
            results.append(do(part))
            done(n)
        return results
    found: dict[int, _Result] = {}
    others = set(active_children())
    # spawned, not forked: a fork would copy the locks of the threads that Arrow and the progress line have
    pool = ProcessPoolExecutor(min(jobs, len(parts)), get_context("spawn"), _leave_interrupts_to_the_parent)
    try:
        waiting = {pool.submit(do, part): n for n, part in enumerate(parts)}
        for future in as_completed(waiting):
            n, error = waiting[future], future.exception()
            found[n] = future.result() if error is None else failed(parts[n], error)
            done(n)
    except BaseException:
        for child in set(active_children()) - others:
            child.kill()  # what they compute is wanted no more, may take long, and is nowhere but in them
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return [found[n] for n in range(len(parts))]


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
