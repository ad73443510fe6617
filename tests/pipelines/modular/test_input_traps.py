"""Ways to use an input pipeline that upstream's pages or habits suggest, right and wrong, on the machine."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import SharedMemBarrier, TryResult
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind
from pipesim.model.moves import run_canonically
from pipesim.model.ops import OPERANDS, Engine, Op
from pipesim.model.program import Program
from pipesim.pipelines import InputTilePipeline, StandardTilePayload
from pipesim.timed.engine import Simulation, simulate
from pipesim.timed.profile import load_profile
from tests.support.random_schedules import outcomes

Pipe = InputTilePipeline[StandardTilePayload]
Use = Callable[[int, SharedMemBarrier, int], None]  #: what a warp does with a stage: its index, its barrier, the item
Loop = Callable[[Pipe, int, Use], None]
LOAD, MMA = 0, 1


def load_with_acquire(pipe: Pipe, items: int, fill: Use) -> None:
    with pipe.producer() as producer:
        for i in range(items):
            with producer.acquire() as tiles:
                fill(tiles.stage(), tiles.barrier(), i)
        producer.drain()


def mma_with_acquire(pipe: Pipe, items: int, multiply: Use) -> None:
    with pipe.consumer() as consumer:
        for i in range(items):
            with consumer.acquire() as tiles:
                multiply(tiles.stage(), tiles.mbar(), i)


def gemm(
    stages: int,
    items: int,
    load: Loop = load_with_acquire,
    mma: Loop = mma_with_acquire,
    group: int = 1,
    *,
    commit: bool = True,
) -> Program:
    """``items`` groups of tiles of A and B go from a load warp to an MMA warp, which commits to what it has read."""
    p = Protocol("gemm")
    payload = StandardTilePayload(p.smem("a", stages * group, 64), p.smem("b", stages * group, 32))
    storage = Pipe.BarrierArray(p, "input", stages)
    p.init(lambda: Pipe.init_barriers(storage, 1, 1))

    @p.role("load")
    def _(w: Warp) -> None:
        def fill(stage: int, full: SharedMemBarrier, item: int) -> None:
            with w.elect_one():
                full.expect_bytes(payload.stage_bytes(group))
                for k in range(group):
                    for tile in payload.get_tile(stage, k, group):
                        w.tma_load(tile, full, item * group + k)

        load(InputTilePipeline(storage, payload, stages, group), items, fill)

    @p.role("mma")
    def _(w: Warp) -> None:
        def multiply(stage: int, empty: SharedMemBarrier, item: int) -> None:
            with w.elect_one():
                for k in range(group):
                    reads = [(tile, item * group + k) for tile in payload.get_tile(stage, k, group)]
                    w.mma(Engine.TCGEN05, reads=reads, cycles=900)
                if commit:
                    w.commit(Engine.TCGEN05, empty)

        mma(InputTilePipeline(storage, payload, stages, group), items, multiply)

    return p.flatten()


def timed(program: Program, try_limit: int | None = None) -> Simulation:
    profile = load_profile("h100")
    limit = {} if try_limit is None else {"try.limit": try_limit}
    return simulate(program, replace(profile, values=profile.values | limit))


def faults(end: Any) -> set[FaultKind]:
    return {fault.kind for fault in end.faults}


# trap 1: which wait belongs to which try


def load_with_tries(wait: Callable[[Pipe, TryResult], None]) -> Loop:
    def load(pipe: Pipe, items: int, fill: Use) -> None:
        for i in range(items):
            wait(pipe, pipe.try_acquire_producer())
            fill(pipe.producer_stage(), pipe.producer_mbar(pipe.producer_stage()), i)
            pipe.pipeline.producer_step()

    return load


def mma_with_tries(wait: Callable[[Pipe, TryResult], None]) -> Loop:
    def mma(pipe: Pipe, items: int, multiply: Use) -> None:
        for i in range(items):
            wait(pipe, pipe.try_acquire_consumer())
            multiply(pipe.consumer_stage(), pipe.consumer_mbar(pipe.consumer_stage()), i)
            pipe.pipeline.consumer_step()

    return mma


load_by_page, load_by_code = (
    load_with_tries(Pipe.wait_producer_if_needed),
    load_with_tries(Pipe.wait_consumer_if_needed),
)
mma_by_page, mma_by_code = mma_with_tries(Pipe.wait_consumer_if_needed), mma_with_tries(Pipe.wait_producer_if_needed)


@pytest.mark.slow
def test_each_try_with_the_wait_of_its_own_side_is_right() -> None:
    for stages in (1, 2, 3):
        program = gemm(stages, 3 * stages + 1, load_by_code, mma_by_code)
        assert outcomes(program, schedules=30) == {"finished"}
        assert (timed(program).outcome, timed(program).faults) == (Ending.FINISHED, ())


def test_the_load_warp_of_the_page_overwrites_unread_tiles_or_hangs() -> None:
    """It waits for ``full[0]``, parity 0: passes whenever that has completed an odd number of phases."""
    program = gemm(2, 5, load_by_page)
    waited = {op[1:3] for op in program.code[LOAD] if op[0] == Op.WAIT_UNLESS}
    assert waited == {(0, 0)}, "one barrier, one parity, for ever: its consumer counters never advance"
    assert {FaultKind.RACE, FaultKind.WRONG_ITEM} & faults(timed(program)), "overwritten"
    assert outcomes(program, schedules=200) >= {"stuck", "RACE"}
    # for one lap nobody notices: every try says empty
    assert outcomes(gemm(2, 2, load_by_page), schedules=20) == {"finished"}
    assert faults(timed(gemm(2, 2, load_by_page))) == set()


def test_the_mma_warp_of_the_page_reads_what_has_not_landed_or_hangs() -> None:
    """The mirrored mistake: it waits for ``empty[0]``, parity 1, which passes while nothing was consumed."""
    program = gemm(2, 5, mma=mma_by_page)
    assert {op[1:3] for op in program.code[MMA] if op[0] == Op.WAIT_UNLESS} == {(2, 1)}
    # A try may give up at any time (PTX ISA, mbarrier.try_wait); an H100 waits so long that the bytes are there.
    assert {FaultKind.RACE, FaultKind.UNINITIALISED_READ} & faults(timed(program, try_limit=0))
    assert outcomes(program, schedules=200) >= {"UNINITIALISED_READ", "RACE", "stuck"}


# trap 2: a consumer's release does not signal


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_releasing_input_tiles_does_not_free_them(stages: int) -> None:
    def mma_linear(pipe: Pipe, items: int, multiply: Use) -> None:
        for i in range(items):
            tiles = pipe.acquire_consumer()
            multiply(tiles.stage(), tiles.mbar(), i)
            tiles.release()  # "signals complete and advances", says the page

    def load_without_drain(pipe: Pipe, items: int, fill: Use) -> None:
        for i in range(items):
            stage = pipe.acquire_producer()
            fill(stage.stage(), stage.barrier(), i)
            stage.release()

    for items in (stages, stages + 1, 3 * stages):
        right = gemm(stages, items, load_without_drain, mma_linear)
        wrong = gemm(stages, items, load_without_drain, mma_linear, commit=False)
        assert (run_canonically(right).finished, run_canonically(right).faults) == (True, [])
        assert (run_canonically(wrong).finished, run_canonically(wrong).faults) == (items == stages, []), (
            "it bites after one lap"
        )
        assert (timed(right).outcome, timed(right).faults) == (Ending.FINISHED, ())
        if items > stages:
            deadlock = timed(wrong).deadlock
            assert deadlock is not None
            assert [(b.agent, b.barrier, b.arrivals_missing) for b in deadlock.blocked] == [
                ("load", "empty[0]", 1), ("mma", "full[0]", 1),
            ]  # fmt: skip


# looking ahead


def ahead(side: str, again: str = "after the step") -> Loop:
    """The loop of one side that tries its next stage ``again``: after the step, inside the stage, or never."""

    def loop(pipe: Pipe, items: int, use: Use) -> None:
        view: Any = getattr(pipe, side)()
        ready: TryResult | bool = view.try_acquire() if items else True
        for k in range(items):
            with view.acquire_if_needed(ready) as tiles:
                use(tiles.stage(), tiles.barrier() if side == "producer" else tiles.mbar(), k)
                if again == "inside the stage":
                    ready = view.try_acquire()
            if again == "after the step":
                ready = view.try_acquire() if k + 1 < items else True
        if side == "producer" and again == "after the step":
            view.drain()

    return loop


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("items", [0, 1, 3, 7])
def test_the_lookahead_of_the_kernels_is_the_blocking_loop(stages: int, items: int) -> None:
    trying, blocking = gemm(stages, items, ahead("producer"), ahead("consumer")), gemm(stages, items)
    assert outcomes(trying, schedules=12) == {"finished"}
    assert (timed(trying).outcome, timed(trying).faults) == (Ending.FINISHED, ())
    for agent in (LOAD, MMA):
        tries = asked(trying, agent)
        assert len(tries) == items
        assert all(tried == waited for tried, waited in tries), "each answer is used for what it was asked for"
        waits = [op[1:3] for op in blocking.code[agent] if op[0] == Op.WAIT]
        assert [waited for _, waited in tries] == waits[:items], "and it is what the blocking loop waits for"
    assert run_canonically(trying).state.barriers == run_canonically(blocking).state.barriers


def asked(program: Program, agent: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Of every wait that a try may spare: what the try asked for, and what the wait is for (barrier, parity)."""
    held: dict[int, tuple[int, ...]] = {}
    pairs = []
    for op in program.code[agent]:
        names = dict(zip(OPERANDS[Op(op[0])], op[1:], strict=True))
        if op[0] == Op.TRY_WAIT:
            held[names["register"]] = op[1:3]
        elif op[0] == Op.WAIT_UNLESS:
            pairs.append((held[names["register"]], op[1:3]))
    return pairs


@pytest.mark.parametrize("again", ["inside the stage", "never"])
def test_a_stale_answer_lets_the_load_warp_overwrite(again: str) -> None:
    program = gemm(2, 5, ahead("producer", again))
    tries = asked(program, LOAD)
    assert tries[0] == ((2, 1), (2, 1))
    assert all(tried != waited for tried, waited in tries[1::2]), "recorded: what it asked for, and what it is used for"
    assert "RACE" in outcomes(program, schedules=60)
    assert FaultKind.RACE in faults(timed(program))


# what expect_bytes hides
