"""How often an agent passed each of its sites, and so which of its operations a recorder with a window kept."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

EVERY = 1 << 62  #: the end of a window that never ends


@dataclass(frozen=True)
class Sight:
    """What can be seen of one agent: the iterations ``first`` to ``end - 1``.

    ``lost``: records of it at the end of these were dropped. ``reached``: the iteration that it had not completed when
    the kernel was stopped, EVERY if it was not stopped or that is unknown.
    """

    first: int = 0
    end: int = EVERY
    lost: bool = False
    reached: int = EVERY


class Place(Enum):
    """Where the next pass of a site lies."""

    HIDDEN = "before or after the window"
    SEEN = "inside the window"
    EITHER = "inside the window, or before it: a try_wait before the window may have made a wait unnecessary"


class Passes:
    """Counts passes, as a range where an unrecorded try may have spared one. From the window on the count is exact.

    A pass inside the window leaves a record. So one that left none, while the count may be below the window, was below
    it: neither bound then rises above the window's first iteration.
    """

    def __init__(self, sight: Sight) -> None:
        self._sight = sight
        self._least: dict[int, int] = {}
        self._most: dict[int, int] = {}
        self._spared: dict[int, int] = {}  # passes after what was seen that a try may have spared
        self._blind = False

    def place(self, site: int) -> Place:
        """Where the next pass of ``site`` lies."""
        if self._least.get(site, 0) >= self._sight.first:
            return Place.SEEN if self._least.get(site, 0) < self._sight.end else Place.HIDDEN
        return Place.HIDDEN if self._most.get(site, 0) < self._sight.first else Place.EITHER

    def least(self, site: int) -> int:
        """Passes of ``site`` that happened for certain."""
        return self._least.get(site, 0)

    def iteration(self, site: int) -> int:
        """What a record of the next pass of ``site`` must say, if there is one."""
        return max(self._least.get(site, 0), self._sight.first)

    def seen(self, site: int) -> None:
        """A pass was recorded."""
        self._least[site] = self._most[site] = self.iteration(site) + 1

    @property
    def exact(self) -> bool:
        """True if every pass leaves a record: then :attr:`counts` say all."""
        return self._sight.first == 0 and self._sight.end == EVERY and not self._blind

    @property
    def counts(self) -> dict[int, int]:
        """The passes of each site, where they are exact."""
        return dict(self._least)

    def count(self, counts: dict[int, int]) -> None:
        """The passes are so many now, all of them recorded."""
        self._least, self._most = dict(counts), dict(counts)

    def lose(self) -> None:
        """From here on nothing is seen, inside the window or not."""
        self._blind = True

    def unseen(self, site: int, *, certain: bool) -> None:
        """An operation with this site left no record; ``certain`` unless it may have been skipped."""
        first, least, most = self._sight.first, self._least.get(site, 0), self._most.get(site, 0)
        if least < first:
            self._least[site] = least + certain
            self._most[site] = min(most + 1, first)
            return
        self._least[site] = self._most[site] = least + certain
        if not certain and (self._blind or least >= self._sight.end):
            self._spared[site] = self._spared.get(site, 0) + 1

    @property
    def iterations(self) -> tuple[int, int]:
        """Passes of the site that was passed most often: for certain, and at most."""
        most = (number + self._spared.get(site, 0) for site, number in self._most.items())
        return max(self._least.values(), default=0), max(most, default=0)
