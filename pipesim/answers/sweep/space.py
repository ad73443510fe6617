"""The configurations of a sweep: every combination of the values of its axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from math import prod

from pipesim.errors import ParameterError

MOST_CONFIGURATIONS = 100_000  #: of one sweep: a day on a few processors
Params = tuple[tuple[str, int], ...]  #: the values of one configuration, in the order of the axes


def axes_of(given: Mapping[str, Iterable[int]]) -> dict[str, tuple[int, ...]]:
    """The axes with their values as they are given, each value once. ParameterError for an axis without values."""
    axes = {name: tuple(dict.fromkeys(values)) for name, values in given.items()}
    for name, values in axes.items():
        if not values:
            raise ParameterError(f"{name} has no value", correction=f"for example {name}=2..8 or {name}=2,4,8")
    number = prod(map(len, axes.values()))
    if number > MOST_CONFIGURATIONS:
        raise ParameterError(
            f"this sweep has {number:,} configurations; at most {MOST_CONFIGURATIONS:,} are swept together",
            cause=", ".join(f"{name} has {len(values):,} values" for name, values in axes.items()),
            correction="give fewer values, or sweep one part after the other",
        )
    return axes


def configurations(axes: Mapping[str, tuple[int, ...]]) -> list[Params]:
    """Every combination, the last axis changing fastest."""
    return [tuple(zip(axes, values, strict=True)) for values in product(*axes.values())]
