"""The epilogue's source tiles, and the order of their loads: two arrivals that one wait misses both."""

from __future__ import annotations

from typing import Any

import pytest

from pipesim.explain.blocked import explain
from pipesim.explain.phases import run_canonically
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.machine import finished, initial_state, step
from pipesim.model.program import Program
from pipesim.pipelines import (
    EpiLoadPipeline,
    LoadOrderBarrier,
)
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile


def residual(
    *, stages: int = 2, parts: int = 5, step_first: bool = False, lanes: int = 32, epilogue: int = 4
) -> Program:
    """conv2d's shape: the load warp by hand, the tile writer on the inner pipeline."""
    p = Protocol("residual")
    source = p.smem("source", stages, 1024)
    storage = p.mbarriers("epi", 2 * stages)
    p.init(lambda: EpiLoadPipeline(storage, stages).init_barriers())

    @p.role("epilogue_load")
    def epilogue_load(w: Warp) -> None:
        epi = EpiLoadPipeline(storage, stages)
        for part in range(parts):
            slot = source[epi.pipeline.producer_stage()]
            epi.wait_consumer()
            if step_first:
                epi.producer_step()
            with w.elect_one():
                epi.producer_mbar().expect_bytes(1024)
                w.tma_load(slot, epi.producer_mbar(), part)
            if not step_first:
                epi.producer_step()

    @p.role("epilogue", warps=epilogue)
    def epilogue_role(w: Warp) -> None:
        pipe = EpiLoadPipeline(storage, stages).pipeline
        for part in range(parts):
            pipe.wait_producer()
            w.read(source[pipe.consumer_stage()], part)
            with w.lanes(lanes):
                pipe.consumer_mbar(pipe.consumer_stage()).arrive()
            pipe.consumer_step()

    return p.flatten()


def test_the_barrier_asked_for_after_the_step_is_the_next_stages() -> None:
    """Right: ask, then step. Wrong: the copy of stage 0 is counted on full[1], and nobody ever fills full[0] first."""
    assert run_canonically(residual()).finished
    wrong = simulate(residual(step_first=True), load_profile("h100"))
    assert wrong.outcome is Ending.DEADLOCK
    assert wrong.deadlock is not None
    assert {b.barrier for b in wrong.deadlock.blocked if b.agent.startswith("epilogue/")} == {"full[0]"}


def test_fewer_than_128_threads_that_consume_never_free_a_stage() -> None:
    for wrong in (residual(lanes=1), residual(epilogue=3)):
        end = run_canonically(wrong)
        assert (end.finished, end.faults) == (False, ())
    assert run_canonically(residual(lanes=1, parts=2)).finished, "with no second lap nobody notices"


# the order of the loads


def two_roles(tiles: int, *, first_only: bool = False) -> Program:
    """The main load arrives for each tile, or for the first; the epilogue load waits as often."""
    p = Protocol("order")
    storage = p.mbarriers("load_order", 1, count=1)
    handovers = min(tiles, 1) if first_only else tiles

    @p.role("main_load")
    def main_load(w: Warp) -> None:
        order = LoadOrderBarrier(storage)
        with w.elect_one():
            for _ in range(handovers):
                order.arrive_and_step()

    @p.role("epilogue_load")
    def epilogue_load(w: Warp) -> None:
        order = LoadOrderBarrier(storage)
        for _ in range(handovers):
            order.wait_and_step()

    return p.flatten()


def drive(program: Program, schedule: str) -> Any:
    """The machine's state after one step of ``m`` (main load) or ``e`` (epilogue load) for each letter."""
    state = initial_state(program)
    for agent in [0, 0, 0, 1, 0, 1, *("me".index(letter) for letter in schedule)]:  # the prologue first
        state = step(program, state, agent).state
    return state


def test_two_arrivals_before_one_wait_are_both_missed() -> None:
    program = two_roles(2)
    state = drive(program, "mm")
    assert state.barriers[0].done == 2
    for _ in range(3):  # it tests again and again
        tested = step(program, state, 1)
        assert (tested.blocked, tested.state is state) == (0, True)
    assert finished(program, state, 0), "nobody is left to arrive"
    found = explain(program, state)
    assert found is not None
    blocked = found.blocked[0]
    assert (blocked.agent, blocked.barrier, blocked.parity) == ("epilogue_load", "load_order[0]", 0)
    assert (blocked.phase_wanted, blocked.phase_now, blocked.arrivals_missing) == (2, 2, 1)


@pytest.mark.parametrize("schedule", ["meme", "emeeme"])
def test_a_wait_that_is_tested_between_them_sees_each(schedule: str) -> None:
    program = two_roles(2)
    state = drive(program, schedule)
    assert all(finished(program, state, agent) for agent in range(2))


def test_for_each_tile_some_schedule_hangs_and_for_the_first_tile_only_none_does(every_end: Any) -> None:
    assert every_end(two_roles(1)) == {"finished"}
    for tiles in range(2, 7):
        assert every_end(two_roles(tiles)) == {"finished", "stuck"}, tiles
        assert every_end(two_roles(tiles, first_only=True)) == {"finished"}, tiles
