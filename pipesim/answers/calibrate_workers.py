"""The simulations of a fit on all processors: processes that hold the observations, and are asked again and again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import active_children, get_context
from multiprocessing.process import BaseProcess

from pipesim.answers.spread import begin_process, children_started, processors
from pipesim.conform.fit.observation import RunObservation, Vector
from pipesim.process.watch import current
from pipesim.timed.profile import Profile

_WORTH_PROCESSES = 200  #: simulations asked for together that take longer than starting processes
_TOGETHER = 4  #: simulations that a process is sent

_Asked = tuple[int, dict[str, int]]  #: an observation, and the values of a profile


class FitWorkers:
    """A context manager that simulates observations under profiles; the order of what it returns is that asked for.

    Processes are started as soon as they are worth it. They have the memory limit of this one and end with the block.
    """

    def __init__(self, observations: Sequence[RunObservation], base: Profile, jobs: int | None = None) -> None:
        self._observations, self._base = tuple(observations), base
        self._jobs = processors() if jobs is None else jobs
        self._pool: ProcessPoolExecutor | None = None
        self._others: set[BaseProcess] = set()

    def __enter__(self) -> FitWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        if self._pool is None:
            return
        for child in set(active_children()) - self._others:
            child.kill()  # it has no more work
        self._pool.shutdown(cancel_futures=True)
        self._pool = None

    def __call__(self, asked: Sequence[tuple[int, Profile]]) -> list[Vector]:
        """The deviations of each observation under its profile."""
        if self._jobs > 1 and (self._pool is not None or len(asked) >= _WORTH_PROCESSES):
            try:
                return self._by_processes(self._pool or self._start_pool(), asked)
            except BrokenProcessPool:  # one died, as of too little memory: here that is an error that says so
                self._end()
                self._jobs = 1
        return [self._observations[number].deviations(profile) for number, profile in asked]

    def _by_processes(self, pool: ProcessPoolExecutor, asked: Sequence[tuple[int, Profile]]) -> list[Vector]:
        parts = [[(n, each.values) for n, each in asked[at : at + _TOGETHER]] for at in range(0, len(asked), _TOGETHER)]
        with children_started():
            waiting = [pool.submit(_deviations, part) for part in parts]
        return [vector for future in waiting for vector in future.result()]

    def _start_pool(self) -> ProcessPoolExecutor:
        self._others = set(active_children())
        begin = (os.getpid(), current().most_bytes, self._observations, self._base)
        with children_started():
            self._pool = ProcessPoolExecutor(self._jobs, get_context("spawn"), _begin, begin)
        return self._pool


_held: list[tuple[Sequence[RunObservation], Profile]] = []  #: of a process that was started


def _begin(parent: int, most_bytes: int | None, observations: Sequence[RunObservation], base: Profile) -> None:
    begin_process(parent, most_bytes)
    _held.append((observations, base))


def _deviations(asked: Sequence[_Asked]) -> list[Vector]:
    observations, base = _held[-1]
    return [observations[n].deviations(replace(base, values=values)) for n, values in asked]
