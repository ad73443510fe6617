"""The software CLC of the grouped block-scaled kernel on 2 SMs, and the drain that its source implies."""

import pytest

from pipesim.errors import ProtocolError
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Fence, Op
from pipesim.model.program import Program
from pipesim.pipelines import (
    ClcPipelineStorage,
    GroupedCLCSchedulerIterator,
    GroupedCLCWorkIterator,
    grouped_clc_barrier_counts,
)

STAGES = 2


def kernel(tiles: int) -> Program:
    """The scheduler of CTA 0, and in each CTA an MMA warp that fetches and a load warp that walks alone."""
    p = Protocol("grouped", cluster=2)
    clc = ClcPipelineStorage(p, STAGES)
    p.init(lambda: clc.init_barriers(grouped_clc_barrier_counts()))

    @p.role("mma")
    def mma(w: Warp) -> None:
        for current in GroupedCLCWorkIterator(w, clc, tiles, use_clc_fetch=True):
            w.work(100 + current.index)

    @p.role("load")
    def load(w: Warp) -> None:
        for current in GroupedCLCWorkIterator(w, clc, tiles):
            w.work(200 + current.index)

    @p.role("scheduler")
    def scheduler(w: Warp) -> None:
        if w.cta:
            return
        work = GroupedCLCSchedulerIterator(w, clc, tiles)
        for _ in work:
            work.signal_and_advance()
        assert work.signal_count == tiles
        work.drain()

    return p.flatten()


def of(program: Program, name: str) -> list[tuple[int, ...]]:
    """What this agent records after the prologue, without loop marks."""
    agent = next(a for a in range(len(program.agents)) if program.agent_name(a) == name)
    skip = (Op.INIT, Op.CLUSTER_ARRIVE, Op.CLUSTER_WAIT, Op.LOOP_BEGIN, Op.LOOP_NEXT, Op.LOOP_END)
    code = program.code[agent]
    return [op for op in code if op[0] not in skip and op[:2] != (Op.FENCE, Fence.MBARRIER_INIT)]


def test_an_mma_warp_fetches_the_next_tile_before_it_works_on_this_one() -> None:
    def fetch(stage: int, parity: int) -> list[tuple[int, ...]]:
        return [(Op.WAIT, 8 + stage, parity, 0), (Op.FENCE, Fence.PROXY_ASYNC, 0), (Op.ARRIVE, 2 + stage, 32, 0, -1, 0)]

    assert of(kernel(3), "mma@1") == [
        *fetch(0, 0), (Op.WORK, 100), *fetch(1, 0), (Op.WORK, 101), *fetch(0, 1), (Op.WORK, 102),
    ]  # fmt: skip
    assert of(kernel(3), "load@1") == [(Op.WORK, 200), (Op.WORK, 201), (Op.WORK, 202)], "the others touch no barrier"


@pytest.mark.parametrize(("stages", "tiles"), [(0, 1), (2, -1)])
def test_what_no_software_clc_is(stages: int, tiles: int) -> None:
    p = Protocol("wrong")
    clc = ClcPipelineStorage(p, stages)
    p.init(lambda: clc.init_barriers(grouped_clc_barrier_counts()))
    p.role("r")(lambda w: GroupedCLCWorkIterator(w, clc, tiles) and None)  # type: ignore[arg-type]
    with pytest.raises(ProtocolError, match=f"{tiles} tiles from a software CLC of {stages} stages"):
        p.flatten()
