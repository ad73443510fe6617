"""The programs that the tests of commands share: a ready-made protocol is recorded once, and nothing else is kept."""

from __future__ import annotations

import pytest

from pipesim.errors import ParameterError
from pipesim.lang.protocol import Protocol
from pipesim.targets import find

SIZES = {"tiles": 11, "stages": 3}


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each recording whether it was asked for twice over."""
    asked: list[bool] = []
    flatten = Protocol.flatten

    def told(self: Protocol, params: object = None, *, twice: bool = True, most: int | None = None) -> object:
        asked.append(twice)
        return flatten(self, params, twice=twice, most=most)  # type: ignore[arg-type]

    monkeypatch.setattr(Protocol, "flatten", told)
    monkeypatch.setattr("tests.support.made_once._KEPT", {})
    return asked


def test_the_same_sizes_are_recorded_once(recorded: list[bool]) -> None:
    first = find("producer_consumer").build(SIZES)
    assert find("producer_consumer").build(SIZES) == first
    assert recorded == [True]
    assert find("producer_consumer").build(SIZES | {"tiles": 12}) != first
    assert recorded == [True, True]


def test_what_was_recorded_once_over_is_recorded_again_for_who_asks_for_twice(recorded: list[bool]) -> None:
    for twice in (False, True, False, True):
        find("producer_consumer").build(SIZES, twice=twice)
    assert recorded == [False, True]


def test_what_is_refused_is_refused_again(recorded: list[bool]) -> None:
    find("producer_consumer").build({"tiles": 1})
    for _ in range(2):
        with pytest.raises(ParameterError, match="a whole number"):
            find("producer_consumer").build({"tiles": True})
    assert recorded == [True]


def test_a_users_protocol_is_recorded_each_time(recorded: list[bool], ring: str) -> None:
    for _ in range(2):
        find(ring).build({})
    assert recorded == [True, True]


def test_a_limit_is_asked_for_each_time(recorded: list[bool]) -> None:
    for _ in range(2):
        find("producer_consumer").build(SIZES, most=10**6)
    assert recorded == [True, True]
