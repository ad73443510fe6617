"""Hopper's attention with K in slices and V whole, each through a staged ring of its own, as Blackwell's kernel has it.

The twin is ``hwkernels/twins/hopper/attention_sm90.cu``. Upstream has these rings in ``nn/attention/gpu/nvidia/sm100/
attention_utils.mojo``. Where ``tcgen05.commit`` frees a slice there, here the warps wait for their products, and one
lane of each arrives. The kernel with one ring for both is a variant: ``attention_sm90_fused``.
"""

from dataclasses import dataclass
from typing import Self

from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage, SharedMemBarrier
from pipesim.lang.tiles import Slot, TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine
from pipesim.pipelines import TMAProducerPipeline
from pipesim.pipelines.modular.attention.fa4 import FA4Config
from pipesim.pipelines.modular.attention.staged import KVPipelineGeneric, StagedPipeline
from pipesim.pipelines.modular.attention.tma_pipelines import KVTile
from pipesim.protocols.hopper.softmax_order import Softmax, softmax_order
from pipesim.protocols.warp_group import F32, GROUP, GROUP_THREADS, MMA_K, ROWS, mma_cycles, share


@dataclass(frozen=True)
class Turns:
    """The ping-pong of FlashAttention-3: one group multiplies while the other does its softmax. Two groups or none."""

    num_consumer: int
    taken: bool

    @classmethod
    def for_consumers(cls, num_consumer: int, pingpong: int) -> "Turns":
        """There are turns only where two groups are asked to take them."""
        return cls(num_consumer, bool(pingpong) and num_consumer == 2)

    def take(self, w: Warp, group: int) -> None:
        """All of a group wait until the other has passed its turn on."""
        if self.taken:
            w.bar_sync(self._barrier(group), 2 * GROUP_THREADS)

    def pass_on(self, w: Warp, group: int) -> None:
        """All of a group let the other continue."""
        if self.taken:
            w.bar_arrive(self._barrier(1 - group), 2 * GROUP_THREADS)

    def _barrier(self, group: int) -> int:
        """The named barrier at which a group waits; those of the groups' stores come before."""
        return 1 + self.num_consumer + group


def take_tile(w: Warp) -> None:
    """The work of a wait for a tile that is there: its instructions, which others of the quarter slow. Those after it
    come after its second record in a launch that makes any.
    """
    w.compute("attention/take", alu=25, unrecorded_alu=35)


def give_back(w: Warp, empty: SharedMemBarrier) -> None:
    """The products that read it are finished: one lane arrives for its warp."""
    with w.elect_one():
        empty.arrive()
        w.compute("attention/give_back")


def mine(w: Warp, accumulators: TileArray) -> Slot:
    """The calling warp's part of its group's accumulators."""
    return share(accumulators[w.index // GROUP], w.index % GROUP, GROUP)


def multiply_scores(w: Warp, block_n: int, depth: int) -> None:
    """The work of a warp's part of the scores: its operands are in shared memory."""
    products = depth // MMA_K
    w.compute("attention/scores", mma=ROWS * block_n * depth // GROUP, products=products, alu=2 * products)


def multiply_weights(w: Warp, block_n: int, depth: int) -> None:
    """The work of a warp's part of the product with the values: the weights are in its registers."""
    products = block_n // MMA_K
    w.compute("attention/values", mma_registers=ROWS * block_n * depth // GROUP, products=products, alu=5 * products)


def load(w: Warp) -> None:
    """The work of a copy: no other CTA has loaded the tile just before."""
    w.compute("attention/load", fresh_copies=1)


def store_rows(w: Warp, sums: Slot, item: int, depth: int) -> None:
    """A warp's 16 rows go from its registers to global memory: a store of four bytes a lane touches eight of them."""
    w.read(sums, item)
    stores = ROWS // GROUP * depth // 64
    w.compute("attention/store", fma=depth // 2, global_lines=8 * stores)


_PRODUCER_REGISTERS, _CONSUMER_REGISTERS = 40, 232


@dataclass(frozen=True)
class StagedAttention:
    """The kernel's memory and sizes, and its roles. Items: 2n is K of block n, 2n + 1 its V; of Q, 0.

    With ``config.use_fused_kv`` K and V are the same tiles, and have the same ring.
    """

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
    turns: Turns
    softmax: int

    @classmethod
    def for_protocol(cls, p: Protocol, config: FA4Config, *, blocks: int, turns: Turns, softmax: int) -> Self:
        """Its memory and barriers in ``p``."""
        groups, slots, fused = turns.num_consumer, config.num_kv_stages, config.use_fused_kv
        q = p.smem("q", 1, groups * ROWS * config.depth * config.dtype.nbytes)
        k = p.smem("kv" if fused else "k", slots, KVTile(config.dtype, config).full_bytes)
        v = k if fused else p.smem("v", slots, KVTile(config.dtype, config, is_k=False).full_bytes)
        scores = p.registers("scores", groups, ROWS * config.BN * F32)
        result = p.registers("result", groups, ROWS * config.depth * F32)
        q_full = p.mbarriers("q_full", 1)
        k_pipe = p.mbarriers("kv_pipe" if fused else "k_pipe", StagedPipeline.num_mbars(slots, config.num_qk_stages))
        v_pipe = k_pipe if fused else p.mbarriers("v_pipe", StagedPipeline.num_mbars(slots))
        return cls(config, q, k, v, scores, result, q_full, k_pipe, v_pipe, blocks, turns, softmax)

    def roles(self, p: Protocol) -> None:
        """Give ``p`` the kernel's roles, warp by warp."""
        p.init(self.init)
        p.role("producer", warps=GROUP)(self.producer)
        p.role("consumer", warps=GROUP * self.turns.num_consumer)(self.consumer)

    def init(self) -> None:
        """Initialise every barrier: one arrival fills a slice, one of each consumer warp frees it."""
        self.q_full[0].init(1)
        for ring in self.rings()[: 1 if self.config.use_fused_kv else 2]:
            ring.init()

    def rings(self) -> tuple[KVPipelineGeneric, KVPipelineGeneric]:
        """A role's own place in the ring of K and in that of V, which may be one."""
        slots, slices, arrivals = self.config.num_kv_stages, self.config.num_qk_stages, GROUP * self.turns.num_consumer
        if self.config.use_fused_kv:
            kv = KVPipelineGeneric(self.k_storage, slots, 1, 1, arrivals, name="kv")
            return kv, kv
        k = KVPipelineGeneric(self.k_storage, slots, slices, 1, arrivals, name="k")
        return k, KVPipelineGeneric(self.v_storage, slots, 1, 1, arrivals, name="v")

    # the producer

    def producer(self, w: Warp) -> None:
        """A warp of the producer group; one lane of the first loads Q, then K and V of every block."""
        w.setmaxnreg(_PRODUCER_REGISTERS)
        if w.index:
            return
        w.compute("attention/begin_loads")
        with w.elect_one():
            self.q_full[0].expect_bytes(self.q.nbytes)
            w.tma_load(self.q[0], self.q_full[0], 0)
            load(w)
            self.load_blocks(w)

    def load_blocks(self, w: Warp) -> None:
        """K0, K1, V0, K2, V1, …"""
        keys, values = self.rings()
        config = self.config
        k = TMAProducerPipeline(keys, self.k, dtype=config.dtype, config=config)
        v = TMAProducerPipeline(values, self.v, dtype=config.dtype, config=config, is_k=False)
        for n in w.loop(self.blocks, "kv_blocks"):
            _load(w, k, 2 * n)
            if n:
                _load(w, v, 2 * n - 1)
        if self.blocks:
            _load(w, v, 2 * self.blocks - 1)

    # the consumers

    def consumer(self, w: Warp) -> None:
        """A warp of a consumer group, which has 64 queries."""
        w.setmaxnreg(_CONSUMER_REGISTERS)
        group = w.index // GROUP
        if group == 1 and self.blocks:
            self.turns.pass_on(w, group)  # group 0 goes first
        self.q_full[0].wait(0)
        take_tile(w)
        k, v = self.rings()
        for n in w.loop(self.blocks, "kv_blocks"):
            self._block(w, k, v, n)
        if self.blocks:
            values = next_slot(w, v)
            self.multiply_values(w, values, self.blocks - 1)
            w.wait_group(Engine.WGMMA)
            give_back(w, v.consumer_mbar(0, values))
        else:
            w.write(mine(w, self.result), 0)  # sums of nothing
        store_rows(w, mine(w, self.result), max(1, self.blocks) - 1, self.config.depth)

    def _block(self, w: Warp, k: KVPipelineGeneric, v: KVPipelineGeneric, n: int) -> None:
        """The scores of block n, the values of the block before, and the softmax while these are multiplied."""
        group = w.index // GROUP
        self.turns.take(w, group)
        keys, values = self.issue(w, k, v, n)
        if not (group == 1 and n + 1 == self.blocks):  # no group waits for the last turn
            self.turns.pass_on(w, group)
        w.wait_group(Engine.WGMMA, 1 if n else 0)
        order = softmax_order(self.config.BN, self.config.depth, turns=self.turns.taken, fused=self.config.use_fused_kv)
        softmax = Softmax(mine(w, self.scores), n, self.config.BN, self.config.depth)
        softmax.until(w, order.keys)
        for s in range(k.num_qk_stages):
            give_back(w, k.consumer_mbar(s, keys))
        softmax.all_at_once(w, self.softmax)
        softmax.until(w, order.wait)
        if n:
            w.wait_group(Engine.WGMMA)
            softmax.until(w, order.values)
            give_back(w, v.consumer_mbar(0, values))
        softmax.end(w)

    def issue(self, w: Warp, k: KVPipelineGeneric, v: KVPipelineGeneric, n: int) -> tuple[int, int]:
        """The products with K of block n, and with V of the block before; the slots of the two."""
        keys, values = self.multiply_keys(w, k, n), -1
        if n:
            values = next_slot(w, v)
            self.multiply_values(w, values, n - 1)
        return keys, values

    def multiply_keys(self, w: Warp, k: KVPipelineGeneric, n: int) -> int:
        """Issue the scores of block n, slice by slice; the slot of K."""
        slot, slices = k.state.index(), k.num_qk_stages
        queries, keys = share(self.q[0], w.index, GROUP * self.turns.num_consumer), self.k[slot]
        cycles = mma_cycles(ROWS, self.config.BN, self.config.BK0) // GROUP
        for s in range(slices):
            k.consumer_wait(s)
            take_tile(w)
            w.mma(
                Engine.WGMMA,
                reads=[(share(queries, s, slices), 0), (share(keys, s, slices), 2 * n)],
                writes=[(mine(w, self.scores), n)],
                cycles=cycles,
            )
            multiply_scores(w, self.config.BN, self.config.BK0)
        w.commit(Engine.WGMMA)
        k.state.step()
        return slot

    def multiply_values(self, w: Warp, slot: int, n: int) -> None:
        """Issue the product with the values of block n."""
        w.mma(
            Engine.WGMMA,
            reads=[(self.v[slot], 2 * n + 1)],
            writes=[(mine(w, self.result), n)],
            cycles=mma_cycles(ROWS, self.config.depth, self.config.BN) // GROUP,
        )
        multiply_weights(w, self.config.BN, self.config.depth)
        w.commit(Engine.WGMMA)


def next_slot(w: Warp, ring: KVPipelineGeneric) -> int:
    """Wait for the next tile of a ring and step past it: its slot, which is given back by its number."""
    ring.consumer_wait()
    take_tile(w)
    slot = ring.state.index()
    ring.state.step()
    return slot


def _load(w: Warp, pipe: TMAProducerPipeline, item: int) -> None:
    """A tile, slice by slice as they become free."""
    for s in range(pipe.num_qk_stages_effective):
        pipe.acquire(qk_stage=s)
        to = pipe.get_tile(qk_stage=s)
        to.mbar.expect_bytes(pipe.tile_bytes)
        w.tma_load(to.smem, to.mbar, item)
        load(w)
    pipe.commit_step()
