"""Every pipeline struct: how it is made over mbarriers, and what each of its calls records and moves.

Two stages, barriers ``full[0]``, ``full[1]``, ``empty[0]``, ``empty[1]`` unless said otherwise.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from pipesim import Protocol, Warp
from pipesim.lang.intrinsics import elect
from pipesim.model.ops import Engine, Op, Operation
from pipesim.pipelines import (
    AccumBarrier,
    AsyncParams,
    EpiLoadPipeline,
    FA4Config,
    FA4MBarLayout,
    FA4MiscMBars,
    InputTilePipeline,
    KVPipelineGeneric,
    LoadOrderBarrier,
    OrderedSequenceBarrier,
    OutputTilePipeline,
    PipelineState,
    PipelineTmaAsync,
    PipelineTmaUmmaAsync,
    PipelineTransactionAsync,
    PipelineUmmaAsync,
    ProducerConsumerPipeline,
    RolePipeline,
    StagedPipeline,
    StandardTilePayload,
    TMAConsumerPipeline,
    TmaParams,
    TMAProducerPipeline,
    TmemAllocation,
)
from pipesim.pipelines.modular.attention.fa4 import BF16

TCGEN05 = int(Engine.TCGEN05)
CONFIG = FA4Config(BF16, 64, 64, 2)
LAYOUT = FA4MBarLayout.from_config(CONFIG)
PROLOGUE = frozenset({Op.INIT, Op.FENCE, Op.BAR_SYNC, Op.CLUSTER_ARRIVE, Op.CLUSTER_WAIT})


def wait(barrier: int, parity: int = 0) -> Operation:
    return (Op.WAIT, barrier, parity, 0)


def arrive(barrier: int, lanes: int = 32, expect: int = 0) -> Operation:
    return (Op.ARRIVE, barrier, lanes, expect, -1, 0)


def commit(barrier: int, mask: int = 0) -> Operation:
    return (Op.COMMIT_MULTICAST, TCGEN05, barrier, mask) if mask else (Op.COMMIT, TCGEN05, barrier)


def tried(barrier: int, parity: int, *, waits: bool) -> list[Operation]:
    """A try, and the wait that its answer may spare."""
    asked = (Op.TRY_WAIT, barrier, parity, 0 if waits else -1, 0)
    return [asked, (Op.WAIT_UNLESS, barrier, parity, 0, 0)] if waits else [asked]


class Kernel:
    """The tiles that some structs want besides their barriers."""

    def __init__(self, p: Protocol) -> None:
        self.payload = StandardTilePayload(p.smem("tile_a", 4, 1024), p.smem("tile_b", 4, 1024))
        self.kv = p.smem("kv", 2, 64 * 64 * 2)
        self.acc = TmemAllocation(p.tmem("acc", 2, 1024))


Body = Callable[[Any], Any]
#: what a call records, and the counters after it: producer and consumer stage, or the index of a state, or a phase
Call = tuple[Body, list[Operation], tuple[int, ...]]


class Struct(NamedTuple):
    """A struct over ``size`` mbarriers, made by a role."""

    size: int
    make: Callable[[Kernel, Any], Any]
    calls: dict[str, Call]


def released(handle: Any) -> None:
    handle.release()


def entered(context: Any, then: Callable[[Any], object] = lambda _: None) -> None:
    with context as stage:
        then(stage)


RING: dict[str, Call] = {
    "wait_producer": (lambda p: p.wait_producer(), [wait(0, 0)], (0, 0)),
    "wait_consumer": (lambda p: p.wait_consumer(), [wait(2, 1)], (0, 0)),
    "producer_step": (lambda p: p.producer_step(), [], (1, 0)),
    "consumer_step": (lambda p: p.consumer_step(), [], (0, 1)),
    "produce": (lambda p: entered(p.produce()), [wait(2, 1)], (1, 0)),
    "consume": (lambda p: entered(p.consume()), [wait(0, 0), arrive(2)], (0, 1)),
    "consume_explicit": (lambda p: entered(p.consume_explicit()), [wait(0, 0)], (0, 1)),
    "an arrive inside": (
        lambda p: entered(p.consume_explicit(), lambda stage: stage.arrive()),
        [wait(0, 0), arrive(2)],
        (0, 1),
    ),
    "acquire_producer": (lambda p: released(p.acquire_producer()), [wait(2, 1)], (1, 0)),
    "acquire_consumer": (lambda p: released(p.acquire_consumer()), [wait(0, 0), arrive(2)], (0, 1)),
    "release_without_signal": (lambda p: p.acquire_consumer().release_without_signal(), [wait(0, 0)], (0, 1)),
}
PRODUCER_CONSUMER: dict[str, Call] = RING | {
    "try_wait_producer": (lambda p: p.try_wait_producer(), tried(0, 0, waits=False), (0, 0)),
    "try_wait_consumer": (lambda p: p.try_wait_consumer(), tried(2, 1, waits=False), (0, 0)),
    "wait_producer_if_needed": (
        lambda p: p.wait_producer_if_needed(p.try_wait_producer()), tried(0, 0, waits=True), (0, 0),
    ),
    "wait_consumer_if_needed": (
        lambda p: p.wait_consumer_if_needed(p.try_wait_consumer()), tried(2, 1, waits=True), (0, 0),
    ),
    "wait_producer_if_needed of False": (lambda p: p.wait_producer_if_needed(False), [wait(0, 0)], (0, 0)),
    "wait_consumer_if_needed of True": (lambda p: p.wait_consumer_if_needed(True), [], (0, 0)),
    "producer_signal_and_step": (lambda p: p.producer_signal_and_step(), [wait(2, 1), arrive(0)], (1, 0)),
    "consumer_signal_and_step": (lambda p: p.consumer_signal_and_step(), [wait(0, 0), arrive(2)], (0, 1)),
    "producer_mbar": (lambda p: p.producer_mbar(1).arrive(), [arrive(1)], (0, 0)),
    "consumer_mbar": (lambda p: p.consumer_mbar(1).arrive(), [arrive(3)], (0, 0)),
}  # fmt: skip
EPI_LOAD: dict[str, Call] = RING | {
    "producer_mbar": (lambda e: e.producer_mbar().arrive(), [arrive(0)], (0, 0)),
    "producer_mbar after a step": (
        lambda e: (e.producer_step(), e.producer_mbar().arrive()), [arrive(1)], (1, 0),
    ),
    "consumer_stage": (lambda e: [e.consumer_stage()].index(0), [], (0, 0)),
}  # fmt: skip
INPUT: dict[str, Call] = {
    "try_acquire_producer": (lambda p: p.try_acquire_producer(), tried(2, 1, waits=False), (0, 0)),
    "try_acquire_consumer": (lambda p: p.try_acquire_consumer(), tried(0, 0, waits=False), (0, 0)),
    "producer try": (
        lambda p: p.wait_consumer_if_needed(p.try_acquire_producer()), tried(2, 1, waits=True), (0, 0),
    ),
    "consumer try": (
        lambda p: p.wait_producer_if_needed(p.try_acquire_consumer()), tried(0, 0, waits=True), (0, 0),
    ),
    "acquire_producer": (lambda p: released(p.acquire_producer()), [wait(2, 1)], (1, 0)),
    "acquire_consumer": (lambda p: released(p.acquire_consumer()), [wait(0, 0)], (0, 1)),
    "drain_producer": (lambda p: p.drain_producer(), [wait(2, 1), wait(3, 1)], (0, 0)),
    "producer.drain": (lambda p: p.producer().drain(), [wait(2, 1), wait(3, 1)], (0, 0)),
    "producer.acquire": (lambda p: entered(p.producer().acquire()), [wait(2, 1)], (1, 0)),
    "consumer.acquire": (lambda p: entered(p.consumer().acquire()), [wait(0, 0)], (0, 1)),
    "producer.acquire_stage": (lambda p: released(p.producer().acquire_stage()), [wait(2, 1)], (1, 0)),
    "consumer.acquire_stage": (lambda p: released(p.consumer().acquire_stage()), [wait(0, 0)], (0, 1)),
    "producer.try_acquire": (
        lambda p: entered(p.producer().acquire_if_needed(p.producer().try_acquire())), tried(2, 1, waits=True), (1, 0),
    ),
    "consumer.try_acquire": (
        lambda p: entered(p.consumer().acquire_if_needed(p.consumer().try_acquire())), tried(0, 0, waits=True), (0, 1),
    ),
    "acquire_if_needed of True": (lambda p: entered(p.producer().acquire_if_needed(True)), [], (1, 0)),
    "the views": (lambda p: (entered(p.producer()), entered(p.consumer())), [], (0, 0)),
    "barrier": (
        lambda p: entered(p.producer().acquire(), lambda tiles: tiles.barrier().arrive()),
        [wait(2, 1), arrive(0)], (1, 0),
    ),
    "expect_bytes": (  # every lane expects, and arrives
        lambda p: entered(p.producer().acquire(), lambda tiles: tiles.expect_bytes(8)),
        [wait(2, 1), arrive(0, 32, 256)], (1, 0),
    ),
    "mbar": (
        lambda p: entered(p.consumer().acquire(), lambda tiles: tiles.mbar().arrive()),
        [wait(0, 0), arrive(2)], (0, 1),
    ),
    "producer_mbar": (lambda p: p.producer_mbar(p.producer_stage()).arrive(), [arrive(0)], (0, 0)),
    "consumer_mbar": (lambda p: p.consumer_mbar(p.consumer_stage()).arrive(), [arrive(2)], (0, 0)),
}  # fmt: skip
OUTPUT: dict[str, Call] = {
    "acquire_for_mma": (lambda p: p.release_from_mma(p.acquire_for_mma()), [wait(2, 1), commit(0)], (1, 0)),
    "acquire_for_epilogue": (lambda p: (p.acquire_for_epilogue(), p.release_from_epilogue()), [wait(0, 0)], (0, 1)),
    "release_from_epilogue": (lambda p: p.release_from_epilogue(), [], (0, 1)),
    "producer": (lambda p: entered(p.producer()), [wait(2, 1), commit(0)], (1, 0)),
    "consumer": (lambda p: entered(p.consumer()), [wait(0, 0)], (0, 1)),
    "per_k": (lambda p: entered(p.per_k().produce()), [wait(2, 1), commit(0)], (1, 0)),
    "AccumBarrier.arrive": (lambda p: AccumBarrier.arrive(p.pipeline, 1, p.cta_group), [arrive(3)], (0, 0)),
}
ORDER: dict[str, Call] = {
    "arrive": (lambda o: o.arrive(), [arrive(0)], (0,)),
    "wait": (lambda o: o.wait(), [wait(0)], (0,)),
    "step": (lambda o: o.step(), [], (1,)),
    "arrive_and_step": (lambda o: o.arrive_and_step(), [arrive(0)], (1,)),
    "wait_and_step": (lambda o: o.wait_and_step(), [wait(0)], (1,)),
}
#: a producer of two stages with two consumer sub-stages each: barriers 0, 1, then 2 to 5
ROLE: dict[str, Call] = {
    "acquire": (lambda p: p.acquire(), [wait(2, 1)], (0,)),
    "acquire(1)": (lambda p: p.acquire(1), [wait(3, 1)], (0,)),
    "commit": (lambda p: p.commit(), [arrive(0)], (1,)),
    "wait": (lambda p: p.wait(), [wait(0, 1)], (0,)),
    "release": (lambda p: p.release(), [arrive(2)], (1,)),
    "release(1)": (lambda p: p.release(1), [arrive(3)], (1,)),
    "release_no_step(1)": (lambda p: p.release_no_step(1), [arrive(3)], (0,)),
    "step": (lambda p: p.step(), [], (1,)),
}
#: two slots in two slices: producers 0 to 3, consumers 4 to 7; a slice that is not named is the last in a wait
STAGED: dict[str, Call] = {
    "producer_acquire()": (lambda p: p.producer_acquire(), [wait(5)], (0,)),
    "producer_acquire(0)": (lambda p: p.producer_acquire(0), [wait(4)], (0,)),
    "consumer_wait()": (lambda p: p.consumer_wait(), [wait(1)], (0,)),
    "consumer_wait(0)": (lambda p: p.consumer_wait(0), [wait(0)], (0,)),
    "producer_mbar()": (lambda p: p.producer_mbar().arrive(), [arrive(0)], (0,)),
    "consumer_mbar(1, 1)": (lambda p: p.consumer_mbar(1, 1).arrive(), [arrive(7)], (0,)),
    "state.step": (lambda p: p.state.step(), [], (1,)),
}
TILE = 64 * 64 * 2
TMA_LOAD: dict[str, Call] = {
    "acquire": (lambda k: k.acquire(), [wait(2, 1)], (0,)),
    "acquire_k": (lambda k: k.acquire_k(qk_stage=0), [wait(2, 1)], (0,)),
    "acquire_v": (lambda k: k.acquire_v(), [wait(2, 1)], (0,)),
    "get_tile()": (lambda k: k.get_tile(), [], (0,)),
    "get_tile(e)": (lambda k: k.get_tile(elect()), [arrive(0, 1, TILE)], (0,)),
    "get_tile(0)": (lambda k: k.get_tile(0), [], (0,)),
    "get_tile(two lanes)": (lambda k: k.get_tile(0b11), [arrive(0, 2, 2 * TILE)], (0,)),
    "get_k(e)": (lambda k: k.get_k(elect(), qk_stage=0), [arrive(0, 1, TILE)], (0,)),
    "get_v(e)": (lambda k: k.get_v(elect()), [arrive(0, 1, TILE)], (0,)),
    "commit_step": (lambda k: k.commit_step(), [], (1,)),
}


def at() -> PipelineState:
    """The state that a CUTLASS pipeline is given: stage 1, phase 0."""
    return PipelineState(2, 1, 0, 1)


CUTLASS: dict[str, Call] = {
    "try_acquire": (lambda p: p.producer_try_acquire(at()), tried(3, 0, waits=False), (0,)),
    "try_acquire, skipped": (lambda p: p.producer_try_acquire(at(), True), [], (0,)),
    "tail": (lambda p: p.producer_tail(at()), [wait(3), wait(2, 1)], (0,)),
    "try_wait": (lambda p: p.consumer_try_wait(at()), tried(1, 0, waits=False), (0,)),
    "wait": (lambda p: p.consumer_wait(at()), [wait(1)], (0,)),
    "wait of a try": (lambda p: p.consumer_wait(at(), p.consumer_try_wait(at())), tried(1, 0, waits=True), (0,)),
    "wait, done": (lambda p: p.consumer_wait(at(), p.consumer_try_wait(at(), True)), [], (0,)),
    "get_barrier": (lambda p: p.producer_get_barrier(at()).arrive(), [arrive(1)], (0,)),
}
TRANSACTION: dict[str, Call] = CUTLASS | {
    "acquire": (lambda p: p.producer_acquire(at()), [wait(3)], (0,)),
    "expect": (lambda p: p.producer_expect_transaction(at()), [(Op.EXPECT_TX, 1, 64 * 32, 8)], (0,)),
    "commit": (lambda p: p.producer_commit(at()), [arrive(1)], (0,)),
    "release": (lambda p: p.consumer_release(at()), [arrive(3)], (0,)),
}
TMA: dict[str, Call] = CUTLASS | {
    "acquire": (lambda p: p.producer_acquire(at()), [wait(3), arrive(1, 1, 512)], (0,)),
    "acquire of a try": (
        lambda p: p.producer_acquire(at(), p.producer_try_acquire(at())),
        [*tried(3, 0, waits=True), arrive(1, 1, 512)],
        (0,),
    ),
    "release": (lambda p: p.consumer_release(at()), [arrive(3)], (0,)),
}
TMA_UMMA: dict[str, Call] = TMA | {"release": (lambda p: p.consumer_release(at()), [commit(3)], (0,))}
UMMA: dict[str, Call] = CUTLASS | {
    "acquire": (lambda p: p.producer_acquire(at()), [wait(3)], (0,)),
    "commit": (lambda p: p.producer_commit(at()), [commit(1)], (0,)),
    "release": (lambda p: p.consumer_release(at()), [arrive(3)], (0,)),
}
SEQUENCE: dict[str, Call] = {
    "wait": (lambda o: o.wait(), [wait(1)], (0,)),
    "arrive": (lambda o: o.arrive(), [arrive(0)], (0,)),
}


def _role(_: Kernel, b: Any) -> RolePipeline:
    first = b if not hasattr(b, "ptr") else b.ptr()
    return RolePipeline(b, first + 2, 2, consumer_sub_stages=2)


STRUCTS: dict[str, Struct] = {
    "ProducerConsumerPipeline": Struct(4, lambda k, b: ProducerConsumerPipeline(b, 2), PRODUCER_CONSUMER),
    "EpiLoadPipeline": Struct(4, lambda k, b: EpiLoadPipeline(b, 2), EPI_LOAD),
    "InputTilePipeline": Struct(4, lambda k, b: InputTilePipeline(b, k.payload, 2, 2), INPUT),
    "OutputTilePipeline": Struct(4, lambda k, b: OutputTilePipeline(b, k.acc, 0, 2, 128, 1), OUTPUT),
    "LoadOrderBarrier": Struct(1, lambda k, b: LoadOrderBarrier(b), ORDER),
    "RolePipeline": Struct(6, _role, ROLE),
    "StagedPipeline": Struct(8, lambda k, b: StagedPipeline(b, 2, 2), STAGED),
    "KVPipelineGeneric": Struct(8, lambda k, b: KVPipelineGeneric(b, 2, 2, 32, 32), STAGED),
    "TMAProducerPipeline": Struct(
        4, lambda k, b: TMAProducerPipeline(b, k.kv, dtype=BF16, config=CONFIG), TMA_LOAD
    ),
    "TMAConsumerPipeline": Struct(
        4,
        lambda k, b: TMAConsumerPipeline(b, k.kv, dtype=BF16, config=CONFIG),
        {"wait": (lambda k: k.pipeline.consumer_wait(), [wait(0)], (0,))},
    ),
    "FA4MiscMBars": Struct(
        LAYOUT.size,
        lambda k, b: FA4MiscMBars(b, LAYOUT),
        {"producer_s0": (lambda m: m.producer_s0().acquire(), [wait(0, 1)], (0,))},
    ),
    "PipelineTransactionAsync": Struct(
        4, lambda k, b: PipelineTransactionAsync(b, 2, AsyncParams(transaction_bytes=64)), TRANSACTION
    ),
    "PipelineTmaAsync": Struct(4, lambda k, b: PipelineTmaAsync(b, 2, TmaParams(512, elect(), 32)), TMA),
    "PipelineTmaUmmaAsync": Struct(4, lambda k, b: PipelineTmaUmmaAsync(b, 2, TmaParams(512, elect())), TMA_UMMA),
    "PipelineUmmaAsync": Struct(4, lambda k, b: PipelineUmmaAsync(b, 2), UMMA),
    "OrderedSequenceBarrier": Struct(4, lambda k, b: OrderedSequenceBarrier(b, 2, 2, 1), SEQUENCE),
}  # fmt: skip


def in_a_role(body: Callable[[Any], Any], name: str, *, spare: int = 0, at: Callable[[Any], Any] = lambda b: b) -> Any:
    """The program whose role makes this struct over an array of mbarriers, or at a pointer into it, and runs ``body``.

    ``spare``: barriers of the array beside those that the struct takes.
    """
    p = Protocol("r")
    kernel, struct = Kernel(p), STRUCTS[name]
    b = p.mbarriers("b", struct.size + spare, count=1)

    @p.role("r")
    def r(_: Warp) -> None:
        body(struct.make(kernel, at(b)))

    return p.flatten()


def role_code(program: Any, agent: int = 0) -> list[Operation]:
    """What an agent records after the prologue."""
    return [op for op in program.code[agent] if op[0] not in PROLOGUE]
