"""Forward attention of Hopper: a producer warp group loads Q, K and V, consumer groups multiply and do the softmax.

K and V come in the order K0, K1, V0, K2, V1, …: the scores of a block are computed while the values of the one before
are still being multiplied. ``fused=0``, the default, has a ring for each, as
``hwkernels/twins/hopper/attention_sm90.cu`` (:mod:`pipesim.protocols.hopper.staged_attention`). ``fused=1`` is
upstream's ``nn/attention/gpu/nvidia/sm90/mha.mojo``: one ring, which its consumers prime. Flash attention 4's ring,
which no role primes, is in :mod:`pipesim.protocols.hopper.attention_sm90_fused`. The ping-pong of the two consumer
groups is FlashAttention-3's.
"""

from dataclasses import dataclass

from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import Slot, TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine
from pipesim.pipelines import ProducerConsumerPipeline
from pipesim.pipelines.modular.attention.fa4 import BF16 as BFLOAT16
from pipesim.pipelines.modular.attention.fa4 import FA4Config
from pipesim.protocols.hopper.staged_attention import StagedAttention, Turns, mine
from pipesim.protocols.limits import ranges, require
from pipesim.protocols.warp_group import BF16, F32, GROUP, GROUP_THREADS, ROWS, mma_cycles, share, store

_REGISTERS = {1: 240, 2: 240, 3: 160}  #: of a consumer thread, by the number of consumer groups


@ranges(stages=(), block_n=(16, 256, 16))
def attention_sm90(
    kv_blocks: int = 8,
    stages: int = 2,
    depth: int = 128,
    block_n: int = 128,
    num_consumer: int = 2,
    pingpong: int = 1,
    softmax: int = 900,
    fused: int = 0,
    qk_stages: int = 1,
) -> Protocol:
    """Hopper's attention: K in slices and V whole, two consumer groups whose softmaxes take turns with their MMAs.

    ``kv_blocks`` blocks of ``block_n`` keys and values of ``depth`` elements; ``softmax``: cycles per block and warp.
    ``fused`` 0: a ring of ``stages`` slots for K, which comes in ``qk_stages`` slices, and one for V; 1: one for both.
    """
    least_depth = 16 if fused else 64
    require("stages", stages, 2 if fused else 1, 32)
    require("depth", depth, least_depth, 256, multiple_of=least_depth)
    require("num_consumer", num_consumer, 1, 3 if fused else 2)
    require("qk_stages", qk_stages, 1, 1 if fused else depth // 64)
    if not fused:
        return _staged_protocol(kv_blocks, stages, depth, block_n, num_consumer, pingpong, softmax, qk_stages)

    p = Protocol("attention_sm90")
    attention = _Attention(
        q=p.smem("q", 1, num_consumer * ROWS * depth * BF16),
        kv=p.smem("kv", stages, block_n * depth * BF16),
        scores=p.registers("scores", num_consumer, ROWS * block_n * F32),
        result=p.registers("result", num_consumer, ROWS * depth * F32),
        q_full=p.mbarriers("q_full", 1),
        storage=p.mbarriers("kv_pipe", ProducerConsumerPipeline.smem_bytes(stages) // 8),
        stages=stages,
        blocks=kv_blocks,
        num_consumer=num_consumer,
        turns=Turns.for_consumers(num_consumer, pingpong),
        step_cycles=mma_cycles(ROWS, block_n, depth) // GROUP,
        softmax=softmax,
    )
    p.init(attention.init)
    p.role("producer", warps=GROUP)(attention.producer)
    p.role("consumer", warps=GROUP * num_consumer)(attention.consumer)
    return p


def _staged_protocol(
    blocks: int, stages: int, depth: int, block_n: int, num_consumer: int, pingpong: int, softmax: int, qk_stages: int
) -> Protocol:
    """The protocol with a ring for K and one for V."""
    p = Protocol("attention_sm90")
    config, turns = FA4Config(BFLOAT16, depth, block_n, stages, qk_stages), Turns.for_consumers(num_consumer, pingpong)
    StagedAttention.for_protocol(p, config, blocks=blocks, turns=turns, softmax=softmax).roles(p)
    return p


@dataclass(frozen=True)
class _Attention:
    """With one ring: the kernel's memory and sizes, and its roles."""

    q: TileArray
    kv: TileArray
    scores: TileArray
    result: TileArray
    q_full: BarrierStorage
    storage: BarrierStorage
    stages: int
    blocks: int
    num_consumer: int
    turns: Turns
    step_cycles: int
    softmax: int

    def init(self) -> None:
        self.q_full[0].init(1)
        ProducerConsumerPipeline(self.storage, self.stages).init_mbars(
            producer_arrive_count=1, consumer_arrive_count=self.num_consumer * GROUP_THREADS
        )

    def producer(self, w: Warp) -> None:
        w.setmaxnreg(24)
        if w.index:
            return
        pipe = ProducerConsumerPipeline(self.storage, self.stages)
        pipe.producer_phase = 0
        with w.elect_one():
            self.q_full[0].expect_bytes(self.q.nbytes)
            w.tma_load(self.q[0], self.q_full[0], 0)
            for n in w.loop(self.blocks, "kv_blocks"):
                self._load(w, pipe, 2 * n)
                if n:
                    self._load(w, pipe, 2 * n - 1)
            if self.blocks:
                self._load(w, pipe, 2 * self.blocks - 1)

    def _load(self, w: Warp, pipe: ProducerConsumerPipeline, item: int) -> None:
        """Item 2n is K of block n, 2n + 1 its V."""
        with pipe.produce() as stage:
            stage.mbar().expect_bytes(self.kv.nbytes)
            w.tma_load(self.kv[stage.index()], stage.mbar(), item)

    def consumer(self, w: Warp) -> None:
        w.setmaxnreg(_REGISTERS[self.num_consumer])
        group = w.index // GROUP
        pipe = ProducerConsumerPipeline(self.storage, self.stages)
        for empty in pipe.empty:
            empty.arrive()
        if group == 1 and self.blocks:
            self.turns.pass_on(w, group)  # group 0 goes first
        rows = share(self.q[0], w.index, GROUP * self.num_consumer)
        self.q_full[0].wait(0)
        for n in w.loop(self.blocks, "kv_blocks"):
            self._block(w, pipe, rows, n, group)
        if self.blocks:
            values = self._values(w, pipe, self.blocks - 1)
            w.wait_group(Engine.WGMMA)
            pipe.consumer_mbar(values).arrive()
            w.read(mine(w, self.result), self.blocks - 1)
        store(w, rows, share(self.q[0], group, self.num_consumer), group=group, item=1)  # where the queries were

    def _block(self, w: Warp, pipe: ProducerConsumerPipeline, rows: Slot, n: int, group: int) -> None:
        """The scores of block n, the values of the block before, and the softmax between them."""
        self.turns.take(w, group)
        keys = _take(pipe)
        scores = mine(w, self.scores)
        w.mma(Engine.WGMMA, reads=[(rows, 0), (self.kv[keys], 2 * n)], writes=[(scores, n)], cycles=self.step_cycles)
        w.commit(Engine.WGMMA)
        values = self._values(w, pipe, n - 1) if n else -1
        if not (group == 1 and n + 1 == self.blocks):  # no group waits for the last turn
            self.turns.pass_on(w, group)
        w.wait_group(Engine.WGMMA, 1 if n else 0)
        pipe.consumer_mbar(keys).arrive()
        w.read(scores, n)
        w.work(self.softmax)
        if n:
            w.wait_group(Engine.WGMMA)
            pipe.consumer_mbar(values).arrive()

    def _values(self, w: Warp, pipe: ProducerConsumerPipeline, n: int) -> int:
        """Issue the product with the values of block n; their slot."""
        slot = _take(pipe)
        w.mma(
            Engine.WGMMA,
            reads=[(self.kv[slot], 2 * n + 1)],
            writes=[(mine(w, self.result), n)],
            cycles=self.step_cycles,
        )
        w.commit(Engine.WGMMA)
        return slot


def _take(pipe: ProducerConsumerPipeline) -> int:
    """Wait for the next slot of the ring and advance to the one after; it is released later, by its number."""
    pipe.wait_producer()
    slot = pipe.consumer_stage()
    pipe.consumer_step()
    return slot
