"""A long work spread over processes: the order of the results, a process that dies, and Ctrl-C."""

from __future__ import annotations

import os
import time
from multiprocessing import active_children

import pytest

from pipesim.answers.spread import processors, spread

FOREVER = 10_000


def told(part: object, error: BaseException) -> str:
    return f"{part}: {type(error).__name__}"


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_in_the_order_of_the_parts(jobs: int) -> None:
    over: list[int] = []
    assert spread(["a", "bb", "ccc"], len, lambda part, error: -1, over.append, jobs) == [1, 2, 3]
    assert sorted(over) == [0, 1, 2]
    assert active_children() == []


def test_a_process_that_dies_is_told() -> None:
    found = spread([0, 1], os._exit, told, lambda n: None, 2)
    assert found == ["0: BrokenProcessPool", "1: BrokenProcessPool"]


def test_an_interrupt_ends_what_is_under_way() -> None:
    def interrupted(n: int) -> None:
        raise KeyboardInterrupt

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        spread([0, FOREVER, FOREVER, FOREVER], time.sleep, told, interrupted, 2)
    assert active_children() == []
    assert time.monotonic() - begun < FOREVER / 2


def test_there_is_a_processor() -> None:
    assert processors() >= 1
