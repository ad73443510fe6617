"""``ProducerConsumerPipeline``, member by member, as upstream has it: who waits on what, what steps, what signals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipesim import pipelines
from pipesim.errors import HandleError, ProtocolError
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Op, Operation, Order, Scope
from pipesim.pipelines import ProducerConsumerPipeline

Pipe = ProducerConsumerPipeline
Body = Callable[[Pipe, Warp], Any]

STAGES = 3
FULL, EMPTY = (0, 1, 2), (3, 4, 5)


def recorded(body: Body, stages: int = STAGES, spare: int = 0) -> list[Operation]:
    """What ``body`` records in a role of its own, without the prologue."""
    p = Protocol("pipe")
    storage = p.mbarriers("pipe", 2 * stages + spare, count=1)

    @p.role("r")
    def r(w: Warp) -> None:
        body(Pipe(storage, stages), w)

    return list(p.flatten().code[0][2 * stages + spare + 2 :])


def wait(barrier: int, parity: int) -> Operation:
    return (Op.WAIT, barrier, parity, 0)


def arrive(barrier: int, lanes: int = 32) -> Operation:
    return (Op.ARRIVE, barrier, lanes, 0, -1, 0)


def counters(pipe: Pipe) -> tuple[int, int, int, int]:
    return pipe.producer_stage(), pipe.producer_phase, pipe.consumer_stage(), pipe.consumer_phase


def test_the_api_surface_is_complete() -> None:
    members = (
        "wait_producer wait_consumer try_wait_producer try_wait_consumer wait_producer_if_needed "
        "wait_consumer_if_needed producer_mbar consumer_mbar producer_stage consumer_stage consumer_step "
        "producer_step smem_bytes init_mbars "
        "producer_signal_and_step consumer_signal_and_step produce consume consume_explicit acquire_producer "
        "acquire_consumer"
    )
    handles = {
        "ProducerConsumerPipeline": members,
        "ProducerStage": "index mbar release",
        "ConsumerStage": "index mbar arrive release release_without_signal",
        "ProduceContext": "__enter__ __exit__",
        "ConsumeContext": "__enter__ __exit__",
        "ExplicitConsumeContext": "__enter__ __exit__",
    }
    assert set(pipelines.__all__) >= set(handles)
    for name, wanted in handles.items():
        for member in wanted.split():
            method = getattr(getattr(pipelines, name), member)
            assert member.startswith("__") or method.__doc__, f"{name}.{member} says what it does"


def test_a_new_pipeline_starts_with_the_producer_one_phase_ahead() -> None:
    def body(pipe: Pipe, _: Warp) -> None:
        assert counters(pipe) == (0, 1, 0, 0)
        assert (pipe.num_stages, len(pipe.full), len(pipe.empty)) == (STAGES, STAGES, STAGES)

    assert recorded(body) == [], "making one initialises nothing and waits for nothing"


def test_the_barriers_lie_full_then_empty_at_eight_bytes_each() -> None:
    assert [Pipe.smem_bytes(s) for s in (1, 3, 8)] == [16, 48, 128]

    def body(pipe: Pipe, _: Warp) -> None:
        assert [b.index for b in (*pipe.full, *pipe.empty)] == [*FULL, *EMPTY]
        for stage in range(STAGES):
            assert pipe.producer_mbar(stage) is pipe.full[stage]
            assert pipe.consumer_mbar(stage) is pipe.empty[stage]

    assert recorded(body, spare=2) == []


@pytest.mark.parametrize("stage", [-1, STAGES])
@pytest.mark.parametrize("side", ["producer_mbar", "consumer_mbar"])
def test_a_stage_outside_the_ring_is_an_error_here(side: str, stage: int) -> None:
    with pytest.raises(ProtocolError, match=f"stage {stage} of a pipeline of 3 stages"):
        recorded(lambda pipe, _: getattr(pipe, side)(stage))


@pytest.mark.parametrize(
    ("stages", "said", "correction"),
    [
        (0, "a pipeline of 0 stages", "use at least 1 stage"),
        (-1, "a pipeline of -1 stages", "use at least 1 stage"),
        (4, "a pipeline of 4 stages needs 8 mbarriers; pipe has 6", "ask for 8 in protocol.mbarriers('pipe', ...)"),
    ],
)
def test_a_pipeline_needs_two_barriers_a_stage(stages: int, said: str, correction: str) -> None:
    def body(pipe: Pipe, _: Warp) -> None:
        Pipe(pipe.full[0].storage, stages)

    with pytest.raises(ProtocolError) as caught:
        recorded(body)
    assert (caught.value.fact, caught.value.correction) == (said, correction)


def test_init_mbars_gives_each_side_its_count() -> None:
    p = Protocol("init")
    storage = p.mbarriers("pipe", 4)
    p.init(lambda: Pipe(storage, 2).init_mbars(producer_arrive_count=1, consumer_arrive_count=64))
    p.role("r")(lambda _: None)
    inits = [op for op in p.flatten().code[0] if op[0] == Op.INIT]
    assert sorted(inits) == [(Op.INIT, 0, 1), (Op.INIT, 1, 1), (Op.INIT, 2, 64), (Op.INIT, 3, 64)]


CALLS: dict[str, tuple[Body, list[Operation]]] = {
    "wait_producer": (lambda p, _: p.wait_producer(), [wait(0, 0)]),
    "wait_consumer": (lambda p, _: p.wait_consumer(), [wait(3, 1)]),
    "try_wait_producer": (lambda p, _: p.try_wait_producer(), [(Op.TRY_WAIT, 0, 0, -1, 0)]),
    "try_wait_consumer": (lambda p, _: p.try_wait_consumer(), [(Op.TRY_WAIT, 3, 1, -1, 0)]),
    "wait_producer_if_needed of a try": (
        lambda p, _: p.wait_producer_if_needed(p.try_wait_producer()),
        [(Op.TRY_WAIT, 0, 0, 0, 0), (Op.WAIT_UNLESS, 0, 0, 0, 0)],
    ),
    "wait_consumer_if_needed of a try": (
        lambda p, _: p.wait_consumer_if_needed(p.try_wait_consumer()),
        [(Op.TRY_WAIT, 3, 1, 0, 0), (Op.WAIT_UNLESS, 3, 1, 0, 0)],
    ),
    "wait_producer_if_needed of False": (lambda p, _: p.wait_producer_if_needed(False), [wait(0, 0)]),
    "wait_consumer_if_needed of True": (lambda p, _: p.wait_consumer_if_needed(True), []),
    "producer_step": (lambda p, _: p.producer_step(), []),
    "consumer_step": (lambda p, _: p.consumer_step(), []),
    "producer_signal_and_step": (lambda p, _: p.producer_signal_and_step(), [wait(3, 1), arrive(0)]),
    "consumer_signal_and_step": (lambda p, _: p.consumer_signal_and_step(), [wait(0, 0), arrive(3)]),
    "acquire_producer": (lambda p, _: p.acquire_producer().release(), [wait(3, 1)]),
    "acquire_consumer": (lambda p, _: p.acquire_consumer().release(), [wait(0, 0), arrive(3)]),
    "release_without_signal": (lambda p, _: p.acquire_consumer().release_without_signal(), [wait(0, 0)]),
}


@pytest.mark.parametrize("call", CALLS)
def test_each_call_waits_and_signals_what_upstream_does(call: str) -> None:
    body, expected = CALLS[call]
    assert recorded(body) == expected


STEPS = {
    "wait_producer": (0, 0), "wait_consumer": (0, 0), "try_wait_producer": (0, 0), "try_wait_consumer": (0, 0),
    "producer_step": (1, 0), "consumer_step": (0, 1), "producer_signal_and_step": (1, 0),
    "consumer_signal_and_step": (0, 1),
}  # fmt: skip


@pytest.mark.parametrize("method", STEPS)
def test_what_steps_and_what_does_not(method: str) -> None:
    def body(pipe: Pipe, _: Warp) -> None:
        getattr(pipe, method)()
        assert (pipe.producer_stage(), pipe.consumer_stage()) == STEPS[method]

    recorded(body)


@pytest.mark.parametrize("stages", [1, 2, 5])
def test_stages_wrap_and_only_then_the_phase_of_that_side_toggles(stages: int) -> None:
    def body(pipe: Pipe, _: Warp) -> None:
        for n in range(3 * stages):
            assert counters(pipe) == (n % stages, 1 ^ n // stages & 1, 0, 0)
            pipe.producer_step()
        for n in range(3 * stages):
            assert counters(pipe) == (0, 0, n % stages, n // stages & 1)
            pipe.consumer_step()

    recorded(body, stages)


def test_an_arrive_counts_the_lanes_that_release() -> None:
    def body(pipe: Pipe, w: Warp) -> None:
        with w.elect_one():
            pipe.producer_signal_and_step()
            with pipe.consume():
                pass
        with w.lanes(4):
            pipe.consumer_signal_and_step()

    assert recorded(body) == [wait(3, 1), arrive(0, 1), wait(0, 0), arrive(3, 1), wait(1, 0), arrive(4, 4)]


def test_produce_signals_nothing_on_its_own() -> None:
    def body(pipe: Pipe, _: Warp) -> None:
        with pipe.produce() as stage:
            assert (stage.index(), stage.mbar() is pipe.full[0], counters(pipe)) == (0, True, (0, 1, 0, 0))
        assert counters(pipe) == (1, 1, 0, 0)

    assert recorded(body) == [wait(3, 1)]


def test_consume_gives_the_stage_back_and_consume_explicit_does_not() -> None:
    def implicit(pipe: Pipe, w: Warp) -> None:
        with pipe.consume() as stage:
            assert (stage.index(), stage.mbar() is pipe.empty[0], counters(pipe)) == (0, True, (0, 1, 0, 0))
            w.work(1)
        assert counters(pipe) == (0, 1, 1, 0)

    def explicit(pipe: Pipe, w: Warp) -> None:
        with pipe.consume_explicit():
            w.work(1)
        assert counters(pipe) == (0, 1, 1, 0)

    def by_hand(pipe: Pipe, w: Warp) -> None:
        with pipe.consume_explicit() as stage:
            w.work(1)
            stage.arrive()

    assert recorded(implicit) == [wait(0, 0), (Op.WORK, 1), arrive(3)]
    assert recorded(explicit) == [wait(0, 0), (Op.WORK, 1)]
    assert recorded(by_hand) == recorded(implicit)


def test_the_arrive_goes_to_the_stage_that_was_acquired_and_the_release_moves_the_current_one() -> None:
    def body(pipe: Pipe, _: Warp) -> None:
        stage = pipe.acquire_consumer()
        pipe.producer_step()  # the other side's, which no handle holds
        assert (stage.index(), pipe.consumer_stage(), pipe.producer_stage()) == (0, 0, 1)
        stage.arrive()
        stage.release()
        assert (pipe.consumer_stage(), pipe.consumer_phase) == (1, 0)
        made = pipe.acquire_producer()
        pipe.consumer_step()
        assert (made.index(), made.mbar() is pipe.full[1]) == (1, True)
        made.release()
        assert (pipe.producer_stage(), pipe.consumer_stage()) == (2, 2)

    assert recorded(body) == [wait(0, 0), arrive(3), arrive(3), wait(4, 1)]


def test_release_is_on_the_stages_in_turn() -> None:
    def body(pipe: Pipe, _w: Warp) -> None:
        for _ in range(4):
            with pipe.consume():
                pass

    assert recorded(body) == [
        wait(0, 0), arrive(3), wait(1, 0), arrive(4), wait(2, 0), arrive(5), wait(0, 1), arrive(3),
    ]  # fmt: skip


def test_a_copy_has_counters_of_its_own_over_the_same_barriers() -> None:
    def body(pipe: Pipe, _: Warp) -> None:
        pipe.producer_step()
        pipe.consumer_phase = 1
        twin = pipe.copy()
        assert counters(twin) == counters(pipe) == (1, 1, 0, 1)
        assert twin.full == pipe.full
        twin.producer_step()
        pipe.consumer_step()
        assert (counters(twin), counters(pipe)) == ((2, 1, 0, 1), (1, 1, 1, 1))
        with twin.produce() as one, pipe.produce() as two:
            assert (one.index(), two.index()) == (2, 1)

    assert recorded(body) == [wait(5, 1), wait(4, 1)]


@pytest.mark.parametrize("side", ["acquire_producer", "acquire_consumer"])
def test_a_pipeline_is_not_copied_while_a_stage_is_held(side: str) -> None:
    def body(pipe: Pipe, _: Warp) -> None:
        getattr(pipe, side)()
        pipe.copy()

    with pytest.raises(HandleError, match="copied while a stage of it is acquired"):
        recorded(body)


def test_every_role_has_counters_of_its_own_over_shared_barriers() -> None:
    p = Protocol("two")
    storage = p.mbarriers("pipe", 4, count=1)

    @p.role("a", warps=2)
    def a(w: Warp) -> None:
        pipe = Pipe(storage, 2)
        for _ in range(w.index + 1):
            pipe.producer_signal_and_step()
        assert pipe.producer_stage() == (w.index + 1) % 2

    program = p.flatten()
    assert [[op[1] for op in code if op[0] == Op.WAIT] for code in program.code] == [[2], [2, 3]]
    assert [program.barrier_name(b) for b in range(4)] == ["full[0]", "full[1]", "empty[0]", "empty[1]"]


def test_a_context_left_by_an_exception_does_not_hide_it() -> None:
    for context in ("produce", "consume", "consume_explicit"):

        def body(pipe: Pipe, _: Warp) -> None:
            with getattr(pipe, context)():  # noqa: B023
                raise ValueError("mine")

        with pytest.raises(ProtocolError, match="r raised ValueError: mine"):
            recorded(body)


def test_waits_and_arrives_carry_the_default_order_and_scope() -> None:
    assert (Order.DEFAULT, Scope.DEFAULT) == (0, 0)
    assert all(op[-1] == 0 for op in recorded(lambda p, _: p.producer_signal_and_step()))
