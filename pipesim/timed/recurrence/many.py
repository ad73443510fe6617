"""Many latency profiles as if they were one: each of its values is a column of theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipesim.timed.profile import Profile
from pipesim.timed.recurrence.column import Column, LargeError, PartedError

_FEW = 4  #: profiles that are computed with one by one


class ManyProfiles:
    """Profiles, by number. What is asked of them is put into columns once."""

    def __init__(self, profiles: Sequence[Profile]) -> None:
        self.profiles = tuple(profiles)
        self._columns: dict[str, Column] = {}
        names: list[tuple[object, int]] = []  # which values profiles can have: they differ in the named works
        self._names = np.zeros(len(self.profiles), dtype=np.int64)
        for i, each in enumerate(self.profiles):
            mine = (each.values.keys(), each.version)
            if mine not in names:
                names.append(mine)
            self._names[i] = names.index(mine)

    def computed(self, which: NDArray[np.int64], compute: Callable[[Profile], Sequence[int]]) -> NDArray[np.int64]:
        """What ``compute`` says of each of these profiles, equally many numbers: a column for each profile."""
        first = compute(self.profiles[which[0]]) if len(which) else ()
        if len(which) == 1:
            return np.array(first, dtype=np.int64).reshape(-1, 1)
        found = np.empty((len(first), len(which)), dtype=np.int64)
        self._fill(found, np.arange(len(which)), which, compute)
        return found

    def _fill(
        self,
        found: NDArray[np.int64],
        where: NDArray[np.int64],
        which: NDArray[np.int64],
        compute: Callable[[Profile], Sequence[Any]],
    ) -> None:
        """Compute with all profiles of ``which`` together, if that is done in the same way for all of them."""
        try:
            answers = compute(self._as_one(which))
            for row, answer in zip(found, answers, strict=True):
                row[where] = answer.numbers if isinstance(answer, Column) else answer
        except PartedError as parted:
            for part in parted.yes, ~parted.yes:
                self._fill(found, where[part], which[part], compute)
        except LargeError:
            for place, i in zip(where, which, strict=True):
                found[:, place] = compute(self.profiles[i])

    def _as_one(self, which: NDArray[np.int64]) -> Profile:
        """A profile with a column for each value."""
        if len(which) <= _FEW:
            raise LargeError
        names = self._names[which]
        if (names != names[0]).any():
            raise PartedError(names == names[0])
        first = self.profiles[which[0]]
        values: Any = _ValuesOfAll(first.values, lambda name: self._column(name, which))
        sms: Any = Column.of(np.array([self.profiles[i].sms for i in which], dtype=np.int64))
        one: Profile = replace(first, values=values, sms=sms)
        return one

    def _column(self, name: str, which: NDArray[np.int64]) -> Column:
        """The column of a value; of those that lack it, 0."""
        column = self._columns.get(name)
        if column is None:
            try:
                numbers = np.array([each.values.get(name, 0) for each in self.profiles], dtype=np.int64)
            except OverflowError:
                raise LargeError from None
            column = self._columns[name] = Column.of(numbers)
        return Column(column.numbers[which], column.most)


class _ValuesOfAll(dict[str, Any]):
    """Values that are put into columns when they are asked for."""

    def __init__(self, values: dict[str, int], column: Callable[[str], Column]) -> None:
        super().__init__(values)
        self._column = column

    def __getitem__(self, name: str) -> Any:
        return self._column(name) if name in self else super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The column, or the default for one that none of the profiles has."""
        return self._column(name) if name in self else default
