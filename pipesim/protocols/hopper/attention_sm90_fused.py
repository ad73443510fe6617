"""Hopper's attention with K and V in one ring, as flash attention 4 has them where the number of slots is odd.

The twin is ``hwkernels/twins/hopper/attention_sm90_fused.cu``. Upstream has this ring in ``nn/attention/gpu/nvidia/``,
``sm100/load_warp.mojo`` and ``sm100/mma_warp.mojo``. One ``TMAProducerPipeline`` loads K0, V0, K1, V1, …; it begins at
phase 1, so that nobody primes the ring. A consumer has one place in the ring, too: it takes V of block n - 1 before K
of block n, and gives K back first; the slot of V is given back later, by its number. Where ``tcgen05.commit`` frees a
slot there, here the warps wait for their products, and one lane of each arrives.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.errors import ParameterError
from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine
from pipesim.pipelines import TMAProducerPipeline
from pipesim.pipelines.modular.attention.fa4 import BF16 as BFLOAT16
from pipesim.pipelines.modular.attention.fa4 import FA4Config
from pipesim.pipelines.modular.attention.staged import KVPipelineGeneric, StagedPipeline
from pipesim.pipelines.modular.attention.tma_pipelines import KVTile
from pipesim.protocols.hopper.consumer_groups import (
    Turns,
    give_back,
    load,
    mine,
    multiply_scores,
    multiply_weights,
    require_attention,
    store_rows,
    taken,
)
from pipesim.protocols.hopper.softmax_order import Softmax, softmax_order
from pipesim.protocols.warp_group import F32, GROUP, ROWS, mma_cycles, share

_PRODUCER_REGISTERS, _CONSUMER_REGISTERS = 40, 232


def attention_sm90_fused(
    kv_blocks: int = 8,
    stages: int = 5,
    depth: int = 128,
    block_n: int = 128,
    num_consumer: int = 2,
    pingpong: int = 1,
    softmax: int = 900,
) -> Protocol:
    """Hopper's attention with one ring: it carries K and V in turn, and V is held across the K that follows.

    ``kv_blocks`` blocks of ``block_n`` keys and values of ``depth`` elements; ``stages``: slots of the ring, 2 or more;
    ``softmax``: cycles per block and warp.
    """
    if stages == 1:
        raise ParameterError(
            "stages = 1",
            cause="a consumer holds V of a block while it waits for the next K: with one slot, it waits for itself",
            correction="use 2 to 32",
        )
    require_attention(kv_blocks, stages, depth, block_n, num_consumer, pingpong, softmax, least_stages=2)
    p = Protocol("attention_sm90_fused")
    attention = FusedAttention.of(
        p,
        FA4Config(BFLOAT16, depth, block_n, stages, use_fused_kv=True),
        blocks=kv_blocks,
        turns=Turns.of(num_consumer, pingpong),
        softmax=softmax,
    )
    p.init(attention.init)
    p.role("producer", warps=GROUP)(attention.producer)
    p.role("consumer", warps=GROUP * num_consumer)(attention.consumer)
    return p


@dataclass(frozen=True)
class FusedAttention:
    """The kernel's memory and sizes, and its roles. Items: 2n is K of block n, 2n + 1 its V; of Q, 0."""

    config: FA4Config
    q: TileArray
    kv: TileArray
    scores: TileArray
    result: TileArray
    q_full: BarrierStorage
    storage: BarrierStorage
    blocks: int
    turns: Turns
    softmax: int

    @classmethod
    def of(cls, p: Protocol, config: FA4Config, *, blocks: int, turns: Turns, softmax: int) -> FusedAttention:
        """Its memory and barriers in ``p``."""
        groups, slots = turns.num_consumer, config.num_kv_stages
        return cls(
            config,
            q=p.smem("q", 1, groups * ROWS * config.depth * config.dtype.nbytes),
            kv=p.smem("kv", slots, KVTile(config.dtype, config).full_bytes),
            scores=p.registers("scores", groups, ROWS * config.BN * F32),
            result=p.registers("result", groups, ROWS * config.depth * F32),
            q_full=p.mbarriers("q_full", 1),
            storage=p.mbarriers("kv_pipe", StagedPipeline.num_mbars(slots)),
            blocks=blocks,
            turns=turns,
            softmax=softmax,
        )

    def init(self) -> None:
        """Initialise every barrier: one arrival fills a slot, one of each consumer warp frees it."""
        self.q_full[0].init(1)
        self._ring().init()

    def _ring(self) -> KVPipelineGeneric:
        arrivals = GROUP * self.turns.num_consumer
        return KVPipelineGeneric(self.storage, self.config.num_kv_stages, 1, 1, arrivals, name="kv")

    def producer(self, w: Warp) -> None:
        """A warp of the producer group; one lane of the first loads Q, K0, V0, K1, V1, …"""
        w.setmaxnreg(_PRODUCER_REGISTERS)
        if w.index:
            return
        w.compute("attention/begin_loads")
        kv = TMAProducerPipeline(self._ring(), self.kv, dtype=self.config.dtype, config=self.config)
        with w.elect_one():
            self.q_full[0].expect_bytes(self.q.nbytes)
            w.tma_load(self.q[0], self.q_full[0], 0)
            load(w)
            for n in w.loop(self.blocks, "kv_blocks"):
                kv.acquire_k(qk_stage=0)
                keys = kv.get_k(1, qk_stage=0)
                w.tma_load(keys.smem, keys.mbar, 2 * n)
                load(w)
                kv.commit_step()
                kv.acquire_v()
                values = kv.get_v(1)
                w.tma_load(values.smem, values.mbar, 2 * n + 1)
                load(w)
                kv.commit_step()

    def consumer(self, w: Warp) -> None:
        """A warp of a consumer group, which has 64 queries."""
        w.setmaxnreg(_CONSUMER_REGISTERS)
        group = w.index // GROUP
        if group == 1 and self.blocks:
            self.turns.pass_on(w, group)  # group 0 goes first
        self.q_full[0].wait(0)
        taken(w)
        kv = self._ring()
        for n in w.loop(self.blocks, "kv_blocks"):
            self._block(w, kv, n)
        if self.blocks:
            held = _next(w, kv)
            self._multiply_values(w, held, self.blocks - 1)
            w.wait_group(Engine.WGMMA)
            give_back(w, kv.consumer_mbar(0, held))
        else:
            w.write(mine(w, self.result), 0)  # sums of nothing
        store_rows(w, mine(w, self.result), max(1, self.blocks) - 1, self.config.depth)

    def _block(self, w: Warp, kv: KVPipelineGeneric, n: int) -> None:
        """The scores of block n, the values of the block before, and the softmax while these are multiplied."""
        group = w.index // GROUP
        self.turns.take(w, group)
        held = _next(w, kv) if n else -1
        keys = _next(w, kv)
        self._multiply_keys(w, keys, n)
        if n:
            self._multiply_values(w, held, n - 1)
        if not (group == 1 and n + 1 == self.blocks):  # nobody waits for the last turn
            self.turns.pass_on(w, group)
        w.wait_group(Engine.WGMMA, 1 if n else 0)
        order = softmax_order(self.config.BN, self.config.depth, turns=self.turns.taken, fused=True)
        softmax = Softmax(mine(w, self.scores), n, self.config.BN, self.config.depth)
        softmax.until(w, order.keys)
        give_back(w, kv.consumer_mbar(0, keys))
        softmax.all_at_once(w, self.softmax)
        softmax.until(w, order.wait)
        if n:
            w.wait_group(Engine.WGMMA)
            softmax.until(w, order.values)
            give_back(w, kv.consumer_mbar(0, held))
        softmax.end(w)

    def _multiply_keys(self, w: Warp, slot: int, n: int) -> None:
        """Issue the scores of block n."""
        w.mma(
            Engine.WGMMA,
            reads=[(share(self.q[0], w.index, GROUP * self.turns.num_consumer), 0), (self.kv[slot], 2 * n)],
            writes=[(mine(w, self.scores), n)],
            cycles=mma_cycles(ROWS, self.config.BN, self.config.depth) // GROUP,
        )
        multiply_scores(w, self.config.BN, self.config.depth)
        w.commit(Engine.WGMMA)

    def _multiply_values(self, w: Warp, slot: int, n: int) -> None:
        """Issue the product with the values of block n."""
        w.mma(
            Engine.WGMMA,
            reads=[(self.kv[slot], 2 * n + 1)],
            writes=[(mine(w, self.result), n)],
            cycles=mma_cycles(ROWS, self.config.depth, self.config.BN) // GROUP,
        )
        multiply_weights(w, self.config.BN, self.config.depth)
        w.commit(Engine.WGMMA)


def _next(w: Warp, kv: KVPipelineGeneric) -> int:
    """Wait for the next tile of the ring and step past it: its slot, which is given back by its number."""
    kv.consumer_wait()
    taken(w)
    slot = kv.state.index()
    kv.state.step()
    return slot
