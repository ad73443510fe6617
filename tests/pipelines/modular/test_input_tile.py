"""``InputTilePipeline`` and its views and handles, member by member: giving a stage back steps, and signals nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipesim import pipelines
from pipesim.errors import HandleError, ProtocolError
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Op, Operation
from pipesim.pipelines import InputTilePipeline, ProducerConsumerPipeline, StandardTilePayload

Pipe = InputTilePipeline[StandardTilePayload]
Body = Callable[[Pipe, Warp], Any]

STAGES, GROUP = 3, 2
FULL, EMPTY = (0, 1, 2), (3, 4, 5)


def recorded(
    body: Body, stages: int = STAGES, group: int = GROUP, barriers: int = 0, slots: int = 6
) -> list[Operation]:
    """What ``body`` records in a role of its own, without the prologue."""
    p = Protocol("pipe")
    payload = StandardTilePayload(p.smem("a", 6, 64), p.smem("b", 6, 32))
    storage = p.mbarriers("input", barriers) if barriers else Pipe.BarrierArray(p, "input", stages)
    p.init(lambda: Pipe.init_barriers(storage, 1, 1))

    @p.role("r")
    def r(w: Warp) -> None:
        body(InputTilePipeline(storage, payload, stages, group), w)

    return list(p.flatten().code[0][len(storage) + 2 :])


def wait(barrier: int, parity: int) -> Operation:
    return (Op.WAIT, barrier, parity, 0)


def counters(pipe: Pipe) -> tuple[int, int, int, int]:
    return pipe.producer_stage(), pipe.pipeline.producer_phase, pipe.consumer_stage(), pipe.pipeline.consumer_phase


def test_the_api_surface_is_complete() -> None:
    surface = {
        "InputTilePipeline": "BarrierArray Pipeline init_barriers try_acquire_producer try_acquire_consumer "
        "wait_producer_if_needed wait_consumer_if_needed producer_stage consumer_stage producer_mbar consumer_mbar "
        "producer consumer acquire_producer acquire_consumer drain_producer",
        "InputProducer": "__enter__ __exit__ drain acquire acquire_stage try_acquire acquire_if_needed",
        "ProducerTiles": "__enter__ __exit__ payload stage expect_bytes barrier",
        "InputProducerStage": "payload stage expect_bytes barrier release",
        "InputConsumer": "__enter__ __exit__ acquire acquire_stage try_acquire acquire_if_needed",
        "ConsumerTiles": "__enter__ __exit__ payload stage mbar",
        "InputConsumerStage": "payload stage mbar release",
    }
    assert set(pipelines.__all__) >= set(surface)
    for name, wanted in surface.items():
        for member in wanted.split():
            method = getattr(getattr(pipelines, name), member)
            assert member.startswith("__") or method.__doc__, f"{name}.{member} says what it does"
    assert InputTilePipeline.Pipeline is ProducerConsumerPipeline
    assert not hasattr(pipelines.InputConsumer, "drain")
    assert not hasattr(pipelines.ProducerTiles, "release")
    assert not hasattr(pipelines.ConsumerTiles, "release")


def test_a_new_pipeline_starts_as_the_one_inside_it() -> None:
    def body(pipe: Pipe, _: Warp) -> None:
        assert counters(pipe) == (0, 1, 0, 0)
        assert (pipe.num_group_stages, pipe.k_group_size, pipe.payload.num_pipeline_stages) == (3, 2, 6)
        assert isinstance(pipe.pipeline, ProducerConsumerPipeline)
        assert [pipe.producer_mbar(s).index for s in range(3)] == [*FULL]
        assert [pipe.consumer_mbar(s).index for s in range(3)] == [*EMPTY]

    assert recorded(body) == []


def test_the_barriers_are_made_and_initialised_for_both_sides() -> None:
    p = Protocol("init")
    storage = InputTilePipeline.BarrierArray(p, "input", 2)
    p.init(lambda: InputTilePipeline.init_barriers(storage, 1, 3))
    p.role("r")(lambda _: None)
    program = p.flatten()
    inits = sorted(op for op in program.code[0] if op[0] == Op.INIT)
    assert (len(storage), inits) == (4, [(Op.INIT, 0, 1), (Op.INIT, 1, 1), (Op.INIT, 2, 3), (Op.INIT, 3, 3)])
    assert [program.barrier_name(b) for b in range(4)] == ["full[0]", "full[1]", "empty[0]", "empty[1]"]


def test_what_does_not_fit_is_refused() -> None:
    def nothing(_: Pipe, __: Warp) -> None:
        pass

    for stages, barriers in ((3, 8), (3, 4), (0, 6), (-1, 6)):
        with pytest.raises(ProtocolError, match=f"stages need .* mbarriers; input has {barriers}"):
            recorded(nothing, stages, barriers=barriers)
    with pytest.raises(ProtocolError, match="2 stages need 4 mbarriers; input has 5"):
        recorded(nothing, barriers=5)
    for stages, group in ((3, 3), (4, 2), (3, 0)):
        with pytest.raises(ProtocolError, match=r"slots; each array of the payload has 6") as caught:
            recorded(nothing, stages, group)
        assert "test_input_tile.py" in caught.value.place
    assert recorded(nothing, 3, 1) == [], "a payload may have slots that a pipeline does not use"


CALLS: dict[str, tuple[Body, list[Operation]]] = {
    "try_acquire_producer": (lambda p, _: p.try_acquire_producer(), [(Op.TRY_WAIT, 3, 1, -1, 0)]),
    "try_acquire_consumer": (lambda p, _: p.try_acquire_consumer(), [(Op.TRY_WAIT, 0, 0, -1, 0)]),
    "producer try": (
        lambda p, _: p.wait_consumer_if_needed(p.try_acquire_producer()),
        [(Op.TRY_WAIT, 3, 1, 0, 0), (Op.WAIT_UNLESS, 3, 1, 0, 0)],
    ),
    "consumer try": (
        lambda p, _: p.wait_producer_if_needed(p.try_acquire_consumer()),
        [(Op.TRY_WAIT, 0, 0, 0, 0), (Op.WAIT_UNLESS, 0, 0, 0, 0)],
    ),
    "wait_consumer_if_needed of False": (lambda p, _: p.wait_consumer_if_needed(False), [wait(3, 1)]),
    "wait_producer_if_needed of False": (lambda p, _: p.wait_producer_if_needed(False), [wait(0, 0)]),
    "wait_producer_if_needed of True": (lambda p, _: p.wait_producer_if_needed(True), []),
    "acquire_producer": (lambda p, _: p.acquire_producer().release(), [wait(3, 1)]),
    "acquire_consumer": (lambda p, _: p.acquire_consumer().release(), [wait(0, 0)]),
    "drain_producer": (lambda p, _: p.drain_producer(), [wait(3, 1), wait(4, 1), wait(5, 1)]),
    "producer.drain": (lambda p, _: p.producer().drain(), [wait(3, 1), wait(4, 1), wait(5, 1)]),
    "producer.acquire_stage": (lambda p, _: p.producer().acquire_stage().release(), [wait(3, 1)]),
    "consumer.acquire_stage": (lambda p, _: p.consumer().acquire_stage().release(), [wait(0, 0)]),
    "producer.try_acquire": (lambda p, _: p.producer().try_acquire(), [(Op.TRY_WAIT, 3, 1, -1, 0)]),
    "consumer.try_acquire": (lambda p, _: p.consumer().try_acquire(), [(Op.TRY_WAIT, 0, 0, -1, 0)]),
}


@pytest.mark.parametrize("call", CALLS)
def test_each_call_waits_and_signals_what_upstream_does(call: str) -> None:
    body, expected = CALLS[call]
    assert recorded(body) == expected


@pytest.mark.parametrize("side", ["producer", "consumer"])
def test_a_view_holds_no_state_and_leaving_it_does_nothing(side: str) -> None:
    def body(pipe: Pipe, _: Warp) -> None:
        view = getattr(pipe, side)()
        with view as entered:
            assert entered is view
            assert view.pipeline_ptr is pipe
            with view.acquire():
                pass
        another = getattr(pipe, side)()
        with another.acquire() as tiles:
            assert tiles.stage() == 1, "the counters are the pipeline's"

    first, second = recorded(body)
    assert (first[0], second[0], second[1] - first[1]) == (Op.WAIT, Op.WAIT, 1)


def test_a_producer_stage_gives_the_tiles_and_the_full_barrier() -> None:
    def body(pipe: Pipe, w: Warp) -> None:
        producer = pipe.producer()
        with producer.acquire() as tiles:
            assert (tiles.payload() is pipe.payload, tiles.stage(), tiles.barrier() is pipe.pipeline.full[0]) == (
                True, 0, True,
            )  # fmt: skip
            with w.elect_one():
                tiles.expect_bytes(pipe.payload.stage_bytes(GROUP))
                for k in range(GROUP):
                    for tile in tiles.payload().get_tile(tiles.stage(), k, GROUP):
                        w.tma_load(tile, tiles.barrier(), k)
            assert counters(pipe) == (0, 1, 0, 0)
        assert counters(pipe) == (1, 1, 0, 0)
        stage = producer.acquire_stage()
        assert (stage.payload() is pipe.payload, stage.stage(), stage.barrier().index) == (True, 1, 1)
        stage.expect_bytes(8)
        stage.release()
        assert counters(pipe) == (2, 1, 0, 0)

    assert recorded(body) == [
        wait(3, 1), (Op.ARRIVE, 0, 1, 192, -1, 0),
        (Op.TMA_LOAD, 0, 0, 64, 0, 0), (Op.TMA_LOAD, 0, 1, 32, 0, 0),
        (Op.TMA_LOAD, 0, 2, 64, 1, 0), (Op.TMA_LOAD, 0, 3, 32, 1, 0),
        wait(4, 1), (Op.ARRIVE, 1, 32, 256, -1, 0),  # every lane expects, and arrives
    ]  # fmt: skip


def test_a_consumer_stage_gives_the_tiles_and_the_empty_barrier_and_never_arrives() -> None:
    def body(pipe: Pipe, _: Warp) -> None:
        consumer = pipe.consumer()
        with consumer.acquire() as tiles:
            assert (tiles.payload() is pipe.payload, tiles.stage(), tiles.mbar() is pipe.pipeline.empty[0]) == (
                True, 0, True,
            )  # fmt: skip
            assert counters(pipe) == (0, 1, 0, 0)
        assert counters(pipe) == (0, 1, 1, 0)
        stage = consumer.acquire_stage()
        assert (stage.payload() is pipe.payload, stage.stage(), stage.mbar().index) == (True, 1, 4)
        stage.release()
        assert counters(pipe) == (0, 1, 2, 0)

    assert recorded(body) == [wait(0, 0), wait(1, 0)]


def test_acquire_waits_and_entering_does_not() -> None:
    def body(pipe: Pipe, w: Warp) -> None:
        made, read = pipe.producer().acquire(), pipe.consumer().acquire()
        w.work(1)
        with made:
            pass
        with read:
            pass

    assert recorded(body) == [wait(3, 1), wait(0, 0), (Op.WORK, 1)]


@pytest.mark.parametrize("side", ["producer", "consumer"])
def test_acquire_if_needed_waits_on_its_own_side(side: str) -> None:
    barrier, parity = {"producer": (3, 1), "consumer": (0, 0)}[side]

    def body(pipe: Pipe, w: Warp) -> None:
        view = getattr(pipe, side)()
        for ready in (view.try_acquire(), True, False):
            with view.acquire_if_needed(ready):
                w.work(1)

    assert recorded(body) == [
        (Op.TRY_WAIT, barrier, parity, 0, 0), (Op.WAIT_UNLESS, barrier, parity, 0, 0), (Op.WORK, 1),
        (Op.WORK, 1), wait(barrier + 2, parity), (Op.WORK, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_stages_wrap_and_the_phase_of_that_side_toggles(stages: int) -> None:
    def body(pipe: Pipe, _: Warp) -> None:
        for n in range(3 * stages):
            assert counters(pipe) == (n % stages, 1 ^ n // stages & 1, 0, 0)
            with pipe.producer().acquire():
                pass
        for n in range(3 * stages):
            assert counters(pipe)[2:] == (n % stages, n // stages & 1)
            with pipe.consumer().acquire():
                pass

    code = recorded(body, stages)
    assert code[: 3 * stages] == [wait(stages + n % stages, 1 ^ n // stages & 1) for n in range(3 * stages)]
    assert code[3 * stages :] == [wait(n % stages, n // stages & 1) for n in range(3 * stages)]


def test_saved_numbers_outlive_their_stage() -> None:
    """The prefetch of a dependent launch steps first and loads B later, into saved stages on saved barriers."""

    def body(pipe: Pipe, w: Warp) -> None:
        saved = []
        for _ in range(2):
            with pipe.producer().acquire() as tiles, w.elect_one():
                tiles.expect_bytes(96)
                saved.append((tiles.stage(), tiles.barrier()))
        with w.elect_one():
            for stage, barrier in saved:
                w.tma_load(pipe.payload.get_b_tile(stage, 0, GROUP), barrier, stage)

    assert [op[:2] for op in recorded(body)[-2:]] == [(Op.TMA_LOAD, 0), (Op.TMA_LOAD, 1)]


def test_a_copy_has_counters_of_its_own() -> None:
    def body(pipe: Pipe, _: Warp) -> None:
        twin = pipe.copy()
        with twin.producer().acquire():
            pass
        with pipe.producer().acquire() as tiles:
            assert tiles.stage() == 0
        twin.pipeline.producer_step()
        assert (counters(twin)[:2], counters(pipe)[:2]) == ((2, 1), (1, 1))
        assert (twin.payload is pipe.payload, twin.pipeline.full == pipe.pipeline.full) == (True, True)

    assert recorded(body) == [wait(3, 1), wait(3, 1)]


MISUSE: dict[str, tuple[Body, str]] = {
    "dropped producer": (lambda p, _: p.acquire_producer(), "r: input producer stage 0 was never released"),
    "dropped consumer": (lambda p, _: p.acquire_consumer(), "r: input consumer stage 0 was never released"),
    "never entered": (lambda p, _: p.producer().acquire(), "r: input producer stage 0 was never released"),
    "never entered consumer": (lambda p, _: p.consumer().acquire(), "r: input consumer stage 0 was never released"),
    "two producer stages": (
        lambda p, _: (p.producer().acquire(), p.acquire_producer()),
        "r: a second acquire while input producer stage 0 is held",
    ),
    "two consumer stages": (
        lambda p, _: (p.acquire_consumer(), p.consumer().acquire_if_needed(True)),
        "r: a second acquire while input consumer stage 0 is held",
    ),
    "a copy's stage": (
        lambda p, _: [each.acquire_producer() for each in (p.copy(), p)],
        "r: a second acquire while input producer stage 0 is held",
    ),
    "copied producer": (lambda p, _: (p.acquire_producer(), p.copy()), "r: a pipeline was copied while a stage"),
    "copied consumer": (lambda p, _: (p.acquire_consumer(), p.copy()), "r: a pipeline was copied while a stage"),
}


@pytest.mark.parametrize("case", MISUSE)
def test_misused_handles_are_errors_with_the_author_line(case: str) -> None:
    body, fact = MISUSE[case]
    with pytest.raises(HandleError) as caught:
        recorded(body)
    assert caught.value.fact.startswith(fact)
    assert "test_input_tile.py" in caught.value.place


@pytest.mark.parametrize("side", ["producer", "consumer"])
def test_a_released_stage_gives_nothing_any_more(side: str) -> None:
    verbs = {
        "producer": ("payload", "stage", "barrier", "release"),
        "consumer": ("payload", "stage", "mbar", "release"),
    }
    for verb in verbs[side]:

        def linear(pipe: Pipe, _: Warp) -> None:
            stage = getattr(pipe, f"acquire_{side}")()
            stage.release()
            getattr(stage, verb)()  # noqa: B023

        with pytest.raises(HandleError, match=rf"{verb}\(\) of input {side} stage 0 after its release"):
            recorded(linear)

    def twice(pipe: Pipe, _: Warp) -> None:
        tiles = getattr(pipe, side)().acquire()
        with tiles:
            pass
        with tiles:
            pass

    with pytest.raises(HandleError, match=f"with of input {side} stage 0 after its release"):
        recorded(twice)


@pytest.mark.parametrize("side", ["producer", "consumer"])
def test_an_exception_inside_a_stage_is_not_hidden(side: str) -> None:
    def body(pipe: Pipe, _: Warp) -> None:
        with getattr(pipe, side)() as view, view.acquire():
            raise ValueError("mine")

    with pytest.raises(ProtocolError, match="r raised ValueError: mine"):
        recorded(body)


def test_a_stage_and_a_pipeline_belong_to_the_role_that_made_them() -> None:
    kept: dict[str, Any] = {}

    def build(use: Callable[[Any, Any], Any]) -> Protocol:
        p = Protocol("two")
        payload = StandardTilePayload(p.smem("a", 2, 64), p.smem("b", 2, 32))
        storage = Pipe.BarrierArray(p, "input", 2)
        p.init(lambda: Pipe.init_barriers(storage, 1, 1))

        @p.role("one")
        def one(_: Warp) -> None:
            kept["pipe"] = InputTilePipeline(storage, payload, 2, 1)
            kept["stage"] = kept["pipe"].acquire_producer()
            kept["stage"].release()

        p.role("two")(lambda _: use(kept["pipe"], kept["stage"]))
        return p

    with pytest.raises(ProtocolError, match="two uses the ProducerConsumerPipeline that one made"):
        build(lambda pipe, _: pipe.producer().acquire()).flatten()
    with pytest.raises(HandleError, match=r"two: stage\(\) of input producer stage 0, which one holds"):
        build(lambda _, stage: stage.stage()).flatten()
