"""What a launch records: the recorder's memory, how it must be before, and what is in it afterwards."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hwkernels.device.launch import Gpu
from hwkernels.device.memory import allocate
from hwkernels.records.encodings import UNWRITTEN
from hwkernels.source_recorder.counts import fresh_headers, require_counted, settle
from hwkernels.source_recorder.layout import HEADER, LAUNCH, MAX_BARRIERS
from hwkernels.source_recorder.table import Table
from pipesim.errors import KernelHangError, KernelTrapError
from pipesim.model.ending import Ending

Result = TypeVar("Result")
ALL = (0, 0xFFFFFFFF)  #: the first iteration that is recorded, and how many


@dataclass(frozen=True)
class Space:
    """How the recorder's memory is laid out.

    ``record_words``: 32-bit words of a record. ``ctas``: of the launch, each with a header. ``stored``: how many of
    them have buffers, of ``capacity`` records an agent. ``kept``: of how many the records are fetched. ``room``:
    PIPESIM_ROOM. ``host``: in the host's memory, where every record survives. ``window``: the first iteration that is
    recorded, and how many. ``words``: the kernel may leave the words of its barriers. ``marks``: the two iterations at
    which each agent of a launch that is marked reads the clock, () without such launches.
    """

    table: Table
    record_words: int
    ctas: int
    stored: int
    kept: int
    capacity: int
    room: int
    host: bool
    window: tuple[int, int] = ALL
    words: bool = False
    marks: tuple[int, ...] = ()


class Recording:
    """The recorder's memory on a GPU: ``launch_at`` is the address that a traced kernel is given."""

    def __init__(self, gpu: Gpu, space: Space) -> None:
        self._space = space
        self._names = [agent.name for agent in space.table.agents]
        self._words = (space.kept, len(self._names), space.capacity, space.record_words)
        self._headers = allocate(gpu, space.ctas * HEADER.itemsize, host=space.host)
        self._records = allocate(gpu, 4 * space.stored * prod(self._words[1:]), host=space.host)
        self._barrier_words = allocate(gpu, 8 * space.ctas * MAX_BARRIERS * space.words, host=space.host)
        self._marks = allocate(gpu, 16 * space.ctas * len(self._names) * bool(space.marks), host=space.host)
        self.launch_at = gpu.allocate(LAUNCH.itemsize)
        areas = (self._headers.address, self._records.address)
        extra = tuple(area.address if area.nbytes else 0 for area in (self._barrier_words, self._marks))
        marks = space.marks or (0, 0)
        values = (*areas, space.capacity, space.stored, *space.window, len(self._names), 0, *extra, marks)
        gpu.upload(self.launch_at, np.array([values], dtype=LAUNCH))

    def clear(self) -> None:
        """Make it ready for a launch."""
        self._headers.write(fresh_headers(self._space.ctas))
        if self._space.host:
            self._records.fill(UNWRITTEN)
        self._barrier_words.fill(UNWRITTEN)
        self._marks.fill(0)

    def words(self) -> npt.NDArray[np.uint64]:
        """(CTAs, MAX_BARRIERS): the words that the launch left, all ones where it left none; empty if it has none."""
        found = np.zeros((self._space.ctas if self._space.words else 0, MAX_BARRIERS), dtype=np.uint64)
        self._barrier_words.fetch(found)
        return found

    def marks(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint64]]:
        """What a marked launch left: its headers, and (CTAs, agents, 2) clocks, 0 where an agent did not come there."""
        headers = np.zeros(self._space.ctas, dtype=HEADER)
        self._headers.fetch(headers)
        found = np.zeros((self._space.ctas, len(self._names), 2), dtype=np.uint64)
        self._marks.fetch(found)
        return headers, found

    def fetch(self, *, records: bool, finished: bool) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint32]]:
        """Headers and records of the traced launch that has just been made; no records if they are not wanted.

        Raises HardwareError if it finished and an agent did not count what it recorded.
        """
        headers = np.zeros(self._space.ctas, dtype=HEADER)
        self._headers.fetch(headers)
        found = np.zeros(self._words if records else (0, 0, 1, 0), dtype=np.uint32)
        self._records.fetch(found)
        found = found[:, :, 1:]  # the first of a buffer is not used
        if finished:
            require_counted(headers, self._names)
        else:
            settle(headers, found, self._space.room)
        return headers, found


def empty_records() -> tuple[npt.NDArray[Any], npt.NDArray[np.uint32]]:
    """The headers and records of a launch that was not traced: none."""
    return np.zeros(0, dtype=HEADER), np.zeros(0, dtype=np.uint32)


def how_it_ended(launch: Callable[[], Result], *, survives: bool) -> tuple[Ending, Result | None]:
    """Make a launch: FINISHED and its result, or DEADLINE or TRAP.

    Where what was recorded does not survive a launch that hangs or traps, that is an error.
    """
    try:
        return Ending.FINISHED, launch()
    except (KernelHangError, KernelTrapError) as error:
        if not survives:
            raise
        return Ending.DEADLINE if isinstance(error, KernelHangError) else Ending.TRAP, None
