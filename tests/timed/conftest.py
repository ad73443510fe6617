from __future__ import annotations

from collections.abc import Callable

import pytest

from pipesim.model.program import Program
from pipesim.timed.profile import Profile
from pipesim.trace.schema import Trace
from tests.support.timed_ring import Ring, lines, ring, stamps, toy


@pytest.fixture(name="ring", scope="session")
def ring_fixture() -> Callable[..., Program]:
    return lambda **fields: ring(Ring(**fields)).flatten({})


@pytest.fixture(name="toy", scope="session")
def toy_fixture() -> Callable[..., Profile]:
    return toy


@pytest.fixture(name="stamps", scope="session")
def stamps_fixture() -> Callable[..., dict[tuple[int, int], tuple[int, ...]]]:
    return stamps


@pytest.fixture(name="lines", scope="session")
def lines_fixture() -> Callable[[Trace], list[str]]:
    return lines
