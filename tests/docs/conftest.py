"""The pages are made in this process: what they show does not depend on how many processors there are."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process of a sweep would import all anew. That several say the same is in tests/answers/test_sweep.py."""
    monkeypatch.setattr("pipesim.answers.spread.processors", lambda: 1)
