"""Where a pipeline takes an array of mbarriers it takes a pointer into one: ``b[2]``, upstream's ``ptr + 2``."""

from collections.abc import Callable
from typing import Any

import pytest

from pipesim import Protocol, Warp
from pipesim.errors import ProtocolError
from pipesim.model.ops import Op, Operation
from pipesim.model.program import Program
from pipesim.pipelines import (
    ClcBarrierCounts,
    ClcPipelineStorage,
    ProducerConsumerPipeline,
    TileScheduler,
)
from pipesim.trace.sites import identifier, site_table
from tests.pipelines.structs import STRUCTS, in_a_role, role_code
from tests.support.random_schedules import run

AT = 2  #: where the pointer points
POINTERS: list[Callable[[Any], Any]] = [lambda b: b[AT], lambda b: b.ptr() + AT, lambda b: b + AT, lambda b: b[1] + 1]


def further_on(op: Operation) -> Operation:
    """The same operation with its barrier AT further on."""
    at = 2 if op[0] in (Op.COMMIT, Op.COMMIT_MULTICAST) else 1
    return (*op[:at], op[at] + AT, *op[at + 1 :])


@pytest.mark.parametrize("name", STRUCTS)
def test_at_a_pointer_everything_is_that_much_further_on(name: str) -> None:
    for call, (body, expected, _) in STRUCTS[name].calls.items():
        assert role_code(in_a_role(body, name, spare=AT, at=POINTERS[0])) == [*map(further_on, expected)], call
    body, expected, _ = next(call for call in STRUCTS[name].calls.values() if call[1])
    for at in POINTERS[1:]:
        assert role_code(in_a_role(body, name, spare=AT, at=at)) == [*map(further_on, expected)]


@pytest.mark.parametrize("name", [name for name in STRUCTS if name != "RolePipeline"])
def test_what_is_no_barrier_is_an_error(name: str) -> None:
    with pytest.raises(ProtocolError, match="was given an object of type list for its mbarriers"):
        in_a_role(lambda _: None, name, at=lambda b: [b])


def test_a_pointer_into_another_cta_stays_there() -> None:
    p = Protocol("far", cluster=2)
    b = p.mbarriers("b", 4, count=1)

    @p.role("r")
    def r(_: Warp) -> None:
        (b[1].mapa(1) + 2).arrive()
        b[1].mapa(1)[1].arrive()

    assert [op[1] for op in p.flatten().code[0] if op[0] == Op.ARRIVE] == [4 + 3, 4 + 2]


def test_clc_lies_in_barriers_that_are_there() -> None:
    p = Protocol("clc")
    b = p.mbarriers("b", 2 + 2 + 4 + 2)
    clc = ClcPipelineStorage(p, 2, full=b[1], empty=b[3], throttle=b + 5)
    p.init(lambda: clc.init_barriers(ClcBarrierCounts(1, 2, 3, 4)))

    @p.role("r")
    def r(w: Warp) -> None:
        assert [work.index for work in TileScheduler(w, clc, 2).work_iterator()] == [0, 1]

    made = p.flatten()
    assert {op[1]: op[2] for op in made.code[0] if op[0] == Op.INIT} == {
        1: 1, 2: 1, 3: 2, 4: 2, 5: 3, 6: 3, 7: 4, 8: 4,
    }  # fmt: skip
    assert [f"{each.name}[{each.stage}]" for each in made.barriers] == [
        "b[0]", "b[1].full[0]", "b[1].full[1]", "b[1].empty[0]", "b[1].empty[1]",
        "b[5].full[0]", "b[5].full[1]", "b[5].empty[0]", "b[5].empty[1]", "b[9]",
    ]  # fmt: skip
    with pytest.raises(ProtocolError, match="the throttle of clc, of 2 stages, needs 4 mbarriers; b has 3 from 7 on"):
        ClcPipelineStorage(p, 2, throttle=b[7])


# names


def two_rings() -> Program:
    p = Protocol("two")
    b = p.mbarriers("b", 10)
    tile = p.smem("tile", 5, 1024)

    @p.init
    def init() -> None:
        ProducerConsumerPipeline(b, 2).init_mbars(32, 32)
        ProducerConsumerPipeline(b[4], 3).init_mbars(32, 32)

    @p.role("one")
    def one(w: Warp) -> None:
        first, second = ProducerConsumerPipeline(b, 2), ProducerConsumerPipeline(b.ptr() + 4, 3)
        for i in range(5):
            for at, pipe in (0, first), (2, second):
                with pipe.produce() as stage:
                    w.write(tile[at + stage.index()], i)
                    stage.mbar().arrive()

    @p.role("two")
    def two(w: Warp) -> None:
        first, second = ProducerConsumerPipeline(b, 2), ProducerConsumerPipeline(b[4], 3)
        for i in range(5):
            for at, pipe in (2, second), (0, first):
                with pipe.consume() as stage:
                    w.read(tile[at + stage.index()], i)

    return p.flatten()


def test_two_rings_in_one_array_go_their_own_ways_and_a_kernel_can_spell_their_names() -> None:
    for seed in range(20):
        assert run(two_rings(), seed).outcome == "finished"
    spelled = [site.name for site in site_table(two_rings()).sites]
    assert "one_arrive_b_4_full" in spelled
    assert all(name.isidentifier() for name in spelled)
    assert [identifier(name) for name in ("full", "pipe.full", "b[4].full")] == ["full", "pipe_full", "b_4_full"]
