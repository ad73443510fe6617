"""A stage is held by one handle at most, and is stepped by its release: no second acquire, and no step by hand."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from pipesim import Engine, Protocol, Warp
from pipesim.errors import HandleError
from pipesim.lang.predicate import elect, predicated
from pipesim.lang.tcgen05 import mma_arrive
from pipesim.model.ops import Op, Operation
from pipesim.pipelines import (
    EpiLoadPipeline,
    InputTilePipeline,
    OutputTilePipeline,
    ProducerConsumerPipeline,
    StagedPipeline,
    StandardTilePayload,
    TmemAllocation,
)

STAGES = 3


class Pipes(NamedTuple):
    """One pipeline of each struct that gives handles."""

    ring: ProducerConsumerPipeline
    epi: EpiLoadPipeline
    input: InputTilePipeline[StandardTilePayload]
    output: OutputTilePipeline


Body = Callable[[Pipes], Any]


def recorded(body: Body) -> list[Operation]:
    """What ``body`` records in a role, without the prologue."""
    p = Protocol("held")
    tiles = [p.smem(name, STAGES, 1024) for name in "ab"]
    acc = TmemAllocation(p.tmem("acc", STAGES, 1024))
    storages = [p.mbarriers(name, 2 * STAGES, count=1) for name in ("ring", "epi", "input", "output")]

    @p.role("r")
    def r(_: Warp) -> None:
        ring, epi, loads, out = storages
        body(
            Pipes(
                ProducerConsumerPipeline(ring, STAGES),
                EpiLoadPipeline(epi, STAGES),
                InputTilePipeline(loads, StandardTilePayload(*tiles), STAGES, 1),
                OutputTilePipeline(out, acc, 0, STAGES, 128, 1),
            )
        )

    prologue = {Op.INIT, Op.FENCE, Op.BAR_SYNC}
    return [op for op in p.flatten().code[0] if op[0] not in prologue]


class Side(NamedTuple):
    """One side of one struct: how it is acquired, and what is inside it."""

    acquire: Callable[[Pipes], Any]
    release: Callable[[Pipes, Any], None]
    ring: Callable[[Pipes], ProducerConsumerPipeline]
    side: str
    handle: str


def entered(context: Callable[[Pipes], Any]) -> Callable[[Pipes], Any]:
    """Enter the context; leaving it releases."""

    def acquire(p: Pipes) -> Any:
        made = context(p)
        made.__enter__()
        return made

    return acquire


def leave(_: Pipes, context: Any) -> None:
    context.__exit__(None, None, None)


def release(_: Pipes, handle: Any) -> None:
    handle.release()


def ring(p: Pipes) -> ProducerConsumerPipeline:
    return p.ring


def epi(p: Pipes) -> ProducerConsumerPipeline:
    return p.epi.pipeline


def loads(p: Pipes) -> ProducerConsumerPipeline:
    return p.input.pipeline


def out(p: Pipes) -> ProducerConsumerPipeline:
    return p.output.pipeline


SIDES = {
    "acquire_producer": Side(lambda p: p.ring.acquire_producer(), release, ring, "producer", "producer stage 0"),
    "acquire_consumer": Side(lambda p: p.ring.acquire_consumer(), release, ring, "consumer", "consumer stage 0"),
    "without a signal": Side(
        lambda p: p.ring.acquire_consumer(),
        lambda _, stage: stage.release_without_signal(),
        ring, "consumer", "consumer stage 0",
    ),
    "produce": Side(entered(lambda p: p.ring.produce()), leave, ring, "producer", "producer stage 0"),
    "consume": Side(entered(lambda p: p.ring.consume()), leave, ring, "consumer", "consumer stage 0"),
    "consume_explicit": Side(entered(lambda p: p.ring.consume_explicit()), leave, ring, "consumer", "consumer stage 0"),
    "epi produce": Side(entered(lambda p: p.epi.produce()), leave, epi, "producer", "producer stage 0"),
    "epi consume": Side(entered(lambda p: p.epi.consume()), leave, epi, "consumer", "consumer stage 0"),
    "epi acquire": Side(lambda p: p.epi.acquire_consumer(), release, epi, "consumer", "consumer stage 0"),
    "input acquire_producer": Side(
        lambda p: p.input.acquire_producer(), release, loads, "producer", "input producer stage 0"
    ),
    "input acquire_consumer": Side(
        lambda p: p.input.acquire_consumer(), release, loads, "consumer", "input consumer stage 0"
    ),
    "InputProducer.acquire": Side(
        entered(lambda p: p.input.producer().acquire()), leave, loads, "producer", "input producer stage 0"
    ),
    "InputProducer.acquire_stage": Side(
        lambda p: p.input.producer().acquire_stage(), release, loads, "producer", "input producer stage 0"
    ),
    "InputProducer.acquire_if_needed": Side(
        entered(lambda p: p.input.producer().acquire_if_needed(p.input.try_acquire_producer())),
        leave, loads, "producer", "input producer stage 0",
    ),
    "InputConsumer.acquire": Side(
        entered(lambda p: p.input.consumer().acquire()), leave, loads, "consumer", "input consumer stage 0"
    ),
    "InputConsumer.acquire_stage": Side(
        lambda p: p.input.consumer().acquire_stage(), release, loads, "consumer", "input consumer stage 0"
    ),
    "acquire_for_mma": Side(
        lambda p: p.output.acquire_for_mma(),
        lambda p, stage: p.output.release_from_mma(stage),
        out, "producer", "MMA stage 0",
    ),
    "acquire_for_epilogue": Side(
        lambda p: p.output.acquire_for_epilogue(),
        lambda p, _: p.output.release_from_epilogue(),
        out, "consumer", "epilogue stage 0",
    ),
    "MmaStage": Side(lambda p: p.output.acquire_mma_linear(), release, out, "producer", "MMA stage 0"),
    "EpilogueStage": Side(lambda p: p.output.acquire_epilogue_linear(), release, out, "consumer", "epilogue stage 0"),
    "output producer": Side(entered(lambda p: p.output.producer()), leave, out, "producer", "MMA stage 0"),
    "output consumer": Side(entered(lambda p: p.output.consumer()), leave, out, "consumer", "epilogue stage 0"),
    "per K producer": Side(entered(lambda p: p.output.per_k().produce()), leave, out, "producer", "MMA stage 0"),
    "per K consumer": Side(entered(lambda p: p.output.per_k().consume()), leave, out, "consumer", "epilogue stage 0"),
}  # fmt: skip
OTHER = {"producer": "consumer", "consumer": "producer"}


def flip(pipe: ProducerConsumerPipeline, side: str) -> None:
    setattr(pipe, f"{side}_phase", getattr(pipe, f"{side}_phase") ^ 1)


#: what steps by hand: what is done to the ring inside, on one side, and how the error names it
BY_HAND: dict[str, tuple[Callable[[ProducerConsumerPipeline, str], Any], str]] = {
    "step": (lambda pipe, side: getattr(pipe, f"{side}_step")(), "{}_step()"),
    "signal and step": (lambda pipe, side: getattr(pipe, f"{side}_signal_and_step")(), "{}_signal_and_step()"),
    "phase": (flip, "{}_phase is set"),
}


@pytest.mark.parametrize("by_hand", BY_HAND)
@pytest.mark.parametrize("name", SIDES)
def test_a_step_by_hand_while_a_stage_is_held_is_an_error(name: str, by_hand: str) -> None:
    held, (act, verb) = SIDES[name], BY_HAND[by_hand]

    def body(p: Pipes) -> None:
        held.acquire(p)
        act(held.ring(p), held.side)

    with pytest.raises(HandleError) as caught:
        recorded(body)
    assert caught.value.fact == f"r: {verb.format(held.side)} while {held.handle} is held"
    assert caught.value.cause.startswith("acquired at ")
    assert caught.value.cause.endswith("; its release steps as well, so that a stage would be skipped")
    assert __file__ in caught.value.cause
    assert __file__ in caught.value.place


@pytest.mark.parametrize("by_hand", BY_HAND)
@pytest.mark.parametrize("name", SIDES)
def test_the_same_step_is_right_before_and_after_and_on_the_other_side(name: str, by_hand: str) -> None:
    held, (act, _) = SIDES[name], BY_HAND[by_hand]

    def body(p: Pipes) -> None:
        stage = held.acquire(p)
        act(held.ring(p), OTHER[held.side])
        held.release(p, stage)
        act(held.ring(p), held.side)

    assert recorded(body)


@pytest.mark.parametrize("name", SIDES)
def test_an_inner_acquire_of_a_stage_that_the_outer_struct_holds_is_an_error(name: str) -> None:
    held = SIDES[name]

    def body(p: Pipes) -> None:
        held.acquire(p)
        getattr(held.ring(p), f"acquire_{held.side}")()

    with pytest.raises(HandleError) as caught:
        recorded(body)
    assert caught.value.fact == f"r: a second acquire while {held.handle} is held"
    assert "acquire does not advance: it would return the same stage again" in caught.value.cause
    assert __file__ in caught.value.cause
    assert __file__ in caught.value.place


def test_the_epilogue_s_release_does_not_give_back_what_the_ring_inside_has_acquired() -> None:
    def body(p: Pipes) -> None:
        p.output.pipeline.acquire_consumer()
        p.output.release_from_epilogue()

    with pytest.raises(HandleError, match=r"r: release_from_epilogue\(\) while consumer stage 0 is held"):
        recorded(body)


@pytest.mark.parametrize("name", SIDES)
def test_an_outer_acquire_of_a_stage_that_the_ring_inside_holds_is_an_error(name: str) -> None:
    held = SIDES[name]

    def body(p: Pipes) -> None:
        getattr(held.ring(p), f"acquire_{held.side}")()
        held.acquire(p)

    with pytest.raises(HandleError) as caught:
        recorded(body)
    assert caught.value.fact == f"r: a second acquire while {held.side} stage 0 is held"


@pytest.mark.parametrize("name", SIDES)
def test_both_may_be_acquired_one_after_the_other_and_on_the_other_side(name: str) -> None:
    held = SIDES[name]

    def body(p: Pipes) -> None:
        stage = held.acquire(p)
        other = getattr(held.ring(p), f"acquire_{OTHER[held.side]}")()
        held.release(p, stage)
        getattr(held.ring(p), f"acquire_{held.side}")().release()
        held.release(p, held.acquire(p))
        other.release()
        assert getattr(held.ring(p), f"{held.side}_stage")() == 0  # three releases, three steps

    assert recorded(body)


def test_the_error_names_both_lines() -> None:
    def body(p: Pipes) -> None:
        p.input.acquire_producer()
        p.input.pipeline.producer_step()

    with pytest.raises(HandleError) as caught:
        recorded(body)
    first = inspect.getsourcelines(body)[1]
    assert caught.value.place == f"{__file__}:{first + 2}"
    assert f"acquired at {__file__}:{first + 1};" in caught.value.cause


def test_a_drain_while_a_stage_is_held_is_an_error() -> None:
    def body(p: Pipes) -> None:
        with p.input.producer() as producer, producer.acquire():
            producer.drain()

    with pytest.raises(HandleError, match="r: a drain while input producer stage 0 is held"):
        recorded(body)


@pytest.mark.parametrize("name", SIDES)
def test_a_second_object_over_the_same_barriers_cannot_acquire_the_same_stage(name: str) -> None:
    held = SIDES[name]

    def body(p: Pipes) -> None:
        again = ProducerConsumerPipeline(held.ring(p).full[0], STAGES)
        held.acquire(p)
        getattr(again, f"acquire_{held.side}")()

    with pytest.raises(HandleError, match=f"r: a second acquire while {held.handle} is held"):
        recorded(body)


@pytest.mark.parametrize("name", SIDES)
def test_a_second_object_may_acquire_another_stage_or_the_same_one_later(name: str) -> None:
    held = SIDES[name]

    def body(p: Pipes) -> None:
        again = ProducerConsumerPipeline(held.ring(p).full[0], STAGES)
        getattr(again, f"{held.side}_step")()
        stage, other = held.acquire(p), getattr(again, f"acquire_{held.side}")()
        held.release(p, stage)
        other.release()
        held.release(p, held.acquire(p))

    assert recorded(body)


def test_the_ring_that_an_accumulator_stage_carries_cannot_acquire_that_stage() -> None:
    def body(p: Pipes) -> None:
        with p.output.consumer() as stage, stage.pipeline.consume():
            pass

    with pytest.raises(HandleError, match="r: a second acquire while epilogue stage 0 is held"):
        recorded(body)


def test_a_step_of_the_copy_that_an_accumulator_stage_holds_is_not_one_of_the_pipeline() -> None:
    def body(p: Pipes) -> None:
        with p.output.consumer() as stage:
            stage.pipeline.consumer_step()
            assert stage.pipeline.consumer_stage() == 1
        assert p.output.pipeline.consumer_stage() == 1

    recorded(body)


# what upstream's kernels write


def test_the_epilogue_of_conv2d_steps_the_source_ring_while_it_holds_an_accumulator() -> None:
    def body(p: Pipes) -> None:
        source = p.epi.pipeline  # handed to the tile writer
        with p.output.consumer() as stage:
            for _ in range(2):
                source.wait_producer()
                source.consumer_mbar(source.consumer_stage()).arrive()
                source.consumer_step()
            assert (source.consumer_stage(), stage.index) == (2, 0)

    assert [op[0] for op in recorded(body)] == [Op.WAIT, *[Op.WAIT, Op.ARRIVE] * 2]


def test_stages_may_be_saved_for_loads_that_come_later() -> None:
    """As with ``prefetch_tiles_n``: the weights first, what they are multiplied with after the wait for its kernel."""

    def body(p: Pipes) -> None:
        producer, saved = p.input.producer(), []
        for _ in range(2):
            with producer.acquire() as tiles:
                tiles.expect_bytes(2048)
                saved.append((tiles.stage(), tiles.barrier()))
        for stage, barrier in saved:
            assert barrier is p.input.producer_mbar(stage)
            mma_arrive(barrier)
        assert p.input.producer_stage() == 2

    def by_hand(p: Pipes) -> None:
        pipe, saved = p.input.pipeline, []
        for _ in range(2):
            saved.append(pipe.producer_stage())
            pipe.wait_consumer()
            pipe.producer_mbar(saved[-1]).expect_bytes(2048)
            pipe.producer_step()
        for stage in saved:
            mma_arrive(pipe.producer_mbar(stage))

    assert recorded(in_one_lane(body)) == recorded(in_one_lane(by_hand))


def in_one_lane(body: Body) -> Body:
    def elected(p: Pipes) -> None:
        with predicated(elect()):
            body(p)

    return elected


def test_a_slot_may_be_released_late_by_its_index() -> None:
    p = Protocol("late")
    storage = p.mbarriers("kv", 2 * STAGES, count=1)

    @p.role("mma")
    def mma(w: Warp) -> None:
        ring = StagedPipeline(storage, STAGES)
        with w.elect_one():
            ring.consumer_wait()
            held = ring.state.index()
            ring.state.step()
            ring.consumer_wait()
            ring.consumer_release(1)
            ring.consumer_release_at(held, 1)

    ops = [op for op in p.flatten().code[0] if op[0] in (Op.WAIT, Op.COMMIT)]
    assert ops == [
        (Op.WAIT, 0, 0, 0), (Op.WAIT, 1, 0, 0), (Op.COMMIT, Engine.TCGEN05, 4), (Op.COMMIT, Engine.TCGEN05, 3),
    ]  # fmt: skip


def test_the_view_of_one_k_iteration_steps_the_input_that_its_epilogue_does_not_hold() -> None:
    def body(p: Pipes) -> None:
        with p.output.per_k_epilogue(p.input.pipeline) as stage:
            stage.arrive_input()
        assert (p.input.consumer_stage(), p.output.pipeline.consumer_stage()) == (1, 1)

    recorded(body)


def test_the_view_of_one_k_iteration_may_not_step_an_input_stage_that_is_held() -> None:
    def body(p: Pipes) -> None:
        context = p.output.per_k_epilogue(p.input.pipeline)
        context.__enter__()
        p.input.acquire_consumer()
        leave(p, context)

    with pytest.raises(HandleError, match=r"r: consumer_step\(\) while input consumer stage 0 is held"):
        recorded(body)
