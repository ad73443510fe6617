"""The pages are made in this process: what they show does not depend on how many processors there are."""

from collections.abc import Iterator

import pytest

from tests.support.made_once import made_once


@pytest.fixture(autouse=True)
def ready_made_protocols_recorded_once() -> Iterator[None]:
    """A process makes the program of a ready-made protocol once for each of its sizes, not for each command."""
    with made_once():
        yield


@pytest.fixture(autouse=True)
def one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process of a sweep would import all anew. That several say the same is in tests/answers/test_sweep.py."""
    monkeypatch.setattr("pipesim.answers.spread.processors", lambda: 1)
