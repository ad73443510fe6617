"""CUTLASS's pipelines of SM90: what each call records, the counts of init, and what goes wrong where they differ."""

from collections.abc import Callable
from typing import Any

import pytest

from pipesim.errors import ProtocolError
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.pipelines import (
    OrderedSequenceBarrier,
    PipelineState,
    PipelineTmaAsync,
    TmaParams,
)
from tests.pipelines.structs import role_code
from tests.support.random_schedules import every_end

STAGES = 2


def recorded(make: Callable[[Any, Warp], Any], body: Callable[[Any], Any], *, cluster: int, warps: int = 1) -> Program:
    p = Protocol("cutlass", cluster=cluster)
    storage = p.mbarriers("pipe", 2 * STAGES, count=1)
    p.role("r", warps=warps)(lambda w: body(make(storage, w)) and None)
    return p.flatten()


@pytest.mark.parametrize(
    ("consumers", "producers", "shape", "expected"),
    [(256, 1, (2, 1), (1, 4)), (128, 1, (2, 2), (1, 3)), (32, 2, (4, 2), (2, 5))],
)
def test_in_a_cluster_one_thread_of_each_warp_group_frees_a_stage(
    consumers: int, producers: int, shape: tuple[int, int], expected: tuple[int, int]
) -> None:
    params = TmaParams(num_consumers=consumers, num_producers=producers)
    p = Protocol("init", cluster=shape[0] * shape[1])
    storage = p.mbarriers("pipe", 2)
    p.init(lambda: PipelineTmaAsync.init_barriers(storage, 1, params, shape))
    p.role("r")(lambda _: None)
    assert tuple(op[2] for op in p.flatten().code[0] if op[0] == Op.INIT) == expected


# who signals in a cluster


def released(shape: tuple[int, int], consumers: int, warps: int) -> Program:
    return recorded(
        lambda s, w: PipelineTmaAsync(s, STAGES, TmaParams(num_consumers=consumers), shape, warp=w),
        lambda p: p.consumer_release(PipelineState(STAGES, 1, 0, 1)),
        cluster=shape[0] * shape[1],
        warps=warps,
    )


@pytest.mark.parametrize(("consumers", "warps"), [(128, 4), (256, 8), (32, 1)])
@pytest.mark.parametrize("shape", [(1, 2), (2, 1), (2, 2), (4, 1), (4, 2), (4, 4)])
def test_in_a_cluster_each_cta_of_the_same_row_or_column_gets_one_arrival_a_warp_group(
    shape: tuple[int, int], consumers: int, warps: int
) -> None:
    x, y = shape
    program = released(shape, consumers, warps)
    got = [0] * (x * y)
    for agent, me in enumerate(program.agents):
        for op in role_code(program, agent):
            barrier = program.barriers[op[1]]
            assert (op[0], op[2], barrier.name, barrier.stage) == (Op.ARRIVE, 1, "empty", 1)
            assert me.cta % x == barrier.cta % x or me.cta // x == barrier.cta // x
            got[barrier.cta] += 1
    assert got == [(x + y - 1) * -(-consumers // 128)] * (x * y), "what init expects"


@pytest.mark.parametrize(("consumers", "known"), [(96, True), (128, False)])
def test_other_numbers_of_consumers_are_not_spread(consumers: int, known: bool) -> None:
    with pytest.raises(ProtocolError, match=f"{consumers} consumers release a stage in a cluster"):
        recorded(
            lambda s, w: PipelineTmaAsync(
                s, STAGES, TmaParams(num_consumers=consumers), (2, 1), warp=w if known else None
            ),
            lambda p: p.consumer_release(PipelineState(STAGES, 1, 0, 1)),
            cluster=2,
        )


# stories


# stores


# order


def sequence(*, depth: int = 2, length: int = 2, laps: int = 2, skew: bool = False, size: int = 32) -> Program:
    """The ping-pong kernel's math groups: each writes the shared tile in turn, in each of ``depth`` stages."""
    p = Protocol("order")
    tile = p.smem("tile", depth, 64)
    storage = p.mbarriers("order", depth * length)
    p.init(lambda: OrderedSequenceBarrier.init_barriers(storage, depth, length, size))

    @p.role("group", warps=length)
    def group(w: Warp) -> None:
        order = OrderedSequenceBarrier(storage, depth, length, w.index)
        for n in range(laps * depth):
            if skew:
                order.stage.step()
            order.wait()
            stage = order.stage.index()
            if n >= depth or w.index:
                w.read(tile[stage], n // depth * length + w.index - 1)
            w.write(tile[stage], n // depth * length + w.index)
            order.arrive()

    return p.flatten()


def test_a_wrong_size_or_a_stage_too_far_is_seen() -> None:
    assert every_end(sequence(size=64)) == {"stuck"}
    assert every_end(sequence(size=16)) == {"OVER_ARRIVAL"}
    assert every_end(sequence(skew=True)) != {"finished"}


@pytest.mark.parametrize(("depth", "length", "group"), [(0, 2, 0), (2, 0, 0), (3, 2, 0), (2, 2, 2), (2, 2, -1)])
def test_what_no_sequence_is(depth: int, length: int, group: int) -> None:
    p = Protocol("wrong")
    storage = p.mbarriers("order", 4, count=1)
    p.role("r")(lambda _: OrderedSequenceBarrier(storage, depth, length, group) and None)  # type: ignore[arg-type]
    with pytest.raises(ProtocolError, match="a sequence of"):
        p.flatten()
