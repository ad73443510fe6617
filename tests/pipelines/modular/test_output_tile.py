"""``OutputTilePipeline``, its handles and ``AccumBarrier``, member by member and on the machine, for one SM and two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipesim import pipelines
from pipesim.errors import HandleError, ProtocolError
from pipesim.explain.phases import run_canonically
from pipesim.lang.protocol import Protocol
from pipesim.lang.tcgen05 import mma_arrive
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind
from pipesim.model.ops import Engine, Op, Operation
from pipesim.model.program import Program
from pipesim.pipelines import AccumBarrier, OutputTilePipeline, ProducerConsumerPipeline, TmemAllocation
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile

Pipe = OutputTilePipeline
Body = Callable[[Pipe, Warp], Any]
PROLOGUE = {Op.INIT, Op.FENCE, Op.BAR_SYNC, Op.CLUSTER_ARRIVE, Op.CLUSTER_WAIT}
TCGEN05 = int(Engine.TCGEN05)


def recorded(body: Body, stages: int = 2, cta_group: int = 1, mask: int = 0, cluster: int = 1) -> list[list[Operation]]:
    """What ``body`` records in a role of each CTA, without the prologue."""
    p = Protocol("pipe", cluster=cluster)
    acc = TmemAllocation(p.tmem("acc", stages, 1024))
    storage = Pipe.BarrierArray(p, "output", stages)
    p.init(lambda: Pipe.init_barriers(storage, 1, 128))

    @p.role("r")
    def r(w: Warp) -> None:
        body(Pipe(storage, acc, mask, stages, 512 // stages, cta_group), w)

    return [[op for op in code if op[0] not in PROLOGUE] for code in p.flatten().code]


def wait(barrier: int, parity: int) -> Operation:
    return (Op.WAIT, barrier, parity, 0)


def commit(barrier: int) -> Operation:
    return (Op.COMMIT, TCGEN05, barrier)


def counters(pipe: ProducerConsumerPipeline) -> tuple[int, int, int, int]:
    return pipe.producer_stage(), pipe.producer_phase, pipe.consumer_stage(), pipe.consumer_phase


def test_the_surface_is_complete() -> None:
    surface = {
        "OutputTilePipeline": "BarrierArray Pipeline init_barriers acquire_for_mma release_from_mma "
        "acquire_for_epilogue release_from_epilogue producer consumer acquire_mma_linear acquire_epilogue_linear "
        "get_pipeline per_k per_k_epilogue",
        "MmaStage": "tmem tmem_offset index mbar release",
        "EpilogueStage": "tmem tmem_offset index release",
        "OutputStage": "index tmem pipeline",
        "OutputProducer": "__enter__ __exit__",
        "OutputConsumer": "__enter__ __exit__",
        "AccumBarrier": "arrive",
    }
    assert set(pipelines.__all__) >= set(surface)
    for name, wanted in surface.items():
        for member in wanted.split():
            method = getattr(getattr(pipelines, name), member)
            assert member.startswith("__") or method.__doc__, f"{name}.{member} says what it does"
    assert Pipe.Pipeline is ProducerConsumerPipeline


def test_a_new_pipeline_has_its_fields_and_counts() -> None:
    def body(pipe: Pipe, _: Warp) -> None:
        assert counters(pipe.pipeline) == (0, 1, 0, 0)
        assert pipe.get_pipeline() is pipe.pipeline
        assert (pipe.mma_complete_mask, pipe.num_stages, pipe.stage_stride_cols, pipe.cta_group) == (3, 2, 256, 2)
        assert pipe.tmem.tiles.name == "acc"

    assert recorded(body, cta_group=2, mask=3, cluster=2) == [[], []]
    p = Protocol("init")
    storage = Pipe.BarrierArray(p, "output", 2)
    p.init(lambda: Pipe.init_barriers(storage, 1, 256))
    p.role("r")(lambda _: None)
    inits = sorted(op for op in p.flatten().code[0] if op[0] == Op.INIT)
    assert inits == [(Op.INIT, 0, 1), (Op.INIT, 1, 1), (Op.INIT, 2, 256), (Op.INIT, 3, 256)]


def test_a_stage_begins_at_the_allocation_plus_its_index_times_the_stride() -> None:
    p = Protocol("tmem")
    tiles = p.tmem("acc", 4, 96 * 512)
    storage = Pipe.BarrierArray(p, "output", 4)
    p.init(lambda: Pipe.init_barriers(storage, 1, 128))
    seen = []

    @p.role("r")
    def r(_w: Warp) -> None:
        pipe = Pipe(storage, TmemAllocation(tiles, addr=32), 0, 4, 96, 1)
        for _ in range(5):
            with pipe.producer() as stage:
                seen.append((stage.index, stage.tmem.offset(), stage.tmem.tile()))
        handle = pipe.acquire_epilogue_linear()
        assert (handle.tmem_offset(), handle.tmem().tile(), handle.index()) == (32, tiles[0], 0)
        handle.release()

    p.flatten()
    assert seen[:5] == [(i % 4, 32 + i % 4 * 96, tiles[i % 4]) for i in range(5)]


CALLS: dict[str, tuple[Body, list[Operation]]] = {
    "acquire_for_mma": (lambda p, _: p.release_from_mma(p.acquire_for_mma()), [wait(2, 1), commit(0)]),
    "acquire_for_epilogue": (lambda p, _: (p.acquire_for_epilogue(), p.release_from_epilogue()), [wait(0, 0)]),
    "release_from_epilogue": (lambda p, _: p.release_from_epilogue(), []),
    "acquire_mma_linear": (lambda p, _: p.acquire_mma_linear().release(), [wait(2, 1), commit(0)]),
    "acquire_epilogue_linear": (lambda p, _: p.acquire_epilogue_linear().release(), [wait(0, 0)]),
    "AccumBarrier.arrive": (
        lambda p, _: AccumBarrier.arrive(p.pipeline, 1, p.cta_group), [(Op.ARRIVE, 3, 32, 0, -1, 0)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_each_call_waits_and_signals_what_upstream_does(call: str) -> None:
    body, expected = CALLS[call]
    assert recorded(body) == [expected]


def test_the_mma_warp_commits_in_one_lane_and_steps_in_all() -> None:
    def body(pipe: Pipe, w: Warp) -> None:
        with pipe.producer() as stage:
            assert (stage.index, counters(pipe.pipeline)) == (0, (0, 1, 0, 0))
            with w.elect_one():
                w.mma(Engine.TCGEN05, writes=[(stage.tmem.tile(), 7)])
        assert counters(pipe.pipeline) == (1, 1, 0, 0)
        handle = pipe.acquire_mma_linear()
        assert (handle.index(), handle.tmem_offset(), handle.mbar() is pipe.pipeline.full[1]) == (1, 256, True)
        assert handle.tmem().tile().name == "acc[1]"
        handle.release()
        assert counters(pipe.pipeline) == (0, 0, 0, 0)

    assert recorded(body) == [
        [wait(2, 1), (Op.TRANSFER_WRITE, TCGEN05, 0, 1024, 7), commit(0), wait(3, 1), commit(1)],
    ]  # fmt: skip


def test_the_epilogue_only_steps_and_each_lane_arrives_by_itself() -> None:
    def body(pipe: Pipe, w: Warp) -> None:
        with pipe.consumer() as stage:
            w.read(stage.tmem.tile(), 7)
            AccumBarrier.arrive(stage.pipeline, stage.index, pipe.cta_group)
            assert counters(pipe.pipeline) == (0, 1, 0, 0)
        assert counters(pipe.pipeline) == (0, 1, 1, 0)
        with pipe.consumer():
            pass
        assert counters(pipe.pipeline) == (0, 1, 0, 1)

    assert recorded(body) == [[wait(0, 0), (Op.READ, 0, 7), (Op.ARRIVE, 2, 32, 0, -1, 0), wait(1, 0)]]


def test_two_sms_commit_to_both_ctas_and_arrive_at_the_leader() -> None:
    def body(pipe: Pipe, w: Warp) -> None:
        if w.cta == 0:
            with pipe.producer():
                pass
        AccumBarrier.arrive(pipe.pipeline, 1, pipe.cta_group)

    leader, peer = recorded(body, cta_group=2, mask=0b11, cluster=2)
    arrive = (Op.ARRIVE, 3, 32, 0, -1, 0)
    assert leader == [wait(2, 1), (Op.COMMIT_MULTICAST, TCGEN05, 0, 0b11), arrive]
    assert peer == [arrive], "empty[1] of CTA 0, not its own"


def test_a_stage_holds_a_copy_of_the_pipeline() -> None:
    def body(pipe: Pipe, _: Warp) -> None:
        with pipe.consumer() as stage:
            stage.pipeline.consumer_step()
            assert (counters(stage.pipeline), counters(pipe.pipeline)) == ((0, 1, 1, 0), (0, 1, 0, 0))
        twin = pipe.copy()
        twin.release_from_epilogue()
        assert (counters(twin.pipeline), counters(pipe.pipeline)) == ((0, 1, 0, 1), (0, 1, 1, 0))

    assert recorded(body) == [[wait(0, 0)]]


MISUSE: dict[str, tuple[Body, str]] = {
    "dropped": (lambda p, _: p.acquire_mma_linear(), "r: MMA stage 0 was never released"),
    "dropped epilogue": (lambda p, _: p.acquire_epilogue_linear(), "r: epilogue stage 0 was never released"),
    "dropped value": (lambda p, _: p.acquire_for_mma(), "r: MMA stage 0 was never released"),
    "two": (lambda p, _: (p.acquire_for_mma(), p.acquire_mma_linear()), "r: a second acquire while MMA stage 0"),
    "two epilogues": (
        lambda p, _: (p.acquire_for_epilogue(), p.acquire_for_epilogue()),
        "r: a second acquire while epilogue stage 0",
    ),
    "copied": (lambda p, _: (p.acquire_for_mma(), p.copy()), "r: a pipeline was copied while a stage"),
    "copied epilogue": (lambda p, _: (p.acquire_for_epilogue(), p.copy()), "r: a pipeline was copied while a stage"),
    "wrong side": (
        lambda p, _: p.release_from_mma(p.acquire_for_epilogue()),
        "r releases epilogue stage 0 as the MMA warp, which does not hold it",
    ),
}


@pytest.mark.parametrize("case", MISUSE)
def test_misused_stages_are_errors_with_the_author_line(case: str) -> None:
    body, fact = MISUSE[case]
    with pytest.raises(HandleError) as caught:
        recorded(body)
    assert caught.value.fact.startswith(fact)
    assert "test_output_tile.py" in caught.value.place


@pytest.mark.parametrize("verb", ["tmem", "tmem_offset", "index", "mbar", "release"])
@pytest.mark.parametrize("side", ["mma", "epilogue"])
def test_a_released_stage_gives_nothing_any_more(side: str, verb: str) -> None:
    def body(pipe: Pipe, _: Warp) -> None:
        stage = getattr(pipe, f"acquire_{side}_linear")()
        stage.release()
        getattr(stage, verb)()

    if (side, verb) == ("epilogue", "mbar"):
        assert not hasattr(pipelines.EpilogueStage, verb)
        return
    with pytest.raises(HandleError, match=r"of (MMA|epilogue) stage 0 after its release"):
        recorded(body)


@pytest.mark.parametrize("side", ["producer", "consumer"])
def test_an_exception_inside_a_stage_is_not_hidden(side: str) -> None:
    def body(pipe: Pipe, _: Warp) -> None:
        with getattr(pipe, side)():
            raise ValueError("mine")

    with pytest.raises(ProtocolError, match="r raised ValueError: mine"):
        recorded(body)


def test_what_tensor_memory_cannot_hold_is_refused() -> None:
    def build(stages: int = 2, stride: int = 256, addr: int = 0, cta_group: int = 1, nbytes: int = 1024) -> Program:
        p = Protocol("pipe")
        storage = Pipe.BarrierArray(p, "output", stages)
        acc = p.tmem("acc", 2, nbytes)
        p.init(lambda: Pipe.init_barriers(storage, 1, 128))
        p.role("r")(lambda _: Pipe(storage, TmemAllocation(acc, addr), 0, stages, stride, cta_group))  # type: ignore[arg-type]
        return p.flatten()

    build(nbytes=256 * 512)
    for wrong, fact in (
        ({"stages": 3, "stride": 128}, "acc has 2 tiles of 1,024 bytes for 3 stages of 128 columns"),
        ({"nbytes": 256 * 512 + 4}, "acc has 2 tiles of 131,076 bytes for 2 stages of 256 columns"),
        ({"addr": 1}, "2 stages of 256 columns from column 1 on"),
        ({"addr": -1, "stride": 64}, "2 stages of 64 columns from column -1 on"),
        ({"cta_group": 2}, "a group of 2 CTAs in a cluster of 1"),
        ({"cta_group": 3}, "a group of 3 CTAs in a cluster of 1"),
    ):
        with pytest.raises(ProtocolError) as caught:
            build(**wrong)
        assert caught.value.fact == fact
        assert "test_output_tile.py" in caught.value.place
    with pytest.raises(ProtocolError, match="tile is not in tensor memory"):
        TmemAllocation(Protocol("p").smem("tile", 2, 64))
    with pytest.raises(ProtocolError, match="2 stages need 4 mbarriers; bars has 5"):
        Pipe.init_barriers(Protocol("p").mbarriers("bars", 5), 1, 128)


# on the machine


def kernel(
    stages: int, tiles: int, *, cta_group: int = 1, arrive: bool = True, commits: int = 1, early: bool = False
) -> Program:
    """An MMA warp makes accumulators, four epilogue warps of each CTA of the group read them."""
    p = Protocol("accumulate", cluster=cta_group)
    acc = TmemAllocation(p.tmem("acc", stages, 512))
    storage = Pipe.BarrierArray(p, "output", stages)
    p.init(lambda: Pipe.init_barriers(storage, 1, 128 * cta_group))

    @p.role("mma")
    def mma(w: Warp) -> None:
        output = Pipe(storage, acc, (1 << cta_group) - 1, stages, 512 // stages, cta_group)
        for i in range(tiles if w.cta == 0 else 0):
            stage = output.acquire_mma_linear()
            with w.elect_one():
                w.mma(Engine.TCGEN05, writes=[(stage.tmem().tile(), i)], cycles=300)
                for _ in range(commits - 1):
                    mma_arrive(stage.mbar())
            stage.release()
        if w.cta == 0:
            for _ in range(stages):  # stays until the epilogue has read: its barriers are the leader's
                output.pipeline.wait_consumer()
                output.pipeline.producer_step()

    @p.role("epilogue", warps=4)
    def epilogue(w: Warp) -> None:
        output = Pipe(storage, acc, (1 << cta_group) - 1, stages, 512 // stages, cta_group)
        for i in range(tiles):
            stage = output.acquire_epilogue_linear()
            if early and arrive:
                AccumBarrier.arrive(output.pipeline, stage.index(), cta_group)
            if w.cta == 0:
                w.read(stage.tmem().tile(), i)
            w.work(50)
            if arrive and not early:
                AccumBarrier.arrive(output.pipeline, stage.index(), cta_group)
            stage.release()

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
    """The public page of ``EpilogueStage.release`` says so: the MMA warp then waits indefinitely, next time round."""
    for tiles in (2, 3, 5):
        end = run_canonically(kernel(2, tiles, arrive=False))
        assert (end.finished, end.faults) == (False, ())
        deadlock = simulate(kernel(2, tiles, arrive=False), load_profile("h100")).deadlock
        assert deadlock is not None
        first = deadlock.blocked[0]
        assert (first.agent, first.barrier, first.arrivals_missing, first.count) == ("mma", "empty[0]", 128, 128)
        made = sum(b.done for b in end.state.barriers[:2])
        assert made == 2, "two tiles are made, no third"
        assert run_canonically(kernel(2, tiles)).finished


def test_an_arrive_before_the_accumulator_is_read_lets_the_mma_overwrite_it(outcomes: Any) -> None:
    wrong = outcomes(kernel(1, 3, early=True), schedules=60)
    assert wrong & {FaultKind.RACE.name, FaultKind.WRONG_ITEM.name}


def test_a_commit_of_ones_own_before_release_is_one_too_many(outcomes: Any) -> None:
    """The public page of ``acquire_mma_linear`` commits to ``mbar()`` and then releases, which commits again."""
    wrong = outcomes(kernel(2, 5, commits=2), schedules=60)
    assert wrong >= {"stuck", FaultKind.RACE.name}, "two phases at once: the parity is back where it was, or runs ahead"
    assert "finished" not in wrong
    end = run_canonically(kernel(2, 5, commits=2))
    assert (end.finished, end.exhausted) == (False, False)
    assert outcomes(kernel(2, 5), schedules=60) == {"finished"}
