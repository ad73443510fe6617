"""What the clock is for: polls and wakes, cold copies, shared bandwidth, tries, named barriers, groups of transfers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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


@pytest.mark.parametrize(("grid", "every", "flight"), [(1, 4, 54), (2, 8, 58), (4, 16, 66), (1000, 16, 66)])
def test_ctas_share_the_device(ring: Make, toy: Make, grid: int, every: int, flight: int) -> None:
    """A device that loads as fast as one SM: with 2 and 4 of its 4 SMs loading, each gets a half and a quarter."""
    profile = toy(
        copy_device_bytes_per_kcycle=16_000, copy_latency_loaded=62, copy_issue=0, expect_issue=0, wait_issue=0,
        loop_issue=0, read_issue=0, wait_wake_up=0,
    )  # fmt: skip
    program = replace(ring(stages=4, tiles=4), grid=grid)
    result = simulate(program, profile)
    first, *rest = times(result, "use", EventKind.WAIT_RETURN)
    assert first == times(result, "load", EventKind.COPY)[0] + flight
    assert (
        [after - first for after in rest] == [every, 2 * every, 3 * every]
        if every > 10
        else all(a - first >= n * every for n, a in enumerate(rest, 1))
    )
    assert result.trace.meta.grid == grid


def test_a_try_before_the_arrive_can_be_seen_fails(toy: Make) -> None:
    """The arrive is issued at 12 and seen 40 later: a test in between fails, one after it succeeds."""
    p = Protocol("early")
    storage = p.mbarriers("b", 1, count=1)

    @p.role("giver")
    def giver(w: Any) -> None:
        with w.elect_one():
            storage[0].arrive()

    @p.role("taker")
    def taker(w: Any) -> None:
        w.work(2)
        first = storage[0].test_wait(0)
        w.work(60)
        storage[0].wait_if_needed(first, 0)

    result = simulate(p.flatten(), toy(arrive_latency=40))
    assert (times(result, "giver", EventKind.ARRIVE), times(result, "taker", EventKind.TRY)) == ([12], [15])
    assert result.trace.events.value[result.trace.events.agent == 1].tolist() == [0] * 7
    assert times(result, "taker", EventKind.WAIT_RETURN) == [86]
    late = simulate(p.flatten(), toy(arrive_latency=3))
    assert times(late, "taker", EventKind.WAIT_RETURN) == []  # seen at 15: the test succeeds, the wait is left out


def test_a_wait_by_state_returns_when_the_arrive_is_seen(toy: Make) -> None:
    p = Protocol("state")
    storage = p.mbarriers("b", 1, count=1)

    @p.role("alone")
    def alone(w: Any) -> None:
        with w.elect_one():
            storage[0].wait_state(storage[0].arrive())
            w.work(1)

    result = simulate(p.flatten(), toy(arrive_latency=100, arrive_issue=7))
    # arrives at 12 and waits from 19 on, returns 5 after the arrive is seen at 112
    assert times(result, "alone", EventKind.WORK_BEGIN) == [117]


def test_threads_meet_at_a_named_barrier(toy: Make) -> None:
    """Three warps with 5, 50 and 500 cycles of work go on together, 10 cycles after the last has come; twice."""
    p = Protocol("meet")
    p.mbarriers("b", 1, count=1)

    @p.role("warp", warps=3)
    def warp(w: Any) -> None:
        for _ in range(2):
            w.work(5 * 10**w.index)
            w.bar_sync(1, 96)

    result = simulate(p.flatten(), toy(work_issue=0))
    assert result.outcome is Ending.FINISHED
    for n in range(3):
        begun = times(result, f"warp/{n}", EventKind.WORK_BEGIN)
        assert begun == [12, 12 + 500 + 10]
    assert result.ends == (1032, 1032, 1032)


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


def test_copies_of_threads_arrive_when_they_are_done(toy: Make) -> None:
    p = Protocol("cp_async")
    tile = p.smem("tile", 1, 64)
    storage = p.mbarriers("done", 1, count=32)

    @p.role("load")
    def load(w: Any) -> None:
        w.async_write(Engine.CP_ASYNC, tile[0], 7)
        storage[0].cp_async_arrive(noinc=True)

    @p.role("use")
    def use(w: Any) -> None:
        storage[0].wait(0)
        w.read(tile[0], 7)

    result = simulate(p.flatten(), toy())
    assert (result.outcome, result.faults) == (Ending.FINISHED, ())
    assert times(result, "use", EventKind.WAIT_RETURN) == [12 + 90 + 4 + 3]  # 64 bytes in 4 cycles


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
