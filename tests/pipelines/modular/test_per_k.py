"""Hand-overs of one K iteration, for blockwise FP8: what is recorded, and the triangle of warps on the machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipesim import pipelines
from pipesim.errors import HandleError, ProtocolError
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind
from pipesim.model.ops import Engine, Op, Operation
from pipesim.model.program import Program
from pipesim.pipelines import (
    BlockwiseFP8TilePayload,
    InputTilePipeline,
    MmaKStage,
    OutputTilePipeline,
    PerKConsumerStage,
    ProducerConsumerPipeline,
    TmemAllocation,
)
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile

Body = Callable[[OutputTilePipeline, ProducerConsumerPipeline, Warp], Any]
PROLOGUE = {Op.INIT, Op.FENCE, Op.BAR_SYNC, Op.CLUSTER_ARRIVE, Op.CLUSTER_WAIT}
TCGEN05 = int(Engine.TCGEN05)


def recorded(body: Body, cta_group: int = 1) -> list[Operation]:
    """What ``body`` records in the last CTA: output barriers 0..3, input barriers 4..9 of the first."""
    p = Protocol("pipe", cluster=cta_group)
    acc = TmemAllocation(p.tmem("acc", 2, 1024))
    output = OutputTilePipeline.BarrierArray(p, "output", 2)
    source = InputTilePipeline.BarrierArray(p, "input", 3)

    @p.init
    def init() -> None:
        OutputTilePipeline.init_barriers(output, 1, 128)
        InputTilePipeline.init_barriers(source, 1, 5)

    @p.role("r")
    def r(w: Warp) -> None:
        body(
            OutputTilePipeline(output, acc, (1 << cta_group) - 1, 2, 256, cta_group),
            ProducerConsumerPipeline(source, 3),
            w,
        )

    return [op for op in p.flatten().code[-1] if op[0] not in PROLOGUE]


def wait(barrier: int, parity: int) -> Operation:
    return (Op.WAIT, barrier, parity, 0)


def arrive(barrier: int, lanes: int = 32) -> Operation:
    return (Op.ARRIVE, barrier, lanes, 0, -1, 0)


def test_the_surface_is_complete() -> None:
    surface = {
        "OutputKPipeline": "produce consume",
        "MmaKStage": "__enter__ __exit__",
        "PerKConsumerStage": "__enter__ __exit__",
        "EpilogueKContext": "__enter__ __exit__",
        "EpilogueKStage": "arrive_input",
    }
    assert set(pipelines.__all__) >= set(surface)
    for name, wanted in surface.items():
        for member in wanted.split():
            assert getattr(getattr(pipelines, name), member)


def test_the_mma_warp_commits_after_each_k() -> None:
    def body(output: OutputTilePipeline, _: ProducerConsumerPipeline, w: Warp) -> None:
        for k in range(3):
            stage = output.per_k().produce()
            assert isinstance(stage, MmaKStage)
            with stage as acquired:
                assert (acquired.index, acquired.tmem.offset()) == (k % 2, k % 2 * 256)

    assert recorded(body) == [
        wait(2, 1), (Op.COMMIT, TCGEN05, 0), wait(3, 1), (Op.COMMIT, TCGEN05, 1), wait(2, 0), (Op.COMMIT, TCGEN05, 0),
    ]  # fmt: skip


def test_the_epilogue_arrives_and_steps_after_each_k() -> None:
    def body(output: OutputTilePipeline, _pipe: ProducerConsumerPipeline, w: Warp) -> None:
        for _ in range(2):
            stage = output.per_k().consume()
            assert isinstance(stage, PerKConsumerStage)
            with stage as acquired:
                w.read(acquired.tmem.tile())

    assert recorded(body) == [wait(0, 0), (Op.READ, 0, -1), arrive(2), wait(1, 0), (Op.READ, 1, -1), arrive(3)]
    assert [op for op in recorded(body, cta_group=2) if op[0] == Op.ARRIVE] == [arrive(2), arrive(3)], "the leader's"


def test_the_epilogue_context_waits_for_the_output_only_and_steps_both() -> None:
    def body(output: OutputTilePipeline, source: ProducerConsumerPipeline, w: Warp) -> None:
        for k in range(3):
            with output.per_k_epilogue(source) as stage:
                assert (stage.output_stage.index, stage.input_stage_index) == (k % 2, k)
                stage.input_pipeline.consumer_step()  # a copy
                assert source.consumer_stage() == k
                if k == 0:
                    with w.lanes(2):
                        stage.arrive_input()
            assert (source.consumer_stage(), output.pipeline.consumer_stage()) == ((k + 1) % 3, (k + 1) % 2)

    assert recorded(body) == [wait(0, 0), arrive(7, 2), arrive(2), wait(1, 0), arrive(3), wait(0, 1), arrive(2)]
    # two SMs: the output's empty of the leader, the input's empty of this CTA (10 barriers further)
    assert recorded(body, cta_group=2)[1:3] == [arrive(17, 2), arrive(2)]


@pytest.mark.parametrize("view", ["produce", "consume", "per_k_epilogue"])
def test_stages_are_held_one_at_a_time_and_exceptions_pass(view: str) -> None:
    def made(output: OutputTilePipeline, source: ProducerConsumerPipeline) -> Any:
        return output.per_k_epilogue(source) if view == "per_k_epilogue" else getattr(output.per_k(), view)()

    def twice(output: OutputTilePipeline, source: ProducerConsumerPipeline, _: Warp) -> None:
        with made(output, source), made(output, source):
            pass

    def fails(output: OutputTilePipeline, source: ProducerConsumerPipeline, _: Warp) -> None:
        with made(output, source):
            raise ValueError("mine")

    with pytest.raises(HandleError, match="a second acquire while"):
        recorded(twice)
    with pytest.raises(ProtocolError, match="r raised ValueError: mine"):
        recorded(fails)


# on the machine: load → MMA and epilogue, MMA → epilogue


def blockwise(stages: int, iterations: int, *, arrive_input: bool = True, early: bool = False) -> Program:
    """The MMA warp reads A and B, four epilogue warps the scales of A from the same stage, and the accumulator."""
    p = Protocol("blockwise")
    payload = BlockwiseFP8TilePayload(p.smem("a", stages, 64), p.smem("b", stages, 32), p.smem("scales", stages, 16))
    acc = TmemAllocation(p.tmem("acc", 2, 1024))
    source = InputTilePipeline.BarrierArray(p, "input", stages)
    output = OutputTilePipeline.BarrierArray(p, "output", 2)

    @p.init
    def init() -> None:
        InputTilePipeline.init_barriers(source, 1, 1 + 4)
        OutputTilePipeline.init_barriers(output, 1, 128)

    @p.role("load")
    def load(w: Warp) -> None:
        with InputTilePipeline(source, payload, stages, 1).producer() as producer:
            for k in range(iterations):
                with producer.acquire() as tiles, w.elect_one():
                    tiles.expect_bytes(payload.stage_bytes(1))
                    for tile in payload.get_tile(tiles.stage(), 0, 1):
                        w.tma_load(tile, tiles.barrier(), k)
            producer.drain()

    @p.role("mma")
    def mma(w: Warp) -> None:
        consumer = InputTilePipeline(source, payload, stages, 1).consumer()
        accumulators = OutputTilePipeline(output, acc, 0, 2, 256, 1)
        for k in range(iterations):
            with accumulators.per_k().produce() as stage, consumer.acquire() as tiles, w.elect_one():
                at = tiles.stage(), 0, 1
                reads = [(payload.get_a_tile(*at), k), (payload.get_b_tile(*at), k)]
                w.mma(Engine.TCGEN05, reads=reads, writes=[(stage.tmem.tile(), k)], cycles=200)
                w.commit(Engine.TCGEN05, tiles.mbar())

    @p.role("epilogue", warps=4)
    def epilogue(w: Warp) -> None:
        tiles = InputTilePipeline(source, payload, stages, 1)
        accumulators = OutputTilePipeline(output, acc, 0, 2, 256, 1)
        for k in range(iterations):
            with accumulators.per_k_epilogue(tiles.pipeline) as stage:
                if early:
                    with w.elect_one():
                        stage.arrive_input()
                w.read(payload.get_a_scales_tile(stage.input_stage_index, 0, 1), k)
                if arrive_input and not early:
                    with w.elect_one():
                        stage.arrive_input()
                w.read(stage.output_stage.tmem.tile(), k)

    return p.flatten()


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_the_triangle_of_warps_runs(stages: int, outcomes: Any) -> None:
    for iterations in (0, 1, stages, 3 * stages + 1):
        program = blockwise(stages, iterations)
        assert outcomes(program, schedules=8) == {"finished"}
        done = simulate(program, load_profile("h100"))
        assert (done.outcome, done.faults) == (Ending.FINISHED, ())


def test_the_context_does_not_free_the_input(outcomes: Any) -> None:
    deadlock = simulate(blockwise(2, 3, arrive_input=False), load_profile("h100")).deadlock
    assert deadlock is not None
    assert [(b.agent, b.barrier, b.arrivals_missing) for b in deadlock.blocked][:1] == [("load", "input.empty[0]", 4)]
    assert outcomes(blockwise(2, 3, arrive_input=False), schedules=10) == {"stuck"}


@pytest.mark.slow
def test_scales_read_after_the_arrive_may_be_overwritten(outcomes: Any) -> None:
    wrong = outcomes(blockwise(1, 4, early=True), schedules=200)
    assert wrong & {FaultKind.RACE.name, FaultKind.WRONG_ITEM.name}
