"""``LoadOrderBarrier``: its methods, and two arrivals that one wait misses both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipesim.errors import ProtocolError
from pipesim.explain.blocked import explain
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.machine import finished, initial_state, step
from pipesim.model.ops import Op, Operation
from pipesim.model.program import Program
from pipesim.pipelines import ClcPipelineStorage, LoadOrderBarrier, TileScheduler, compute_clc_barrier_counts


def recorded(body: Callable[[LoadOrderBarrier], None], initial_phase: int = 0) -> list[Operation]:
    p = Protocol("order")
    storage = p.mbarriers("load_order", 1, count=1)
    p.role("r")(lambda _: body(LoadOrderBarrier(storage, initial_phase)))
    return list(p.flatten().code[0][3:])


CALLS: dict[str, tuple[list[Operation], int]] = {
    "arrive": ([(Op.ARRIVE, 0, 32, 0, -1, 0)], 0),
    "wait": ([(Op.WAIT, 0, 0, 0)], 0),
    "step": ([], 1),
    "arrive_and_step": ([(Op.ARRIVE, 0, 32, 0, -1, 0)], 1),
    "wait_and_step": ([(Op.WAIT, 0, 0, 0)], 1),
}


@pytest.mark.parametrize("call", CALLS)
def test_each_call_records_what_upstream_does(call: str) -> None:
    expected, phase = CALLS[call]

    def body(order: LoadOrderBarrier) -> None:
        assert getattr(order, call).__doc__
        getattr(order, call)()
        assert order.phase == phase

    assert recorded(body) == expected


def test_waits_alternate_in_parity_from_the_initial_phase_on() -> None:
    def body(order: LoadOrderBarrier) -> None:
        for _ in range(3):
            order.wait_and_step()

    assert [op[2] for op in recorded(body)] == [0, 1, 0]
    assert [op[2] for op in recorded(body, initial_phase=1)] == [1, 0, 1]


def test_init_takes_the_arrive_count() -> None:
    for count in ((), (32,)):
        p = Protocol("init")
        storage = p.mbarriers("order", 1)
        p.init(lambda storage=storage, count=count: LoadOrderBarrier(storage).init(*count))  # type: ignore[misc]
        p.role("r")(lambda _: None)
        program = p.flatten()
        assert program.code[0][0] == (Op.INIT, 0, *(count or (1,)))
        assert program.barrier_name(0) == "load_order[0]"


def test_each_role_makes_its_own() -> None:
    p = Protocol("two")
    storage = p.mbarriers("order", 1, count=1)
    made: list[LoadOrderBarrier] = []
    p.role("a")(lambda _: made.append(LoadOrderBarrier(storage)))
    p.role("b")(lambda _: made[-1].step())
    with pytest.raises(ProtocolError, match="b uses the LoadOrderBarrier that a made"):
        p.flatten()


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


def conv2d(tiles: int, *, first_only: bool) -> Program:
    """The same under CLC: the scheduler holds the main load back, but only two tiles away from the epilogue load."""
    p = Protocol("conv2d")
    clc = ClcPipelineStorage(p, 2)
    order_storage = p.mbarriers("load_order", 1)

    @p.init
    def init() -> None:
        clc.init_barriers(compute_clc_barrier_counts(mma_threads=0, epilogue_threads=0, epilogue_load_threads=32))
        LoadOrderBarrier(order_storage).init()

    @p.role("main_load")
    def main_load(w: Warp) -> None:
        scheduler = TileScheduler(w, clc, tiles)
        order = LoadOrderBarrier(order_storage)
        for current in scheduler.work_iterator():
            scheduler.throttle_signal(w.cta == 0)
            if current.index == 0 or not first_only:
                with w.elect_one():
                    order.arrive_and_step()

    @p.role("epilogue_load")
    def epilogue_load(w: Warp) -> None:
        order = LoadOrderBarrier(order_storage)
        for current in TileScheduler(w, clc, tiles).work_iterator():
            if current.index == 0 or not first_only:
                order.wait_and_step()

    @p.role("scheduler")
    def scheduler(w: Warp) -> None:
        work = TileScheduler(w, clc, tiles).scheduler_iterator()
        for _ in work:
            work.signal_and_advance()
        work.drain()

    return p.flatten()


def test_the_scheduler_of_the_tiles_does_not_prevent_it(every_end: Any) -> None:
    assert every_end(conv2d(1, first_only=False)) == {"finished"}
    assert every_end(conv2d(3, first_only=False)) == {"finished", "stuck"}
    assert every_end(conv2d(3, first_only=True)) == {"finished"}
