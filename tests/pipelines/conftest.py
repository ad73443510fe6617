from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.random_schedules import Run, every_end, outcomes, run


@pytest.fixture(name="run", scope="session")
def run_fixture() -> Callable[..., Run]:
    return run


@pytest.fixture(name="outcomes", scope="session")
def outcomes_fixture() -> Callable[..., set[str]]:
    return outcomes


@pytest.fixture(name="every_end", scope="session")
def every_end_fixture() -> Callable[..., set[str]]:
    return every_end
