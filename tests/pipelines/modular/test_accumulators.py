"""Accumulators on the machine: MMA warp to epilogue warps, for one SM and two, once a tile and once a K iteration."""

from __future__ import annotations

from typing import Any

import pytest

from pipesim.errors import ProtocolError
from pipesim.explain.phases import run_canonically
from pipesim.lang.intrinsics import mma_arrive
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind
from pipesim.model.ops import Engine
from pipesim.model.program import Program
from pipesim.pipelines import (
    AccumBarrier,
    BlockwiseFP8TilePayload,
    InputTilePipeline,
    OutputTilePipeline,
    TmemAllocation,
)
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile


def kernel(
    stages: int, tiles: int, *, cta_group: int = 1, arrive: bool = True, commits: int = 1, early: bool = False
) -> Program:
    """An MMA warp makes accumulators, four epilogue warps of each CTA of the group read them."""
    p = Protocol("accumulate", cluster=cta_group)
    acc = TmemAllocation(p.tmem("acc", stages, 512))
    storage = OutputTilePipeline.BarrierArray(p, "output", stages)
    p.init(lambda: OutputTilePipeline.init_barriers(storage, 1, 128 * cta_group))

    def pipeline() -> OutputTilePipeline:
        return OutputTilePipeline(storage, acc, (1 << cta_group) - 1, stages, 512 // stages, cta_group)

    @p.role("mma")
    def mma(w: Warp) -> None:
        output = pipeline()
        for i in range(tiles if w.cta == 0 else 0):
            with output.producer() as stage, w.elect_one():
                w.mma(Engine.TCGEN05, writes=[(stage.tmem.tile(), i)], cycles=300)
                for _ in range(commits - 1):
                    mma_arrive(output.pipeline.producer_mbar(stage.index))
        if w.cta == 0:
            for _ in range(stages):  # stays until the epilogue has read: its barriers are the leader's
                output.pipeline.wait_consumer()
                output.pipeline.producer_step()

    @p.role("epilogue", warps=4)
    def epilogue(w: Warp) -> None:
        output = pipeline()
        for i in range(tiles):
            with output.consumer() as stage:
                if early and arrive:
                    AccumBarrier.arrive(stage.pipeline, stage.index, cta_group)
                if w.cta == 0:
                    w.read(stage.tmem.tile(), i)
                w.work(50)
                if arrive and not early:
                    AccumBarrier.arrive(stage.pipeline, stage.index, cta_group)

    return p.flatten()


@pytest.mark.parametrize("cta_group", [1, 2])
@pytest.mark.parametrize("stages", [1, 2, 4])
def test_accumulators_go_round(stages: int, cta_group: int, outcomes: Any) -> None:
    for tiles in (0, 1, stages, stages + 1, 3 * stages + 1):
        program = kernel(stages, tiles, cta_group=cta_group)
        assert outcomes(program, schedules=5) == {"finished"}
        done = simulate(program, load_profile("h100"))
        assert (done.outcome, done.faults) == (Ending.FINISHED, ())
        laps = [(tiles + stages - 1 - s) // stages for s in range(stages)]
        assert [b.done for b in done.state.barriers[: 2 * stages]] == laps * 2
        if cta_group == 2:
            peer = [b.done for b in done.state.barriers[2 * stages :]]
            assert peer == laps + [0] * stages, "full of both CTAs, empty of the leader only"


def test_releasing_an_epilogue_stage_does_not_free_it() -> None:
    """The public page says so: the MMA warp then waits indefinitely, next time round."""
    for tiles in (2, 3, 5):
        end = run_canonically(kernel(2, tiles, arrive=False))
        assert (end.finished, end.faults) == (False, ())
        deadlock = simulate(kernel(2, tiles, arrive=False), load_profile("h100")).deadlock
        assert deadlock is not None
        first = deadlock.blocked[0]
        assert (first.agent, first.barrier, first.arrivals_missing, first.count) == ("mma", "empty[0]", 128, 128)
        assert sum(b.done for b in end.state.barriers[:2]) == 2, "two tiles are made, no third"
        assert run_canonically(kernel(2, tiles)).finished


def test_an_arrive_before_the_accumulator_is_read_lets_the_mma_overwrite_it(outcomes: Any) -> None:
    wrong = outcomes(kernel(1, 3, early=True), schedules=60)
    assert wrong & {FaultKind.RACE.name, FaultKind.WRONG_ITEM.name}


def test_a_commit_of_ones_own_before_release_is_one_too_many(outcomes: Any) -> None:
    """The public page commits to the stage's barrier and then releases it, which commits again."""
    wrong = outcomes(kernel(2, 5, commits=2), schedules=60)
    assert wrong >= {"stuck", FaultKind.RACE.name}, "two phases at once: the parity is back where it was, or runs ahead"
    assert "finished" not in wrong
    assert outcomes(kernel(2, 5), schedules=60) == {"finished"}


def test_accumulators_are_tiles_of_tensor_memory() -> None:
    with pytest.raises(ProtocolError, match="tile is not in tensor memory"):
        TmemAllocation(Protocol("p").smem("tile", 2, 64))


# once a K iteration: load → MMA and epilogue, MMA → epilogue


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
                reads = [(tile, k) for tile in payload.get_tile(tiles.stage(), 0, 1)[:2]]
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
                w.read(payload.a_scales_tiles[stage.input_stage_index], k)
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


def test_the_epilogue_of_a_k_iteration_does_not_free_the_input(outcomes: Any) -> None:
    deadlock = simulate(blockwise(2, 3, arrive_input=False), load_profile("h100")).deadlock
    assert deadlock is not None
    assert [(b.agent, b.barrier, b.arrivals_missing) for b in deadlock.blocked][:1] == [("load", "input.empty[0]", 4)]
    assert outcomes(blockwise(2, 3, arrive_input=False), schedules=10) == {"stuck"}


@pytest.mark.slow
def test_scales_read_after_the_arrive_may_be_overwritten(outcomes: Any) -> None:
    wrong = outcomes(blockwise(1, 4, early=True), schedules=200)
    assert wrong & {FaultKind.RACE.name, FaultKind.WRONG_ITEM.name}
