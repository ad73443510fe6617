"""What the work iterators share: a tile, loop marks, and that ``for`` iterates over a copy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from pipesim.errors import ProtocolError
from pipesim.lang.author_line import author_line
from pipesim.lang.warp import Warp
from pipesim.pipelines.common.pipeline_state import PipelineState


@dataclass(frozen=True)
class WorkInfo:
    """A tile: its number among those that this cluster gets (upstream: its coordinates), and whether it is one."""

    index: int
    is_valid_tile: bool

    def is_valid(self) -> bool:
        """False for what follows the last tile."""
        return self.is_valid_tile


class TileWalk(ABC):
    """The base of the work iterators: the current tile, a consumer state, and a loop over ``tiles`` that leaves marks.

    ``for`` iterates over a copy, as upstream's does: what ``__next__`` advances, it advances there.
    """

    def __init__(self, w: Warp, num_stages: int, tiles: int, parameter: str) -> None:
        self.w = w
        self.tiles = tiles
        self.parameter = parameter
        self.work_info = WorkInfo(0, is_valid_tile=tiles > 0)
        self.consumer_state = PipelineState(num_stages)
        self._trips: Iterator[int] | None = None

    def __iter__(self) -> Self:
        return self.copy()

    @abstractmethod
    def __next__(self) -> WorkInfo:
        """The next tile; StopIteration after the last."""

    def copy(self) -> Self:
        """A copy with counters of its own. One that has begun cannot be copied: its loop marks are one loop's."""
        if self._trips is not None:
            raise ProtocolError(
                "a work iterator was copied after its first tile",
                place=author_line(),
                cause="`for` copies the iterator that it is given",
                correction="give `for` a fresh one",
            )
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.consumer_state = self.consumer_state.copy()
        return twin

    def mark(self) -> None:
        """The loop mark that belongs before the next tile, or after the last one."""
        if self._trips is None:
            self._trips = self.w.loop(self.tiles, self.parameter)
        next(self._trips, None)
