"""What a latency profile states of its own error: for which kernels it was measured, and how large it was."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pipesim.bounds import MAX_GRID
from pipesim.errors import ProfileError
from pipesim.names import readable, wrong_name

_NUMBERS = ("configurations", "median_permille", "worst_permille")
_MEMBERS = ("kernel", "ctas", *_NUMBERS)
MOST_PERMILLE = 10**6
ASSUMED = "assumed"
WAYS = ("measured", "fitted", ASSUMED)  #: how a value of a profile was obtained


@dataclass(frozen=True)
class StatedError:
    """How far the simulated period of a kernel was off the measured one, without recording, in the steady state.

    Over ``configurations`` recordings of ``kernel`` (a protocol's name) in launches of ``ctas`` (least, most) CTAs: the
    median and the largest absolute difference in thousandths of the measured period.
    """

    kernel: str
    ctas: tuple[int, int]
    configurations: int
    median_permille: int
    worst_permille: int

    def speaks_of(self, kernel: str, ctas: int) -> bool:
        """Whether a launch of ``ctas`` CTAs of ``kernel`` is one of those that it was measured with."""
        return self.kernel == kernel and self.ctas[0] <= ctas <= self.ctas[1]


def parse_errors(data: object, place: str) -> tuple[StatedError, ...]:
    """The list ``errors`` of a profile. ProfileError if it is not one of objects with just the members needed."""
    if not isinstance(data, list):
        raise ProfileError(
            'a latency profile has a list "errors"',
            place=place,
            cause="it states how far simulated periods were off measured ones; an empty list states nothing",
        )
    return tuple(_parse(each, place) for each in data)


def parse_how(data: object, values: Collection[str], place: str) -> dict[str, str]:
    """The object ``how``: for each way the names of the values that were obtained so. ProfileError unless it names
    every value once.
    """
    if (
        not isinstance(data, dict)
        or not data.keys() <= set(WAYS)
        or not all(isinstance(v, list) for v in data.values())
    ):
        raise ProfileError(f'a latency profile has an object "how" with lists {", ".join(WAYS)}', place=place)
    names = [name for way in WAYS for name in data.get(way, ())]
    if not all(isinstance(name, str) for name in names) or sorted(names) != sorted(values):
        off = sorted({str(name) for name in names} ^ set(values)) or ["a value twice"]
        raise ProfileError('"how" names every value once, and nothing else', place=place, cause=readable(off[0]))
    return {name: way for way in WAYS for name in data.get(way, ())}


def _parse(data: object, place: str) -> StatedError:
    if not isinstance(data, dict) or set(data) != set(_MEMBERS):
        raise ProfileError(f'each of "errors" is an object with {", ".join(_MEMBERS)}', place=place)
    kernel, ctas = data["kernel"], data["ctas"]
    numbers = [data[name] for name in _NUMBERS]
    if not isinstance(kernel, str) or wrong_name(kernel):
        raise ProfileError('the "kernel" of a stated error is the name of a protocol', place=place)
    if not isinstance(ctas, list) or len(ctas) != 2 or not _whole(*ctas) or not 1 <= ctas[0] <= ctas[1] <= MAX_GRID:
        raise ProfileError('the "ctas" of a stated error are the least and the most CTAs of a launch', place=place)
    if not _whole(*numbers) or not numbers[0] >= 1 or not 0 <= numbers[1] <= numbers[2] <= MOST_PERMILLE:
        raise ProfileError(
            f"a stated error has whole numbers {', '.join(_NUMBERS)}",
            place=place,
            cause="there is 1 configuration or more, and the worst error is not below the median",
        )
    return StatedError(kernel, (ctas[0], ctas[1]), *numbers)


def _whole(*values: object) -> bool:
    return all(type(value) is int for value in values)
