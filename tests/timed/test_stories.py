"""What the clock is for: polls and wakes, cold copies, shared bandwidth, tries, named barriers, groups of transfers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipesim.lang.protocol import Protocol
from pipesim.model.ending import Ending
from pipesim.model.ops import Engine
from pipesim.timed.engine import Simulation, simulate
from pipesim.trace.schema import EventKind

Make = Callable[..., Any]


def times(result: Simulation, agent: str, kind: EventKind, group: str = "") -> list[int]:
    """The cycles of an agent's events of one kind, on one group of barriers if it is named."""
    meta, events = result.trace.meta, result.trace.events
    return [
        int(events.cycle[r])
        for r in range(len(events))
        if meta.agent_name(int(events.agent[r])) == agent
        and meta.sites[int(events.site[r])].kind is kind
        and group in ("", meta.sites[int(events.site[r])].barrier)
    ]


@pytest.mark.parametrize("latency", [0, 90])
def test_a_commit_arrives_when_its_transfers_are_done(toy: Make, latency: int) -> None:
    p = Protocol("mma")
    tile = p.smem("tile", 2, 64)
    storage = p.mbarriers("done", 1, count=1)

    @p.role("mma")
    def mma(w: Any) -> None:
        with w.elect_one():
            w.async_write(Engine.TCGEN05, tile[0], 7)
            w.async_write(Engine.TCGEN05, tile[1], 8)
            w.commit(Engine.TCGEN05, storage[0])

    @p.role("epilogue")
    def epilogue(w: Any) -> None:
        storage[0].wait(0)
        w.read(tile[0], 7)
        w.read(tile[1], 8)

    result = simulate(p.flatten(), toy(matrix_latency=latency))
    assert (result.outcome, result.faults) == (Ending.FINISHED, ())
    # issued at 12 and 13; the commit at 14 waits for both; a completion that is no arrive wakes the wait, 3 later
    landed = max(13 + latency, 14)
    assert times(result, "epilogue", EventKind.WAIT_RETURN) == [max(12 + 5, landed + 3)]


def test_a_multicast_lands_in_every_cta(toy: Make) -> None:
    p = Protocol("multicast", cluster=2)
    tile = p.smem("tile", 1, 64)
    storage = p.mbarriers("full", 1, count=1)

    @p.role("load")
    def load(w: Any) -> None:
        with w.elect_one():
            storage[0].expect_bytes(64)
            if w.cta == 0:
                w.tma_load(tile[0], storage[0], 7, cta_mask=0b11)

    @p.role("use")
    def use(w: Any) -> None:
        storage[0].wait(0)
        w.read(tile[0], 7)

    result = simulate(p.flatten(), toy())
    events = result.trace.events
    assert (result.outcome, result.faults) == (Ending.FINISHED, ())
    copied = int(events.cycle[[result.trace.meta.sites[s].kind is EventKind.COPY for s in events.site]][0])
    returned = [result.trace.meta.sites[s].kind is EventKind.WAIT_RETURN for s in events.site]
    assert events.cycle[returned].tolist() == [copied + 54 + 3] * 2
    assert events.cta[returned].tolist() == [0, 1]
