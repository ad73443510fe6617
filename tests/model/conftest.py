from __future__ import annotations

from collections.abc import Callable

import pytest

from pipesim.model.machine import State, Step
from pipesim.model.ops import Operation
from pipesim.model.program import Program
from tests.support.small_programs import build, operation, play


@pytest.fixture(name="build")
def build_fixture() -> Callable[..., Program]:
    return build


@pytest.fixture(name="play")
def play_fixture() -> Callable[..., tuple[State, list[Step]]]:
    return play


@pytest.fixture(name="operation")
def operation_fixture() -> Callable[[str], Operation]:
    return operation
