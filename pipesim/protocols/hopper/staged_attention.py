"""Hopper's attention with K in slices and V whole, each through a staged ring of its own, as Blackwell's kernel has it.

The twin is ``hwkernels/twins/hopper/attention_sm90.cu``. Upstream has these rings in ``nn/attention/gpu/nvidia/sm100/
attention_utils.mojo``. Where ``tcgen05.commit`` frees a slice there, here the warps wait for their products, and one
lane of each arrives.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine
from pipesim.pipelines import TMAProducerPipeline
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
    store_rows,
    taken,
)
from pipesim.protocols.hopper.softmax_order import Softmax, softmax_order
from pipesim.protocols.warp_group import F32, GROUP, ROWS, mma_cycles, share

_PRODUCER_REGISTERS, _CONSUMER_REGISTERS = 40, 232


@dataclass(frozen=True)
class StagedAttention:
    """The kernel's memory and sizes, and its roles. Items: 2n is K of block n, 2n + 1 its V; of Q, 0."""

    config: FA4Config
    q: TileArray
    k: TileArray
    v: TileArray
    scores: TileArray
    result: TileArray
    q_full: BarrierStorage
    k_storage: BarrierStorage
    v_storage: BarrierStorage
    blocks: int
    num_consumer: int
    turns: Turns
    softmax: int

    @classmethod
    def of(cls, p: Protocol, config: FA4Config, *, blocks: int, turns: Turns, softmax: int) -> StagedAttention:
        """Its memory and barriers in ``p``."""
        num_consumer = turns.num_consumer
        slots, q_bytes = config.num_kv_stages, num_consumer * ROWS * config.depth * config.dtype.nbytes
        k, v = (KVTile(config.dtype, config, is_k) for is_k in (True, False))
        return cls(
            config,
            q=p.smem("q", 1, q_bytes),
            k=p.smem("k", slots, k.full_bytes),
            v=p.smem("v", slots, v.full_bytes),
            scores=p.registers("scores", num_consumer, ROWS * config.BN * F32),
            result=p.registers("result", num_consumer, ROWS * config.depth * F32),
            q_full=p.mbarriers("q_full", 1),
            k_storage=p.mbarriers("k_pipe", StagedPipeline.num_mbars(slots, config.num_qk_stages)),
            v_storage=p.mbarriers("v_pipe", StagedPipeline.num_mbars(slots)),
            blocks=blocks,
            num_consumer=num_consumer,
            turns=turns,
            softmax=softmax,
        )

    def init(self) -> None:
        """Initialise every barrier: one arrival fills a slice, one of each consumer warp frees it."""
        self.q_full[0].init(1)
        self._keys().init()
        self._values().init()

    def _keys(self) -> KVPipelineGeneric:
        config, arrivals = self.config, GROUP * self.num_consumer
        return KVPipelineGeneric(self.k_storage, config.num_kv_stages, config.num_qk_stages, 1, arrivals, name="k")

    def _values(self) -> KVPipelineGeneric:
        return KVPipelineGeneric(
            self.v_storage, self.config.num_kv_stages, 1, 1, GROUP * self.num_consumer, name="v"
        )  # fmt: skip

    def producer(self, w: Warp) -> None:
        """A warp of the producer group; one lane of the first loads Q, K0, K1, V0, K2, V1, …"""
        w.setmaxnreg(_PRODUCER_REGISTERS)
        if w.index:
            return
        w.compute("attention/begin_loads")
        config = self.config
        k = TMAProducerPipeline(self._keys(), self.k, dtype=config.dtype, config=config)
        v = TMAProducerPipeline(self._values(), self.v, dtype=config.dtype, config=config, is_k=False)
        with w.elect_one():
            self.q_full[0].expect_bytes(self.q.nbytes)
            w.tma_load(self.q[0], self.q_full[0], 0)
            load(w)
            for n in w.loop(self.blocks, "kv_blocks"):
                _load(w, k, 2 * n)
                if n:
                    _load(w, v, 2 * n - 1)
            if self.blocks:
                _load(w, v, 2 * self.blocks - 1)

    def consumer(self, w: Warp) -> None:
        """A warp of a consumer group, which has 64 queries."""
        w.setmaxnreg(_CONSUMER_REGISTERS)
        group = w.index // GROUP
        if group == 1 and self.blocks:
            self.turns.pass_on(w, group)  # group 0 goes first
        self.q_full[0].wait(0)
        taken(w)
        k, v = self._keys(), self._values()
        for n in w.loop(self.blocks, "kv_blocks"):
            self._block(w, k, v, n)
        if self.blocks:
            self._multiply_values(w, v, self.blocks - 1)
            w.wait_group(Engine.WGMMA)
            give_back(w, v.consumer_mbar())
        else:
            w.write(mine(w, self.result), 0)  # sums of nothing
        store_rows(w, mine(w, self.result), max(1, self.blocks) - 1, self.config.depth)

    def _block(self, w: Warp, k: KVPipelineGeneric, v: KVPipelineGeneric, n: int) -> None:
        """The scores of block n, the values of the block before, and the softmax while these are multiplied."""
        group = w.index // GROUP
        self.turns.take(w, group)
        self._multiply_keys(w, k, n)
        if n:
            self._multiply_values(w, v, n - 1)
        if not (group == 1 and n + 1 == self.blocks):  # nobody waits for the last turn
            self.turns.pass_on(w, group)
        w.wait_group(Engine.WGMMA, 1 if n else 0)
        order = softmax_order(self.config.BN, self.config.depth, turns=self.turns.taken, fused=False)
        softmax = Softmax(mine(w, self.scores), n, self.config.BN, self.config.depth)
        softmax.until(w, order.keys)
        for s in range(k.num_qk_stages):
            give_back(w, k.consumer_mbar(s))
        k.state.step()
        softmax.all_at_once(w, self.softmax)
        softmax.until(w, order.wait)
        if n:
            w.wait_group(Engine.WGMMA)
            softmax.until(w, order.values)
            give_back(w, v.consumer_mbar())
            v.state.step()
        softmax.end(w)

    def _multiply_keys(self, w: Warp, k: KVPipelineGeneric, n: int) -> None:
        """Issue the scores of block n, slice by slice."""
        queries, keys = share(self.q[0], w.index, GROUP * self.num_consumer), self.k[k.state.index()]
        slices = k.num_qk_stages
        cycles = mma_cycles(ROWS, self.config.BN, self.config.BK0) // GROUP
        for s in range(slices):
            k.consumer_wait(s)
            taken(w)
            w.mma(
                Engine.WGMMA,
                reads=[(share(queries, s, slices), 0), (share(keys, s, slices), 2 * n)],
                writes=[(mine(w, self.scores), n)],
                cycles=cycles,
            )
            multiply_scores(w, self.config.BN, self.config.BK0)
        w.commit(Engine.WGMMA)

    def _multiply_values(self, w: Warp, v: KVPipelineGeneric, n: int) -> None:
        """Issue the product with the values of block n."""
        v.consumer_wait()
        taken(w)
        w.mma(
            Engine.WGMMA,
            reads=[(self.v[v.state.index()], 2 * n + 1)],
            writes=[(mine(w, self.result), n)],
            cycles=mma_cycles(ROWS, self.config.depth, self.config.BN) // GROUP,
        )
        multiply_weights(w, self.config.BN, self.config.depth)
        w.commit(Engine.WGMMA)


def _load(w: Warp, pipe: TMAProducerPipeline, item: int) -> None:
    """A tile, slice by slice as they become free."""
    for s in range(pipe.num_qk_stages_effective):
        pipe.acquire(qk_stage=s)
        to = pipe.get_tile(qk_stage=s)
        to.mbar.expect_bytes(pipe.tile_bytes)
        w.tma_load(to.smem, to.mbar, item)
        load(w)
    pipe.commit_step()
