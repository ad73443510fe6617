"""What the clock is for: polls and wakes, cold copies, shared bandwidth, tries, named barriers, groups of transfers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from pipesim.lang.protocol import Protocol
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind
from pipesim.model.ops import Engine, Op
from pipesim.model.program import Program
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


def test_a_try_that_succeeds_leaves_no_wait(ring: Make, toy: Make, lines: Make) -> None:
    result = simulate(ring(stages=2, tiles=3, tries=True, work=30), toy())
    assert result.outcome is Ending.FINISHED
    mine = [line for line in lines(result.trace) if " load " in line and ("try" in line or "wait" in line)]
    assert mine == [
        "15 load try empty[0] 1 #0 =1",
        "32 load try empty[1] 1 #1 =1",
        "49 load try empty[0] 0 #2 =0",
        "54 load wait_enter empty[0] 0 #0 =0",
        "121 load wait_return empty[0] 0 #0 =0",
    ]


def test_every_try_is_recorded_with_its_answer(ring: Make, toy: Make) -> None:
    result = simulate(ring(stages=2, tiles=9, tries=True, warps=2), toy())
    meta, events = result.trace.meta, result.trace.events
    kinds = [meta.sites[s].kind for s in events.site]
    assert {int(v) for v, k in zip(events.value, kinds, strict=True) if k is EventKind.TRY} == {0, 1}
    for row, kind in enumerate(kinds):
        if kind is EventKind.TRY:  # a wait follows if and only if the try failed
            assert (kinds[row + 1] is EventKind.WAIT_ENTER) == (events.value[row] == 0)


def test_a_try_costs_a_record(ring: Make, toy: Make) -> None:
    program, profile = ring(stages=2, tiles=1, tries=True), toy(record_issue=9)
    plain, traced = (simulate(program, profile, traced=traced) for traced in (False, True))
    gap = [times(r, "load", EventKind.EXPECT)[0] - times(r, "load", EventKind.TRY)[0] for r in (plain, traced)]
    assert gap == [5, 5 + 9]


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


def test_a_conditional_wait_without_a_register_always_waits(ring: Make, toy: Make) -> None:
    """A program from elsewhere may say WAIT_UNLESS with register -1, "never skip"."""
    plain = ring(stages=1, tiles=4)
    code = tuple(
        tuple((int(Op.WAIT_UNLESS), op[1], op[2], -1, op[3]) if op[0] == Op.WAIT else op for op in agent)
        for agent in plain.code
    )
    for registers in (0, 1):
        program = replace(plain, code=code, registers=registers)
        assert simulate(program, toy()).trace.events == simulate(plain, toy()).trace.events


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


def test_the_last_of_a_cluster_waits_for_the_barrier_too(toy: Make) -> None:
    p = Protocol("cluster", cluster=2)
    p.mbarriers("b", 1, count=1)

    @p.role("warp")
    def warp(w: Any) -> None:
        w.work(5 + 95 * w.cta)
        w.cluster_sync()
        w.work(1)

    result = simulate(p.flatten(), toy(work_issue=0))
    events = result.trace.events
    assert result.outcome is Ending.FINISHED
    assert [events.cycle[events.cta == cta].tolist() for cta in (0, 1)] == [[12, 17, 122, 123], [12, 112, 122, 123]]


def stored(latency: int, groups: int, toy: Make) -> tuple[Simulation, Program]:
    """A warp that writes a tile, stores it in bulk, and waits for the store before it writes the next."""
    p = Protocol("store")
    tile = p.smem("tile", 1, 64)
    p.mbarriers("b", 1, count=1)

    @p.role("epilogue")
    def epilogue(w: Any) -> None:
        with w.elect_one():
            for i in range(3):
                w.work(10)
                w.write(tile[0], i)
                w.async_read(Engine.BULK, tile[0], i)
                w.commit(Engine.BULK)
                w.wait_group(Engine.BULK, groups)

    program = p.flatten()
    return simulate(program, toy(transfer_latency=latency, work_issue=0)), program


@pytest.mark.parametrize("latency", [90, 0])
def test_a_bulk_store_is_waited_for(toy: Make, latency: int) -> None:
    result, _ = stored(latency, 0, toy)
    assert (result.outcome, result.faults, result.state.flights) == (Ending.FINISHED, (), ())
    begun = times(result, "epilogue", EventKind.WORK_BEGIN)
    assert [b - a for a, b in pairwise(begun)] == [10 + 1 + latency + 8] * 2  # 64 bytes in 8 cycles
    assert result.cycles == begun[-1] + 10 + 1 + latency + 8


def test_a_store_that_is_not_waited_for_races_with_the_next_write(toy: Make) -> None:
    result, program = stored(90, 1, toy)
    assert result.outcome is Ending.FINISHED
    assert {f.kind for f in result.faults} == {FaultKind.RACE}
    assert {program.code[f.agent][f.pc][0] for f in result.faults} == {Op.WRITE}


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


def early_release(*, late: bool, toy: Make) -> Simulation:
    """A consumer that hands its only stage back before it reads it, or after."""
    p = Protocol("early_release")
    tile = p.smem("tile", 1, 64)
    storage = p.mbarriers("b", 2, count=1)

    @p.role("load")
    def load(w: Any) -> None:
        with w.elect_one():
            for i in range(3):
                storage[1].wait(1 - (i & 1))
                storage[0].expect_bytes(64)
                w.tma_load(tile[0], storage[0], i)

    @p.role("use")
    def use(w: Any) -> None:
        with w.elect_one():
            for i in range(3):
                storage[0].wait(i & 1)
                if late:
                    w.read(tile[0], i)
                storage[1].arrive()
                if not late:
                    w.read(tile[0], i)

    return simulate(p.flatten(), toy(arrive_issue=30))


def test_a_read_after_the_arrive_meets_the_next_copy(toy: Make) -> None:
    assert early_release(late=True, toy=toy).faults == ()
    result = early_release(late=False, toy=toy)
    assert {f.kind for f in result.faults} == {FaultKind.RACE}
    assert len(result.faults) == 2  # the last tile is overwritten by no role
