"""What the markers of a protocol's function ask for: one case, and so one test, for each combination of values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from pipesim.errors import ParameterError
from pipesim.model.coverage import LENIENT, Strictness, strictness_from

MARKER = "pipesim"


@dataclass(frozen=True)
class Case:
    """One test of a protocol: its parameters, and how it is checked.

    ``ctas``: of the launch, None for one cluster. ``time_limit`` in seconds and ``max_states``: None for the usual.
    """

    params: Mapping[str, int]
    ctas: int | None = None
    time_limit: float | None = None
    max_states: int | None = None
    strictness: Strictness = LENIENT

    @property
    def name(self) -> str:
        """``stages=2-tiles=5``; "" for the defaults."""
        return "-".join(f"{name}={value}" for name, value in self.params.items())


def cases_of(marks: Iterable[pytest.Mark]) -> list[Case]:
    """The cases of all markers, each once; that of the defaults where there is no marker.

    ParameterError for a marker with a value that is not what its name takes.
    """
    found = [case for mark in marks if mark.name == MARKER for case in _of_mark(mark)]
    return list({(case.name, case.strictness, case.ctas): case for case in found or [Case({})]}.values())


def _of_mark(mark: pytest.Mark) -> list[Case]:
    if mark.args:
        raise ParameterError(
            f"the marker pipesim takes no {mark.args[0]!r}",
            cause="its parameters are given by name",
            correction="for example @pytest.mark.pipesim(stages=2, tiles=[1, 5])",
        )
    given = dict(mark.kwargs)
    case = Case(
        {},
        ctas=_whole(given, "ctas"),
        time_limit=_seconds(given, "time_limit"),
        max_states=_whole(given, "max_states"),
        strictness=strictness_from(given.pop("strict", ())),
    )
    values = [_values(name, each) for name, each in given.items()]
    return [replace(case, params=dict(zip(given, chosen, strict=True))) for chosen in itertools.product(*values)]


def _values(name: str, given: object) -> Sequence[int]:
    values: list[object] = list(given) if isinstance(given, list | tuple | range) else [given]
    found = [value for value in values if type(value) is int]
    if len(found) < len(values):
        wrong = next(value for value in values if type(value) is not int)
        raise ParameterError(
            f"the marker pipesim: {name} takes a whole number or a list of them, not {wrong!r}",
            correction=f"for example {name}=[1, 5]",
        )
    return found


def _whole(given: dict[str, object], name: str) -> int | None:
    value = given.pop(name, None)
    if value is None or (type(value) is int and value > 0):
        return value
    raise ParameterError(f"the marker pipesim: {name} takes a whole number above 0, not {value!r}")


def _seconds(given: dict[str, object], name: str) -> float | None:
    value = given.pop(name, None)
    if value is None or (type(value) in (int, float) and 0 < value < math.inf):  # type: ignore[operator]
        return value  # type: ignore[return-value]
    raise ParameterError(f"the marker pipesim: {name} takes a number of seconds above 0, not {value!r}")
