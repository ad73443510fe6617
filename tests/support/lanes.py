"""Which values of a parametrised test run in the fast lane, and which only at length."""

from collections.abc import Container, Iterable, Sequence

import pytest
from _pytest.mark import ParameterSet


def slow_but(fast: Container[object], values: Iterable[object]) -> list[ParameterSet]:
    """The values of one parameter: those in ``fast`` run in the fast lane, the others in the slow one."""
    return [pytest.param(value, marks=() if value in fast else pytest.mark.slow) for value in values]


def slow_after(count: int, rows: Iterable[Sequence[object]]) -> list[ParameterSet]:
    """The rows of several parameters: the first ``count`` run in the fast lane, the others in the slow one."""
    return [pytest.param(*row, marks=pytest.mark.slow if n >= count else ()) for n, row in enumerate(rows)]


def long_after(count: int, rows: Iterable[ParameterSet]) -> list[ParameterSet]:
    """Rows that have their lane: those after the first ``count`` run only at length (``-m long``)."""
    kept = list(rows)
    return [*kept[:count], *(pytest.param(*row.values, marks=[*row.marks, pytest.mark.long]) for row in kept[count:])]


def long_but(kept: Container[object], rows: Iterable[ParameterSet]) -> list[ParameterSet]:
    """Rows of one parameter that have their lane: those whose value is not ``kept`` run only at length."""
    return [
        row if row.values[0] in kept else pytest.param(*row.values, marks=[*row.marks, pytest.mark.long])
        for row in rows
    ]
