"""Where a pipeline takes an array of mbarriers it takes a pointer into one: ``b[2]``, upstream's ``ptr + 2``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipesim import Protocol, Warp
from pipesim.errors import ProtocolError
from pipesim.lang.predicate import elect
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.model.ops import Op
from pipesim.model.positions import BARRIER
from pipesim.model.program import Program
from pipesim.pipelines import (
    AsyncParams,
    ClcBarrierCounts,
    ClcPipelineStorage,
    EpiLoadPipeline,
    FA4Config,
    FA4MBarLayout,
    FA4MiscMBars,
    InputTilePipeline,
    KVPipelineGeneric,
    LoadOrderBarrier,
    MBarPipeline,
    OrderedSequenceBarrier,
    OutputTilePipeline,
    PipelineAsync,
    PipelineState,
    PipelineTmaAsync,
    PipelineTmaUmmaAsync,
    PipelineTransactionAsync,
    PipelineUmmaAsync,
    PipelineUmmaConsumerAsync,
    ProducerConsumerPipeline,
    RolePipeline,
    StagedPipeline,
    StandardTilePayload,
    TileScheduler,
    TMAConsumerPipeline,
    TmaParams,
    TMAProducerPipeline,
    TmemAllocation,
)
from pipesim.pipelines.modular.attention.fa4 import BF16
from pipesim.trace.sites import identifier, site_table

CONFIG = FA4Config(BF16, 64, 64, 2)
LAYOUT = FA4MBarLayout.of(CONFIG)
AT = 2  #: where the pointer points

#: a struct, how many mbarriers it takes, and a use of it: `b` is what stands for them
Use = Callable[["Kernel", Any], Any]


class Kernel:
    """The tiles that some structs want besides their barriers."""

    def __init__(self, p: Protocol) -> None:
        self.a, self.b = p.smem("tile_a", 2, 1024), p.smem("tile_b", 2, 1024)
        self.kv = p.smem("kv", 2, 64 * 64 * 2)
        self.acc = TmemAllocation(p.tmem("acc", 2, 1024))
        self.w: Warp | None = None


def ring(k: Kernel, b: Any) -> None:
    pipe = ProducerConsumerPipeline(b, 2)
    pipe.producer_signal_and_step(), pipe.consumer_signal_and_step()


def order(k: Kernel, b: Any) -> None:
    LoadOrderBarrier(b).arrive(), LoadOrderBarrier(b).wait()


def inputs(k: Kernel, b: Any) -> None:
    pipe = InputTilePipeline(b, StandardTilePayload(k.a, k.b), 2, 1)
    with pipe.producer().acquire() as tiles:
        tiles.barrier().arrive()
    with pipe.consumer().acquire() as full:
        full.mbar().arrive()


def outputs(k: Kernel, b: Any) -> None:
    pipe = OutputTilePipeline(b, k.acc, 0, 2, 128, 1)
    with pipe.producer(), pipe.consumer():
        pass


def epilogue(k: Kernel, b: Any) -> None:
    epi = EpiLoadPipeline(b, 2)
    with epi.produce() as stage:
        stage.mbar().arrive()
    with epi.consume():
        pass


def role(k: Kernel, b: Any) -> None:
    pipe = RolePipeline(b, (b if isinstance(b, SharedMemBarrier) else b.ptr()) + 2, 2)
    pipe.acquire(), pipe.commit()


def mbar(k: Kernel, b: Any) -> None:
    pipe = MBarPipeline(b, 2)
    RolePipeline(pipe.mbar, pipe.mbar + 2, 2, is_producer=False).release()


def staged(k: Kernel, b: Any) -> None:
    pipe = StagedPipeline(b, 2, 2)
    pipe.producer_acquire(), pipe.consumer_wait()


def generic(k: Kernel, b: Any) -> None:
    KVPipelineGeneric(b, 2, 1, 32, 32).consumer_wait()


def load(k: Kernel, b: Any) -> None:
    pipe = TMAProducerPipeline(b, k.kv, dtype=BF16, config=CONFIG)
    pipe.acquire(), pipe.get_tile(elect())


def use(k: Kernel, b: Any) -> None:
    TMAConsumerPipeline(b, k.kv, dtype=BF16, config=CONFIG).wait()


def misc(k: Kernel, b: Any) -> None:
    FA4MiscMBars(b, LAYOUT).producer_s0().acquire()


def cutlass(k: Kernel, b: Any) -> None:
    pipe = PipelineAsync(b, 2, AsyncParams(32, 32))
    pipe.producer_acquire(PipelineState(2, 0, 1)), pipe.producer_commit(PipelineState(2))


def transaction(k: Kernel, b: Any) -> None:
    PipelineTransactionAsync(b, 2, AsyncParams()).producer_commit(PipelineState(2, 1))


def tma(k: Kernel, b: Any) -> None:
    PipelineTmaAsync(b, 2, TmaParams(1024, 1, 32)).producer_acquire(PipelineState(2, 1, 1))


def tma_umma(k: Kernel, b: Any) -> None:
    PipelineTmaUmmaAsync(b, 2, TmaParams(1024, 1)).consumer_release(PipelineState(2))


def umma(k: Kernel, b: Any) -> None:
    PipelineUmmaAsync(b, 2).producer_commit(PipelineState(2))


def umma_consumer(k: Kernel, b: Any) -> None:
    PipelineUmmaConsumerAsync(b, 2).producer_commit(PipelineState(2))


def sequence(k: Kernel, b: Any) -> None:
    one, two = OrderedSequenceBarrier(b, 2, 2, 0), OrderedSequenceBarrier(b, 2, 2, 1)
    one.arrive(), two.wait()


STRUCTS: dict[str, tuple[int, Use]] = {
    "ProducerConsumerPipeline": (4, ring),
    "LoadOrderBarrier": (1, order),
    "InputTilePipeline": (4, inputs),
    "OutputTilePipeline": (4, outputs),
    "EpiLoadPipeline": (4, epilogue),
    "RolePipeline": (4, role),
    "MBarPipeline": (4, mbar),
    "StagedPipeline": (8, staged),
    "KVPipelineGeneric": (4, generic),
    "TMAProducerPipeline": (4, load),
    "TMAConsumerPipeline": (4, use),
    "FA4MiscMBars": (LAYOUT.size, misc),
    "PipelineAsync": (4, cutlass),
    "PipelineTransactionAsync": (4, transaction),
    "PipelineTmaAsync": (4, tma),
    "PipelineTmaUmmaAsync": (4, tma_umma),
    "PipelineUmmaAsync": (4, umma),
    "PipelineUmmaConsumerAsync": (4, umma_consumer),
    "OrderedSequenceBarrier": (4, sequence),
}


def program(size: int, body: Use, at: Callable[[Any], Any]) -> Program:
    p = Protocol("pointers")
    kernel = Kernel(p)
    b = p.mbarriers("b", size, count=1)

    @p.role("r")
    def r(w: Warp) -> None:
        kernel.w = w
        body(kernel, at(b))

    return p.flatten()


def touched(made: Program) -> list[tuple[int, int]]:
    """What the role does to which barrier, after the prologue."""
    begin = next(pc for pc, op in enumerate(made.code[0]) if op[0] == Op.BAR_SYNC) + 1
    on = (Op.WAIT, Op.WAIT_UNLESS, Op.ARRIVE, Op.COMMIT)
    commits = {Op.COMMIT: 2}
    return [(op[0], op[commits.get(Op(op[0]), BARRIER)]) for op in made.code[0][begin:] if op[0] in on]


@pytest.mark.parametrize("name", STRUCTS)
@pytest.mark.parametrize("at", [lambda b: b[AT], lambda b: b.ptr() + AT, lambda b: b + AT, lambda b: b[1] + 1])
def test_at_a_pointer_everything_is_that_much_further_on(name: str, at: Callable[[Any], Any]) -> None:
    size, body = STRUCTS[name]
    whole = touched(program(size, body, lambda b: b))
    assert whole
    assert touched(program(size + AT, body, at)) == [(op, barrier + AT) for op, barrier in whole]


@pytest.mark.parametrize("name", [name for name in STRUCTS if name not in ("RolePipeline", "LoadOrderBarrier")])
def test_a_ring_past_the_end_of_the_array_is_an_error(name: str) -> None:
    size, body = STRUCTS[name]
    assert program(size + AT, body, lambda b: b[AT])
    with pytest.raises(ProtocolError) as caught:
        program(size + AT - 1, body, lambda b: b[AT])
    assert caught.value.fact.endswith(f"needs {size} mbarriers; b has {size - 1} from {AT} on")
    assert caught.value.correction == f"ask for {size + AT} in protocol.mbarriers('b', ...)"
    assert __file__ in caught.value.place


def test_a_side_past_the_end_of_the_array_is_an_error() -> None:
    with pytest.raises(ProtocolError, match="one side of a pipeline of 2 stages needs 2 mbarriers; b has 1 from 4 on"):
        program(5, role, lambda b: b[AT])


@pytest.mark.parametrize("name", [name for name in STRUCTS if name != "RolePipeline"])
def test_what_is_no_barrier_is_an_error(name: str) -> None:
    size, body = STRUCTS[name]
    with pytest.raises(ProtocolError, match="was given an object of type list for its mbarriers"):
        program(size, body, lambda b: [b])


INITS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "ProducerConsumerPipeline": (4, lambda b: ProducerConsumerPipeline(b, 2).init_mbars(1, 7)),
    "InputTilePipeline": (4, lambda b: InputTilePipeline.init_barriers(b, 1, 7, num_group_stages=2)),
    "OutputTilePipeline": (4, lambda b: OutputTilePipeline.init_barriers(b, 1, 7, num_stages=2)),
    "EpiLoadPipeline": (4, lambda b: EpiLoadPipeline(b, 2).init_barriers(1, 7)),
    "TileScheduler": (4, lambda b: TileScheduler.init_throttle_barriers(b, 1, 7, num_stages=2)),
    "MBarPipeline": (4, lambda b: MBarPipeline(b, 2).init(1, 7)),
    "KVPipelineGeneric": (4, lambda b: KVPipelineGeneric(b, 2, 1, 1, 7).init()),
    "PipelineAsync": (4, lambda b: PipelineAsync.init_barriers(b, 2, AsyncParams(1, 7))),
    "PipelineTransactionAsync": (4, lambda b: PipelineTransactionAsync.init_barriers(b, 2, AsyncParams(1, 7))),
    "PipelineTmaAsync": (4, lambda b: PipelineTmaAsync.init_barriers(b, 2, TmaParams(num_consumers=7))),
    "PipelineUmmaAsync": (4, lambda b: PipelineUmmaAsync.init_barriers(b, 2, AsyncParams(1, 7))),
}


def counts(size: int, init: Callable[[Any], Any], at: Callable[[Any], Any]) -> dict[int, int]:
    p = Protocol("init")
    b = p.mbarriers("b", size)
    p.init(lambda: init(at(b)))
    p.role("r")(lambda _: None)
    return {op[1]: op[2] for op in p.flatten().code[0] if op[0] == Op.INIT}


@pytest.mark.parametrize("name", INITS)
def test_an_init_at_a_pointer_initialises_what_lies_there(name: str) -> None:
    size, init = INITS[name]
    full, empty = {AT: 1, AT + 1: 1}, {AT + 2: 7, AT + 3: 7}
    assert counts(size + AT + 3, init, lambda b: b[AT]) == {**full, **empty}
    with pytest.raises(ProtocolError, match=f"needs {size} mbarriers; b has {size - 1} from {AT} on"):
        counts(size + AT - 1, init, lambda b: b[AT])


@pytest.mark.parametrize("init", [InputTilePipeline.init_barriers, OutputTilePipeline.init_barriers])
def test_a_pointer_alone_does_not_say_how_many_stages_there_are(init: Callable[..., Any]) -> None:
    with pytest.raises(ProtocolError, match=r"init_barriers was given b\[2\] and no number of stages") as caught:
        counts(6, lambda b: init(b, 1, 1), lambda b: b[AT])
    assert "num_stages" in caught.value.correction


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
    assert [op[1] for op in made.code[0] if op[0] == Op.WAIT] == [1, 2]
    assert len(made.barriers) == 10
    assert [f"{each.name}[{each.stage}]" for each in made.barriers] == [
        "b[0]", "b[1].full[0]", "b[1].full[1]", "b[1].empty[0]", "b[1].empty[1]",
        "b[5].full[0]", "b[5].full[1]", "b[5].empty[0]", "b[5].empty[1]", "b[9]",
    ]  # fmt: skip
    with pytest.raises(ProtocolError, match="the throttle of clc, of 2 stages, needs 4 mbarriers; b has 3 from 7 on"):
        ClcPipelineStorage(p, 2, throttle=b[7])


def names(*bodies: Callable[[Any], Any], size: int = 8, others: int = 0) -> list[str]:
    """The names of the barriers of ``b``, and of a second array, as reports show them."""
    p = Protocol("names")
    b = p.mbarriers("b", size, count=1)
    c = p.mbarriers("c", others, count=1) if others else None

    @p.role("r")
    def r(_: Warp) -> None:
        for body in bodies:
            body(b)
        if c is not None:
            ProducerConsumerPipeline(c, others // 2)

    made = p.flatten()
    return [made.barrier_name(number) for number in range(len(made.barriers))]


def test_one_ring_in_an_array_has_its_own_names() -> None:
    assert names(lambda b: ProducerConsumerPipeline(b[2], 2)) == [
        "b[0]", "b[1]", "full[0]", "full[1]", "empty[0]", "empty[1]", "b[6]", "b[7]",
    ]  # fmt: skip


def test_several_rings_in_an_array_are_named_by_where_they_begin() -> None:
    two = [lambda b: ProducerConsumerPipeline(b, 1), lambda b: ProducerConsumerPipeline(b[2], 2)]
    assert names(*two, size=7) == [
        "b[0].full[0]", "b[0].empty[0]", "b[2].full[0]", "b[2].full[1]", "b[2].empty[0]", "b[2].empty[1]", "b[6]",
    ]  # fmt: skip
    assert names(*two, size=6, others=2) == [
        "b[0].full[0]", "b[0].empty[0]", "b[2].full[0]", "b[2].full[1]", "b[2].empty[0]", "b[2].empty[1]",
        "c.full[0]", "c.empty[0]",
    ]  # fmt: skip


def test_both_sides_of_a_ring_that_is_given_in_two_pointers_have_one_name() -> None:
    sides = [lambda b: RolePipeline(b[0], b[2], 2), lambda b: RolePipeline(b[4], b[6], 2, is_producer=False)]
    assert names(*sides) == [
        "b[0].full[0]", "b[0].full[1]", "b[0].empty[0]", "b[0].empty[1]",
        "b[4].full[0]", "b[4].full[1]", "b[4].empty[0]", "b[4].empty[1]",
    ]  # fmt: skip


def test_a_barrier_of_a_group_with_the_name_of_its_array_is_not_confused_with_the_array_s() -> None:
    made = names(lambda b: LoadOrderBarrier(b[2], group="b"), size=3)
    assert len(set(made)) == 3
    assert made[:2] == ["b[0]", "b[1]"]


def test_two_sequences_in_an_array() -> None:
    sequences = [lambda b: OrderedSequenceBarrier(b, 1, 2, 0), lambda b: OrderedSequenceBarrier(b[2], 2, 2, 0)]
    assert names(*sequences, size=6) == [
        "b.group0[0]", "b.group1[0]", "b[2].group0[0]", "b[2].group1[0]", "b[2].group0[1]", "b[2].group1[1]",
    ]  # fmt: skip


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


def test_two_rings_in_one_array_go_their_own_ways(run: Any) -> None:
    for seed in range(20):
        assert run(two_rings(), seed).outcome == "finished"


def test_a_kernel_can_spell_the_names_of_two_rings_in_one_array() -> None:
    names = [site.name for site in site_table(two_rings()).sites]
    assert "one_arrive_b_4_full" in names
    assert all(name.isidentifier() for name in names)
    assert [identifier(name) for name in ("full", "pipe.full", "b[4].full")] == ["full", "pipe_full", "b_4_full"]


def test_a_pointer_past_the_end_or_before_the_begin_is_an_error() -> None:
    p = Protocol("ends")
    b = p.mbarriers("b", 4, count=1)
    for wrong, said in ((lambda: b[3] + 1, "barrier 4 of b"), (lambda: b[1] + -2, "barrier -1 of b")):
        with pytest.raises(ProtocolError, match=said):
            wrong()
    with pytest.raises(ProtocolError, match=r"is 0\.5 of type float"):
        b.ptr() + 0.5  # type: ignore[operator]


def test_a_pointer_into_another_cta_stays_there() -> None:
    p = Protocol("far", cluster=2)
    b = p.mbarriers("b", 4, count=1)

    @p.role("r")
    def r(_: Warp) -> None:
        (b[1].mapa(1) + 2).arrive()
        b[1].mapa(1)[1].arrive()

    arrives = [op[1] for op in p.flatten().code[0] if op[0] == Op.ARRIVE]
    assert arrives == [4 + 3, 4 + 2]
