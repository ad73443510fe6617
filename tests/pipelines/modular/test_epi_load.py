"""``EpiLoadPipeline``: what each method forwards to, and the two places where upstream's page misleads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipesim.explain.phases import run_canonically
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.ops import Op, Operation
from pipesim.model.program import Program
from pipesim.pipelines import ConsumerStage, EpiLoadPipeline, ProducerConsumerPipeline, ProducerStage
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile

STAGES = 2
Body = Callable[[EpiLoadPipeline], Any]


def recorded(body: Body) -> list[Operation]:
    p = Protocol("epi")
    storage = p.mbarriers("epi", 2 * STAGES, count=1)
    p.role("r")(lambda _: body(EpiLoadPipeline(storage, STAGES)) and None)
    return list(p.flatten().code[0][2 * STAGES + 2 :])


def wait(barrier: int, parity: int) -> Operation:
    return (Op.WAIT, barrier, parity, 0)


def arrive(barrier: int, lanes: int = 32) -> Operation:
    return (Op.ARRIVE, barrier, lanes, 0, -1, 0)


def test_the_api_surface_is_complete() -> None:
    members = (
        "init_barriers produce acquire_producer wait_consumer producer_mbar producer_step consume consume_explicit "
        "acquire_consumer wait_producer consumer_stage consumer_step"
    )
    assert all(getattr(EpiLoadPipeline, member).__doc__ for member in members.split())


def used(handle: ProducerStage | ConsumerStage) -> None:
    handle.mbar().arrive()
    handle.release()


def within(context: Any) -> None:
    with context:
        pass


CALLS: dict[str, tuple[Body, list[Operation]]] = {
    "produce": (lambda e: within(e.produce()), [wait(2, 1)]),
    "acquire_producer": (lambda e: used(e.acquire_producer()), [wait(2, 1), arrive(0)]),
    "wait_consumer": (lambda e: e.wait_consumer(), [wait(2, 1)]),
    "producer_mbar": (lambda e: e.producer_mbar().arrive() and None, [arrive(0)]),
    "producer_step": (lambda e: e.producer_step(), []),
    "consume": (lambda e: within(e.consume()), [wait(0, 0), arrive(2)]),
    "consume_explicit": (lambda e: within(e.consume_explicit()), [wait(0, 0)]),
    "acquire_consumer": (lambda e: used(e.acquire_consumer()), [wait(0, 0), arrive(2), arrive(2)]),
    "wait_producer": (lambda e: e.wait_producer(), [wait(0, 0)]),
    "consumer_stage": (lambda e: e.consumer_stage() and None, []),
    "consumer_step": (lambda e: e.consumer_step(), []),
}


@pytest.mark.parametrize("call", CALLS)
def test_each_call_is_the_inner_pipelines(call: str) -> None:
    body, expected = CALLS[call]
    assert recorded(body) == expected


def test_the_counters_are_the_inner_pipelines() -> None:
    def body(epi: EpiLoadPipeline) -> None:
        assert isinstance(epi.pipeline, ProducerConsumerPipeline)
        epi.producer_step()
        epi.consumer_step()
        assert (epi.pipeline.producer_stage(), epi.consumer_stage()) == (1, 1)
        assert epi.producer_mbar() is epi.pipeline.full[1]
        epi.producer_step()
        assert (epi.pipeline.producer_stage(), epi.pipeline.producer_phase) == (0, 0)

    assert recorded(body) == []


@pytest.mark.parametrize(("counts", "expected"), [({}, (1, 128)), ({"producer_arv_count": 16}, (16, 128))])
def test_one_arrival_fills_and_128_threads_free(counts: dict[str, int], expected: tuple[int, int]) -> None:
    p = Protocol("init")
    storage = p.mbarriers("epi", 2)
    p.init(lambda: EpiLoadPipeline(storage, 1).init_barriers(**counts))
    p.role("r")(lambda _: None)
    assert [op[2] for op in p.flatten().code[0] if op[0] == Op.INIT] == list(expected)


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


@pytest.mark.parametrize("stages", [1, 2, 4])
def test_the_residual_of_conv2d_is_right_for_any_number_of_stages(stages: int) -> None:
    """Upstream's page says two stages; conv2d uses MMA_N / OutputN of them."""
    run = simulate(residual(stages=stages, parts=9), load_profile("h100"))
    assert (run.outcome, run.faults) == (Ending.FINISHED, ())


def test_the_barrier_asked_for_after_the_step_is_the_next_stages() -> None:
    """Right: ask, then step. Wrong: the copy of stage 0 is counted on full[1], and nobody ever fills full[0] first."""
    assert run_canonically(residual()).finished
    wrong = simulate(residual(step_first=True), load_profile("h100"))
    assert wrong.outcome is Ending.DEADLOCK
    assert wrong.deadlock is not None
    assert {b.barrier for b in wrong.deadlock.blocked if b.agent.startswith("epilogue/")} == {"full[0]"}


def test_the_inner_pipelines_producer_mbar_takes_a_stage_and_this_one_does_not() -> None:
    def body(epi: EpiLoadPipeline) -> None:
        assert epi.producer_mbar() is epi.pipeline.producer_mbar(0)
        with pytest.raises(TypeError):
            epi.producer_mbar(0)  # type: ignore[call-arg]  # the trap
        with pytest.raises(TypeError):
            epi.pipeline.producer_mbar()  # type: ignore[call-arg]  # its mirror

    recorded(body)


def test_fewer_than_128_threads_that_consume_never_free_a_stage() -> None:
    for wrong in (residual(lanes=1), residual(epilogue=3)):
        end = run_canonically(wrong)
        assert (end.finished, end.faults) == (False, ())
    assert run_canonically(residual(lanes=1, parts=2)).finished, "with no second lap nobody notices"
