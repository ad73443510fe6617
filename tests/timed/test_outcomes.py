"""How a simulation ends: finished, in a deadlock, by a trap, or at its budget; and the sizes at the edge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipesim.model.ending import Ending
from pipesim.timed.engine import simulate

Make = Callable[..., Any]


def test_a_deadlock_ends_at_its_last_landing(ring: Make, toy: Make) -> None:
    result = simulate(ring(stages=2, tiles=2, expect=80), toy())  # 16 bytes more than come
    assert result.outcome is Ending.DEADLOCK
    assert result.state.flights == ()
    last_copy = max(result.trace.events.cycle[result.trace.events.agent == 0])
    assert result.cycles == last_copy + 54
    assert result.deadlock is not None
    assert [b.bytes_missing for b in result.deadlock.blocked] == [16]
    assert result.deadlock.finished == ("load",)


@pytest.mark.parametrize(("stages", "tiles"), [(1, 1), (1, 5), (5, 1), (5, 3), (3, 3)])
def test_rings_of_one_stage_and_rings_that_are_never_full(ring: Make, toy: Make, stages: int, tiles: int) -> None:
    result = simulate(ring(stages=stages, tiles=tiles), toy())
    assert result.outcome is Ending.FINISHED
    done = [sum(1 for t in range(tiles) if t % stages == s) for s in range(stages)]
    assert [b.done for b in result.state.barriers] == done * 2
    assert len(result.trace.events) == tiles * (4 + 3)
    if tiles <= stages:  # nobody waits for a stage to be handed back
        producer = result.trace.events.cycle[result.trace.events.agent == 0].reshape(-1, 4)
        assert (producer[:, 1] - producer[:, 0]).tolist() == [5] * tiles
