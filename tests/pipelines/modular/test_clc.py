"""The CLC pipeline: its barriers, what each call records, and why the order of its calls is what it is."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from pipesim.errors import ProtocolError
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.ops import Fence, Op, Operation
from pipesim.model.program import Program
from pipesim.pipelines import (
    ClcPipelineStorage,
    PipelineState,
    TileScheduler,
    WorkInfo,
    compute_clc_barrier_counts,
)
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from tests.support.random_schedules import every_end, outcomes

PROLOGUE = 8 + 2  # inits, fence, CTA barrier
FENCE = (Op.FENCE, Fence.PROXY_ASYNC, 0)


def recorded(body: Callable[[Warp, TileScheduler], object], *, tiles: int = 3, cluster: int = 1) -> list[Operation]:
    """What a role of CTA 0 records on its scheduler of two stages. Loop marks are left out."""
    p = Protocol("clc", cluster=cluster)
    clc = ClcPipelineStorage(p, 2)
    p.init(lambda: clc.init_barriers(compute_clc_barrier_counts()))

    @p.role("r")
    def r(w: Warp) -> None:
        body(w, TileScheduler(w, clc, tiles))

    code = p.flatten().code[0][PROLOGUE + (cluster > 1) :]
    return [op for op in code if op[0] not in (Op.LOOP_BEGIN, Op.LOOP_NEXT, Op.LOOP_END)]


def wait(barrier: int, parity: int) -> Operation:
    return (Op.WAIT, barrier, parity, 0)


def arrive(barrier: int, lanes: int = 32, expect: int = 0) -> Operation:
    return (Op.ARRIVE, barrier, lanes, expect, -1, 0)


# layout and counts


@pytest.mark.parametrize(("stages", "tiles"), [(0, 2), (0, -1), (2, -1)])
def test_what_no_scheduler_hands_out(stages: int, tiles: int) -> None:
    p = Protocol("wrong")
    clc = ClcPipelineStorage(p, stages)
    p.init(lambda: clc.init_barriers(compute_clc_barrier_counts()))
    p.role("r")(lambda w: TileScheduler(w, clc, tiles) and None)  # type: ignore[arg-type]
    with pytest.raises(ProtocolError, match=f"{tiles} tiles from a scheduler of {stages} stages"):
        p.flatten()
    with pytest.raises(ProtocolError, match="-1 CLC stages"):
        ClcPipelineStorage(Protocol("x"), -1)


# what each call records


def test_a_fetch_waits_reads_fences_and_arrives_with_every_lane() -> None:
    def body(w: Warp, scheduler: TileScheduler) -> None:
        state = PipelineState(2, 1, 1)
        assert scheduler.fetch_next_work(WorkInfo(0, True), state) == WorkInfo(1, True)
        assert scheduler.fetch_next_work(WorkInfo(2, True), state) == WorkInfo(3, False)
        assert (state.index(), state.phase()) == (1, 1), "it does not step"

    assert recorded(body) == [
        wait(1, 1), (Op.READ, 0, 1), FENCE, arrive(3),
        wait(1, 1), (Op.READ, 0, 3), FENCE, arrive(3),
    ]  # fmt: skip


def test_a_request_expects_16_bytes_in_each_cta_and_one_lane_asks() -> None:
    def body(w: Warp, scheduler: TileScheduler) -> None:
        state = PipelineState(2, 0, 1)
        after = scheduler.advance_to_next_work(state)
        assert (after.index(), after.phase(), after.count()) == (1, 1, 1)

    assert recorded(body) == [wait(2, 1), arrive(0, 1, 16), (Op.TMA_LOAD, 0, 0, 16, 1, 0)]
    request = recorded(body, cluster=4)
    assert request[:-1] == [wait(2, 1), *(arrive(8 * cta, 1, 16) for cta in range(4))]
    assert request[-1][3:] == (16, 1, 0b1111), "multicast to the whole cluster"


def test_for_advances_a_copy_and_the_requests_are_the_originals() -> None:
    def body(w: Warp, scheduler: TileScheduler) -> None:
        work = scheduler.scheduler_iterator()
        for current in work:
            work.signal_and_advance()
            assert work.work_info == WorkInfo(0, True)
            assert work.producer_state.count() == current.index + 1
        assert (work.consumer_state.count(), work.producer_state.count()) == (0, 3)
        assert work.throttle_pipeline is not None
        assert scheduler.throttle_pipeline is not None
        assert work.throttle_pipeline.consumer_stage() == 1
        assert scheduler.throttle_pipeline.consumer_stage() == 0
        again = iter(work)
        assert next(again) == WorkInfo(0, True), "a second loop would begin with the initial tile again"
        for _ in range(3):
            next(again, None)

    recorded(body)


def test_an_iterator_that_has_begun_is_not_copied() -> None:
    def body(w: Warp, scheduler: TileScheduler) -> None:
        work = scheduler.work_iterator()
        next(work)
        for _ in work:
            pass

    with pytest.raises(ProtocolError, match="copied after its first tile"):
        recorded(body)


# the whole kernel


@dataclass(frozen=True)
class Kernel:
    """The GEMM's roles around the CLC pipeline, and what can be wrong with them."""

    tiles: int = 4
    cluster: int = 1
    stages: int = 2
    fetch_first: bool = False
    throttled: bool = True
    drains: int = 1
    requests_beyond: int = 0
    consumer_lanes: int = 32
    workers: int = 2  #: warps besides load and scheduler


def kernel(case: Kernel) -> Program:
    p = Protocol("kernel", cluster=case.cluster)
    clc = ClcPipelineStorage(p, case.stages)
    counts = compute_clc_barrier_counts(32, 32, 32 * case.workers, 0, case.cluster)
    p.init(lambda: clc.init_barriers(counts))

    @p.role("load")
    def load(w: Warp) -> None:
        scheduler = TileScheduler(w, clc, case.tiles)
        if case.fetch_first:
            state, work = PipelineState(case.stages), scheduler.initial_work_info()
            while work.is_valid():
                work = scheduler.fetch_next_work(work, state)
                state.step()
                scheduler.throttle_signal(w.cta == 0)
            return
        for current in scheduler.work_iterator():
            if case.throttled:
                scheduler.throttle_signal(w.cta == 0)
            w.work(100 + current.index)

    @p.role("worker", warps=case.workers)
    def worker(w: Warp) -> None:
        with w.lanes(case.consumer_lanes):
            for _ in TileScheduler(w, clc, case.tiles).work_iterator():
                w.work(10)

    @p.role("scheduler")
    def scheduler(w: Warp) -> None:
        if w.cta:
            return
        work = TileScheduler(w, clc, case.tiles).scheduler_iterator()
        for _ in work:
            if case.throttled:
                work.signal_and_advance()
            else:
                work.producer_state = work.scheduler.advance_to_next_work(work.producer_state)
        for _ in range(case.requests_beyond):
            work.producer_state = work.scheduler.advance_to_next_work(work.producer_state)
        for _ in range(case.drains):
            work.drain()

    return p.flatten()


def test_fetching_before_the_throttle_is_signalled_deadlocks() -> None:
    """The load warp waits for an answer, the scheduler for the load warp's signal."""
    program = kernel(Kernel(fetch_first=True, workers=1))
    assert every_end(program) == {"stuck"}
    run = simulate(program, load_profile("h100"))
    assert run.outcome is Ending.DEADLOCK
    assert run.deadlock is not None
    assert set(run.deadlock.cycle) == {"load", "scheduler"}
    waits = {b.agent: b.barrier for b in run.deadlock.blocked}
    assert (waits["load"], waits["scheduler"]) == ("clc.full[0]", "clc_throttle.full[0]")


@pytest.mark.slow
def test_without_the_drain_cta_0_exits_under_the_arrivals_of_the_others() -> None:
    assert outcomes(kernel(Kernel(tiles=2, cluster=2, drains=0))) == {"EXITED_CTA", "finished"}
    assert outcomes(kernel(Kernel(tiles=2, cluster=2))) == {"finished"}
