"""A stage is held by one handle at most, is given back exactly once, and is stepped by its release alone.

Every rule is shown for every way to acquire a stage, of every struct that gives handles.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from pipesim import Protocol, Warp
from pipesim.errors import HandleError, ProtocolError
from pipesim.model.ops import Op
from pipesim.pipelines import (
    EpiLoadPipeline,
    InputTilePipeline,
    LoadOrderBarrier,
    OrderedSequenceBarrier,
    OutputTilePipeline,
    PipelineState,
    PipelineUmmaAsync,
    ProducerConsumerPipeline,
    RolePipeline,
    StagedPipeline,
    StandardTilePayload,
    TmemAllocation,
)
from tests.pipelines.structs import PROLOGUE

STAGES = 3


class Pipes(NamedTuple):
    """One pipeline of each struct that gives handles."""

    ring: ProducerConsumerPipeline
    epi: EpiLoadPipeline
    input: InputTilePipeline[StandardTilePayload]
    output: OutputTilePipeline


Body = Callable[[Pipes], Any]


def recorded(body: Body) -> list[Any]:
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

    return [op for op in p.flatten().code[0] if op[0] not in PROLOGUE]


class Side(NamedTuple):
    """One side of one struct: how it is acquired and given back, and the ring inside it."""

    acquire: Callable[[Pipes], Any]
    release: Callable[[Pipes, Any], Any]
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


MADE, READ = "input producer stage 0", "input consumer stage 0"
SIDES = {
    "acquire_producer": Side(lambda p: p.ring.acquire_producer(), release, ring, "producer", "producer stage 0"),
    "acquire_consumer": Side(lambda p: p.ring.acquire_consumer(), release, ring, "consumer", "consumer stage 0"),
    "without a signal": Side(
        lambda p: p.ring.acquire_consumer(), lambda _, s: s.release_without_signal(), ring, "consumer",
        "consumer stage 0",
    ),
    "produce": Side(entered(lambda p: p.ring.produce()), leave, ring, "producer", "producer stage 0"),
    "consume": Side(entered(lambda p: p.ring.consume()), leave, ring, "consumer", "consumer stage 0"),
    "consume_explicit": Side(entered(lambda p: p.ring.consume_explicit()), leave, ring, "consumer", "consumer stage 0"),
    "epi produce": Side(entered(lambda p: p.epi.produce()), leave, epi, "producer", "producer stage 0"),
    "epi acquire": Side(lambda p: p.epi.acquire_consumer(), release, epi, "consumer", "consumer stage 0"),
    "input acquire_producer": Side(lambda p: p.input.acquire_producer(), release, loads, "producer", MADE),
    "input acquire_consumer": Side(lambda p: p.input.acquire_consumer(), release, loads, "consumer", READ),
    "InputProducer.acquire": Side(entered(lambda p: p.input.producer().acquire()), leave, loads, "producer", MADE),
    "InputProducer.acquire_if_needed": Side(
        entered(lambda p: p.input.producer().acquire_if_needed(p.input.try_acquire_producer())),
        leave, loads, "producer", MADE,
    ),
    "InputConsumer.acquire": Side(entered(lambda p: p.input.consumer().acquire()), leave, loads, "consumer", READ),
    "acquire_for_mma": Side(
        lambda p: p.output.acquire_for_mma(), lambda p, s: p.output.release_from_mma(s), out, "producer", "MMA stage 0"
    ),
    "acquire_for_epilogue": Side(
        lambda p: p.output.acquire_for_epilogue(), lambda p, _: p.output.release_from_epilogue(), out, "consumer",
        "epilogue stage 0",
    ),
    "output producer": Side(entered(lambda p: p.output.producer()), leave, out, "producer", "MMA stage 0"),
    "output consumer": Side(entered(lambda p: p.output.consumer()), leave, out, "consumer", "epilogue stage 0"),
    "per K": Side(entered(lambda p: p.output.per_k().produce()), leave, out, "producer", "MMA stage 0"),
}  # fmt: skip
OTHER = {"producer": "consumer", "consumer": "producer"}


def flip(pipe: ProducerConsumerPipeline, side: str) -> None:
    if side == "producer":
        pipe.producer_phase ^= 1
    else:
        pipe.consumer_step()


#: what steps by hand: what is done to the ring inside, on one side, and how the error names it
BY_HAND: dict[str, tuple[Callable[[ProducerConsumerPipeline, str], Any], dict[str, str]]] = {
    "step": (
        lambda pipe, side: getattr(pipe, f"{side}_step")(),
        {"producer": "producer_step()", "consumer": "consumer_step()"},
    ),
    "signal": (
        lambda pipe, side: getattr(pipe, f"{side}_signal_and_step")(),
        {"producer": "producer_signal_and_step()", "consumer": "consumer_signal_and_step()"},
    ),
    "phase": (flip, {"producer": "producer_phase is set", "consumer": "consumer_step()"}),
}


@pytest.mark.parametrize("name", SIDES)
def test_a_step_by_hand_while_a_stage_is_held_is_an_error_and_right_otherwise(name: str) -> None:
    held = SIDES[name]
    for act, verbs in BY_HAND.values():

        def wrong(p: Pipes) -> None:
            held.acquire(p)
            act(held.ring(p), held.side)  # noqa: B023

        def right(p: Pipes) -> None:
            stage = held.acquire(p)
            act(held.ring(p), OTHER[held.side])  # noqa: B023
            held.release(p, stage)
            act(held.ring(p), held.side)  # noqa: B023

        with pytest.raises(HandleError) as caught:
            recorded(wrong)
        assert caught.value.fact == f"r: {verbs[held.side]} while {held.handle} is held"
        assert caught.value.cause.endswith("; its release steps as well, so that a stage would be skipped")
        assert __file__ in caught.value.cause
        assert __file__ in caught.value.place
        assert recorded(right)


@pytest.mark.parametrize("name", SIDES)
def test_acquiring_does_not_advance_so_a_second_acquire_is_an_error_whoever_makes_it(name: str) -> None:
    held = SIDES[name]

    def inner(p: Pipes) -> None:
        held.acquire(p)
        getattr(held.ring(p), f"acquire_{held.side}")()

    def outer(p: Pipes) -> None:
        getattr(held.ring(p), f"acquire_{held.side}")()
        held.acquire(p)

    def another_object(p: Pipes) -> None:
        again = ProducerConsumerPipeline(held.ring(p).full[0], STAGES)
        held.acquire(p)
        getattr(again, f"acquire_{held.side}")()

    for body, first in (inner, held.handle), (outer, f"{held.side} stage 0"), (another_object, held.handle):
        with pytest.raises(HandleError) as caught:
            recorded(body)
        assert caught.value.fact == f"r: a second acquire while {first} is held"
        assert "acquire does not advance: it would return the same stage again" in caught.value.cause
        assert __file__ in caught.value.place


@pytest.mark.parametrize("name", SIDES)
def test_one_after_the_other_and_both_sides_and_another_stage_may_be_held(name: str) -> None:
    held = SIDES[name]

    def body(p: Pipes) -> None:
        stage = held.acquire(p)
        other = getattr(held.ring(p), f"acquire_{OTHER[held.side]}")()
        held.release(p, stage)
        getattr(held.ring(p), f"acquire_{held.side}")().release()
        held.release(p, held.acquire(p))
        other.release()
        assert getattr(held.ring(p), f"{held.side}_stage")() == 0  # three releases, three steps
        again = ProducerConsumerPipeline(held.ring(p).full[0], STAGES)
        getattr(again, f"{held.side}_step")()
        stage, other = held.acquire(p), getattr(again, f"acquire_{held.side}")()
        held.release(p, stage)
        other.release()

    assert recorded(body)


@pytest.mark.parametrize("name", SIDES)
def test_a_stage_is_given_back_once_and_not_used_afterwards(name: str) -> None:
    held = SIDES[name]
    with pytest.raises(HandleError) as caught:
        recorded(held.acquire)
    assert caught.value.fact == f"r: {held.handle} was never released"
    assert __file__ in caught.value.place

    def copied(p: Pipes) -> None:
        held.acquire(p)
        held.ring(p).copy()

    with pytest.raises(HandleError, match="copied while a stage of it is acquired"):
        recorded(copied)


AFTER: dict[str, tuple[Callable[[Pipes], Any], str]] = {
    "index mbar release": (lambda p: p.ring.acquire_producer(), "producer stage 0"),
    "index mbar arrive release release_without_signal": (lambda p: p.ring.acquire_consumer(), "consumer stage 0"),
    "payload stage barrier release": (lambda p: p.input.acquire_producer(), MADE),
    "payload stage mbar release": (lambda p: p.input.acquire_consumer(), READ),
    "payload stage mbar __enter__": (lambda p: p.input.consumer().acquire(), READ),
}


@pytest.mark.parametrize("verbs", AFTER)
def test_a_released_handle_gives_nothing_any_more(verbs: str) -> None:
    acquire, name = AFTER[verbs]
    for verb in verbs.split():

        def body(p: Pipes) -> None:
            stage = acquire(p)
            if hasattr(stage, "release"):
                stage.release()
            else:
                with stage:
                    pass
            getattr(stage, verb)()  # noqa: B023

        with pytest.raises(HandleError, match=f"of {name} after its release"):
            recorded(body)


def test_the_error_names_both_lines() -> None:
    def body(p: Pipes) -> None:
        p.input.acquire_producer()
        p.input.pipeline.producer_step()

    with pytest.raises(HandleError) as caught:
        recorded(body)
    first = inspect.getsourcelines(body)[1]
    assert caught.value.place == f"{__file__}:{first + 2}"
    assert f"acquired at {__file__}:{first + 1};" in caught.value.cause


def drained(p: Pipes) -> None:
    with p.input.producer() as producer, producer.acquire():
        producer.drain()


def released_by_the_epilogue(p: Pipes) -> None:
    p.output.pipeline.acquire_consumer()
    p.output.release_from_epilogue()


def released_on_the_wrong_side(p: Pipes) -> None:
    p.output.release_from_mma(p.output.acquire_for_epilogue())


def stepped_by_an_epilogue(p: Pipes) -> None:
    context = p.output.per_k_epilogue(p.input.pipeline)
    context.__enter__()
    p.input.acquire_consumer()
    leave(p, context)


def acquired_in_the_copy_that_a_stage_carries(p: Pipes) -> None:
    with p.output.consumer() as stage, stage.pipeline.consume():
        pass


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (drained, "r: a drain while input producer stage 0 is held"),
        (released_by_the_epilogue, r"r: release_from_epilogue\(\) while consumer stage 0 is held"),
        (released_on_the_wrong_side, "r releases epilogue stage 0 as the MMA warp, which does not hold it"),
        (stepped_by_an_epilogue, r"r: consumer_step\(\) while input consumer stage 0 is held"),
        (acquired_in_the_copy_that_a_stage_carries, "r: a second acquire while epilogue stage 0 is held"),
    ],
)
def test_other_mistakes(body: Body, said: str) -> None:
    with pytest.raises(HandleError, match=said):
        recorded(body)


@pytest.mark.parametrize("name", [name for name, side in SIDES.items() if side.release is leave])
def test_an_exception_inside_a_stage_is_not_hidden(name: str) -> None:
    def body(p: Pipes) -> None:
        context = SIDES[name].acquire(p)
        try:
            raise ValueError("mine")
        except ValueError as error:
            context.__exit__(ValueError, error, None)
            raise

    with pytest.raises(ProtocolError, match="r raised ValueError: mine"):
        recorded(body)


# copies, and other roles


@pytest.mark.parametrize(
    ("make", "use"),
    [
        (lambda b, _: ProducerConsumerPipeline(b, 2), lambda pipe: pipe.wait_producer()),
        (lambda b, t: InputTilePipeline(b, t, 2, 1).pipeline, lambda pipe: pipe.producer_step()),
        (lambda b, _: RolePipeline(b[0], b[2], 2), lambda pipe: pipe.step()),
        (lambda b, _: StagedPipeline(b, 2), lambda pipe: pipe.consumer_wait()),
        (lambda b, _: LoadOrderBarrier(b[0]), lambda order: order.step()),
        (lambda b, _: PipelineState(2), lambda state: state.copy()),
        (lambda b, _: PipelineUmmaAsync(b, 2), lambda pipe: pipe.consumer_wait(PipelineState(2))),
        (lambda b, _: OrderedSequenceBarrier(b, 2, 2, 0), lambda order: order.wait()),
    ],
)
def test_what_a_role_made_belongs_to_it(make: Callable[[Any, Any], Any], use: Callable[[Any], Any]) -> None:
    p = Protocol("two")
    tiles = StandardTilePayload(p.smem("tile_a", 2, 64), p.smem("tile_b", 2, 32))
    b = p.mbarriers("b", 4, count=1)
    made: list[Any] = []
    p.role("one")(lambda _: made.append(make(b, tiles)))
    p.role("two")(lambda _: use(made[-1]) and None)
    with pytest.raises(ProtocolError, match=r"two uses the \w+ that one made") as caught:
        p.flatten()
    assert "inside each role" in caught.value.correction


def test_a_handle_belongs_to_the_role_that_acquired_it() -> None:
    p = Protocol("two")
    b = p.mbarriers("b", 4, count=1)
    made: list[Any] = []

    @p.role("one")
    def one(_: Warp) -> None:
        made.append(ProducerConsumerPipeline(b, 2).acquire_producer())
        made[-1].release()

    p.role("two")(lambda _: made[-1].index() and None)
    with pytest.raises(HandleError, match=r"two: index\(\) of producer stage 0, which one holds"):
        p.flatten()


def test_every_warp_has_counters_of_its_own_over_shared_barriers() -> None:
    p = Protocol("two")
    b = p.mbarriers("b", 4, count=1)

    @p.role("a", warps=2)
    def a(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(b, 2)
        for _ in range(w.index + 1):
            pipe.producer_signal_and_step()
        assert pipe.producer_stage() == (w.index + 1) % 2

    assert [[op[1] for op in code if op[0] == Op.WAIT] for code in p.flatten().code] == [[2], [2, 3]]
