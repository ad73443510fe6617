"""``drain``: it returns exactly when everything that was produced is consumed, and leaves a dead handle behind."""

from collections.abc import Callable

import pytest

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.machine import State
from pipesim.model.moves import run_canonically
from pipesim.model.ops import Engine
from pipesim.model.program import Program
from pipesim.pipelines import InputProducer, InputTilePipeline, StandardTilePayload
from tests.support.lanes import long_but, slow_but
from tests.support.random_schedules import run

After = Callable[[InputProducer[StandardTilePayload], Warp], None]
LOAD, MMA = 0, 1


def drained(
    stages: int, produced: int, consumed: int, after: After = lambda producer, w: None, *, drain: bool = True
) -> Program:
    """A load warp makes ``produced`` stages and drains; the MMA warp commits to the first ``consumed`` of them."""
    p = Protocol("drained")
    payload = StandardTilePayload(p.smem("a", stages, 32), p.smem("b", stages, 16))
    storage = InputTilePipeline.BarrierArray(p, "input", stages)
    p.init(lambda: InputTilePipeline.init_barriers(storage, 1, 1))

    @p.role("load")
    def load(w: Warp) -> None:
        with InputTilePipeline(storage, payload, stages, 1).producer() as producer:
            for i in range(produced):
                with producer.acquire() as tiles, w.elect_one():
                    tiles.expect_bytes(payload.stage_bytes(1))
                    for tile in payload.get_tile(tiles.stage(), 0, 1):
                        w.tma_load(tile, tiles.barrier(), i)
            if drain:
                producer.drain()
            after(producer, w)

    @p.role("mma")
    def mma(w: Warp) -> None:
        consumer = InputTilePipeline(storage, payload, stages, 1).consumer()
        for i in range(consumed):
            with consumer.acquire() as tiles, w.elect_one():
                w.mma(Engine.TCGEN05, reads=[(tile, i) for tile in payload.get_tile(tiles.stage(), 0, 1)])
                w.commit(Engine.TCGEN05, tiles.mbar())

    return p.flatten()


def ended(program: Program, state: State) -> list[bool]:
    return [pc == len(code) for code, pc in zip(program.code, state.pcs, strict=True)]


@pytest.mark.parametrize("stages", long_but([1, 4], slow_but([1], range(1, 8))))
def test_it_returns_exactly_when_all_productions_are_consumed(stages: int) -> None:
    for produced in range(3 * stages + 2):
        for consumed in range(produced + 1):
            program = drained(stages, produced, consumed)
            end = run_canonically(program)
            assert end.faults == []
            assert ended(program, end.state) == [consumed == produced, True], (produced, consumed)
            assert sum(b.done for b in end.state.barriers[stages:]) == consumed


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_no_schedule_lets_it_return_early(stages: int) -> None:
    def consumed_when_it_returned(produced: int, *, drain: bool) -> set[int]:
        program = drained(stages, produced, produced, drain=drain)
        seen = set()

        def watch(state: State) -> None:
            if state.pcs[LOAD] == len(program.code[LOAD]):
                seen.add(sum(b.done for b in state.barriers[stages:]))

        for seed in range(6):
            end = run(program, seed, watch, bias=1 + 5 * (seed % 2))
            assert (end.outcome, ended(program, end.state)) == ("finished", [True, True])
            watch(end.state)
        return seen

    for produced in range(3 * stages + 2):
        assert consumed_when_it_returned(produced, drain=True) == {produced}
    assert min(consumed_when_it_returned(3 * stages, drain=False)) < 3 * stages, "without it, the warp is off early"


@pytest.mark.parametrize("stages", [1, 2, 5])
@pytest.mark.parametrize("what", ["a second drain", "an acquire", "a wait"])
def test_after_a_drain_the_handle_is_dead(stages: int, what: str) -> None:
    after: dict[str, After] = {
        "a second drain": lambda producer, _: producer.drain(),
        "an acquire": lambda producer, _: producer.acquire_stage().release(),
        "a wait": lambda producer, _: producer.pipeline_ptr.pipeline.wait_consumer(),
    }
    for produced in range(3 * stages + 2):
        waits = {"a second drain": stages}.get(what, 1)
        program = drained(stages, produced, produced, after[what])
        end = run_canonically(program)
        assert (end.faults, ended(program, end.state)) == ([], [False, True])
        assert end.state.pcs[LOAD] == len(program.code[LOAD]) - waits, "the first wait after the drain blocks"
        assert not end.state.flights, "and nothing is under way that could end it"
