"""A number of many profiles at once, for a computation that is written for one number.

Arithmetic is that of the whole array. Where the computation asks (``if``, ``min``, ``max``) and the answer is not the
same for all profiles, it cannot go on for all of them: it is begun again for those of each answer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST = 1 << 62  #: a number may be so large and fits into an array

_Numbers = NDArray[np.int64]


class PartedError(Exception):
    """The profiles differ in the answer to a question. ``yes``: True where it is yes."""

    def __init__(self, yes: NDArray[np.bool_]) -> None:
        super().__init__("the profiles differ here")
        self.yes = yes


class LargeError(Exception):
    """A number may not fit into an array."""


class Column:
    """One whole number for each profile. ``most``: none is further from 0.

    Raises LargeError if that may be more than an array can hold, and PartedError if it is asked what the profiles
    differ in.
    """

    __slots__ = ("most", "numbers")

    def __init__(self, numbers: _Numbers, most: int) -> None:
        if most > _MOST:
            raise LargeError
        self.numbers = numbers
        self.most = most

    @classmethod
    def of(cls, numbers: _Numbers) -> Column:
        """The column of these numbers."""
        return cls(numbers, max(-int(numbers.min(initial=0)), int(numbers.max(initial=0))))

    def __add__(self, other: Column | int) -> Column:
        numbers, most = _parts(other)
        return Column(self.numbers + numbers, self.most + most)

    def __sub__(self, other: Column | int) -> Column:
        numbers, most = _parts(other)
        return Column(self.numbers - numbers, self.most + most)

    def __rsub__(self, other: int) -> Column:
        return -self + other

    def __mul__(self, other: Column | int) -> Column:
        numbers, most = _parts(other)
        if self.most * most > _MOST:
            raise LargeError
        return Column(self.numbers * numbers, self.most * most)

    def __floordiv__(self, other: Column | int) -> Column:
        numbers, _ = _parts(other)
        if not np.all(numbers):
            raise ZeroDivisionError
        return Column(self.numbers // numbers, self.most + 1)

    def __rfloordiv__(self, other: int) -> Column:
        return Column(np.full_like(self.numbers, other), abs(other)) // self

    def __neg__(self) -> Column:
        return Column(-self.numbers, self.most)

    __radd__, __rmul__ = __add__, __mul__

    def __lt__(self, other: Column | int) -> bool:
        return _agreed(self.numbers < _parts(other)[0])

    def __le__(self, other: Column | int) -> bool:
        return _agreed(self.numbers <= _parts(other)[0])

    def __gt__(self, other: Column | int) -> bool:
        return _agreed(self.numbers > _parts(other)[0])

    def __ge__(self, other: Column | int) -> bool:
        return _agreed(self.numbers >= _parts(other)[0])

    def __eq__(self, other: object) -> bool:
        return _agreed(self.numbers == _parts(other)[0])

    def __ne__(self, other: object) -> bool:
        return _agreed(self.numbers != _parts(other)[0])

    def __bool__(self) -> bool:
        return self != 0

    __hash__ = None  # type: ignore[assignment]  # numbers of many profiles are no key


def _parts(other: Any) -> tuple[Any, int]:
    """The numbers of an operand, and the most of them."""
    return (other.numbers, other.most) if isinstance(other, Column) else (other, abs(other))


def _agreed(answers: NDArray[np.bool_]) -> bool:
    """The answer that all profiles give."""
    if answers.all():
        return True
    if answers.any():
        raise PartedError(answers)
    return False
