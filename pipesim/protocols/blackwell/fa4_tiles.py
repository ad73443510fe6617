"""The memory of flash attention 4, and the items that it holds. P lies over the first half of the S that it is made of.

Upstream: ``nn/attention/gpu/nvidia/sm100/smem.mojo`` and the ``TMEM_`` columns of ``attention.mojo``.

The rings of K and V of flash attention 4, split or fused: one object for each side, with counters of its own.

Upstream: ``nn/attention/gpu/nvidia/sm100/load_warp.mojo`` and ``mma_warp.mojo``. Split, K arrives in slices of the
depth and V whole, each in a ring of its own; fused, one ring carries K and V tiles in turn.

The MMA warp of flash attention 4: scores and values of two softmax groups, one after the other on one engine.

Upstream: ``nn/attention/gpu/nvidia/sm100/mma_warp.mojo``. With two Q tiles a step is one block of keys, whose K and V
serve both groups; with one Q tile it is two blocks, an even one for group 0 and an odd one for group 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pipesim.lang.intrinsics import elect, elect_mma_arrive, mma_arrive_multicast
from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.lang.tiles import Slot, TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine
from pipesim.pipelines.common.register_value import make_producer_start_state, mbars_at
from pipesim.pipelines.modular.attention.fa4 import FA4Config
from pipesim.pipelines.modular.attention.fa4_mbars import FA4MiscMBars
from pipesim.pipelines.modular.attention.staged import StagedPipeline
from pipesim.pipelines.modular.attention.tma_pipelines import (
    KVTile,
    TMAConsumerPipeline,
    TMADestination,
    TMAProducerPipeline,
)
from pipesim.protocols.blackwell.sm100 import BF16, EPILOGUE_WARPS, FP32, ROWS, mma_cycles, rows


@dataclass(frozen=True)
class KVTiles:
    """The memory of both rings; fused, ``k`` and ``v`` are the same tiles."""

    config: FA4Config
    k: TileArray
    v: TileArray

    def slice_of_k(self, slot: int, qk_stage: int) -> Slot:
        """One slice of the depth of a K tile."""
        size = self.k.nbytes // self.config.num_qk_stages
        return self.k[slot].part(qk_stage * size, size)


class KVProducer:
    """The load warp's side: of split rings two pipelines, of the fused ring one that both share."""

    def __init__(self, mbars: FA4MiscMBars, tiles: KVTiles) -> None:
        config = tiles.config
        self._tiles = tiles
        self._split: tuple[TMAProducerPipeline, TMAProducerPipeline] | None = None
        if config.use_fused_kv:
            self._fused = StagedPipeline(mbars.get_k_mbars(), config.num_kv_stages)
            self._fused.state = make_producer_start_state(config.num_kv_stages)
        else:
            k, v = mbars.get_k_mbars(), mbars.get_v_mbars()
            self._split = (
                TMAProducerPipeline(k, tiles.k, dtype=config.dtype, config=config),
                TMAProducerPipeline(v, tiles.v, dtype=config.dtype, config=config, is_k=False),
            )

    def k(self, *, acquire: bool) -> Iterator[TMADestination]:
        """The slices of the next K tile, each free; then step. ``acquire``: False for the first tile of all."""
        if self._split is None:
            yield from self._next(self._tiles.k, acquire=acquire)
            return
        k = self._split[0]
        for qk_stage in range(k.num_qk_stages_effective):
            if acquire:
                k.acquire_k(qk_stage=qk_stage)
            yield TMADestination(k.pipeline.producer_mbar(qk_stage), k.get_k_smem(qk_stage=qk_stage))
        k.commit_step()

    def v(self) -> Iterator[TMADestination]:
        """The next V tile, free; then step."""
        if self._split is None:
            yield from self._next(self._tiles.v, acquire=True)
            return
        v = self._split[1]
        v.acquire_v()
        yield TMADestination(v.pipeline.producer_mbar(), v.get_v_smem())
        v.commit_step()

    def _next(self, tiles: TileArray, *, acquire: bool) -> Iterator[TMADestination]:
        """The next tile of the fused ring; then step."""
        if acquire:
            self._fused.producer_acquire()
        yield TMADestination(self._fused.producer_mbar(), tiles[self._fused.state.index()])
        self._fused.state.step()


class KVConsumer:
    """The MMA warp's side. A V tile may be held across the K tiles that follow it: its slot is released by number."""

    def __init__(self, mbars: FA4MiscMBars, tiles: KVTiles) -> None:
        self._tiles = tiles
        config = tiles.config
        if config.use_fused_kv:
            self.k = self._v = StagedPipeline(mbars.get_k_mbars(), config.num_kv_stages)
        else:
            k, v = mbars.get_k_mbars(), mbars.get_v_mbars()
            self.k = TMAConsumerPipeline(k, tiles.k, dtype=config.dtype, config=config).pipeline
            self._v = TMAConsumerPipeline(v, tiles.v, dtype=config.dtype, config=config, is_k=False).pipeline

    def slice_of_k(self, qk_stage: int) -> Slot:
        """A slice of the current K tile."""
        return self._tiles.slice_of_k(self.k.state.index(), qk_stage)

    def next_v(self) -> int:
        """Wait for the next V tile and step past it; the number of its slot."""
        self._v.consumer_wait()
        slot = self._v.state.index()
        self._v.state.step()
        return slot

    def v(self, slot: int) -> Slot:
        """A V tile that is held."""
        return self._tiles.v[slot]

    def v_mbar(self, slot: int) -> SharedMemBarrier:
        """What says that the slot of a V tile is free."""
        return self._v.consumer_mbar(0, slot)


LANES = 32  #: of tensor memory that a warp of a warp group reads and writes


@dataclass(frozen=True)
class FA4Tiles:
    """Tiles of one CTA. Group 0 and 1 of the softmax have one S, one O and one row of factors each."""

    config: FA4Config
    q: TileArray  #: the result is also written here, when the last scores are made
    kv: KVTiles
    factors: TileArray  #: by which O is corrected, one for each row
    s: TileArray
    o: TileArray

    @classmethod
    def for_protocol(cls, p: Protocol, config: FA4Config) -> "FA4Tiles":
        """All of it, in ``p``."""
        k_bytes, v_bytes = (KVTile(config.dtype, config, is_k).full_bytes for is_k in (True, False))
        q = p.smem("q", config.num_qo, ROWS * config.padded_depth * config.dtype.nbytes)
        if config.use_fused_kv:
            k = v = p.smem("kv", config.num_kv_stages, k_bytes)
        else:
            k, v = p.smem("k", config.num_kv_stages, k_bytes), p.smem("v", config.num_kv_stages, v_bytes)
        return cls(
            config,
            q,
            KVTiles(config, k, v),
            p.smem("factors", 2, ROWS * FP32),
            p.tmem("s", 2, ROWS * config.BN * FP32),
            p.tmem("o", 2, ROWS * config.padded_depth * FP32),
        )

    def slice_of_q(self, qo: int, qk_stage: int) -> Slot:
        """One slice of the depth of a Q tile; the whole tile holds item ``qo``."""
        size = self.q.nbytes // self.config.num_qk_stages
        return self.q[qo].part(qk_stage * size, size)

    def p(self, wg: int, warp: int, pv_stage: int) -> Slot:
        """A warp's lanes of one slice of P."""
        size = LANES * self.config.BN * self.config.dtype.nbytes // self.config.num_pv_stages
        return rows(self.s[wg], warp).part(pv_stage * size, size)

    # items: what is read must be what was meant, not only be there

    @staticmethod
    def item_of_k(block: int) -> int:
        """K of a block."""
        return 2 * block

    @staticmethod
    def item_of_v(block: int) -> int:
        """V of a block."""
        return 2 * block + 1

    @staticmethod
    def item_of_s(step: int) -> int:
        """The scores of a step of a group."""
        return 2 * step

    @staticmethod
    def item_of_p(step: int) -> int:
        """What the softmax makes of them."""
        return 2 * step + 1

    @staticmethod
    def item_of_o(step: int, *, corrected: bool = False) -> int:
        """The sum after a step; corrected, it is ready for the next."""
        return 2 * step + 1 + corrected


class MmaWarp:
    """What the MMA warp holds in registers. In a pair of CTAs only the leader's multiplies, for both."""

    def __init__(self, w: Warp, mbars: FA4MiscMBars, tiles: FA4Tiles) -> None:
        self._w = w
        self._mbars = mbars
        self._tiles = tiles
        self._config = tiles.config
        self._kv = KVConsumer(mbars, tiles.kv)
        self._s = mbars.producer_s0(), mbars.producer_s1()
        self._o = mbars.producer_o0(), mbars.producer_o1()
        self._ctas = range(tiles.config.cta_group())

    def multiply(self, steps: int, of_group_1: int) -> None:
        """All steps; group 1 has part in the first ``of_group_1`` of them: all but perhaps the last.

        The product with V of group 1 comes a step late, after the next scores of group 0: so the tensor cores have
        work while each softmax has its turn. V is held as long.
        """
        two = self._config.num_qo == 2
        held = -1
        for step in self._w.loop(steps, "kv_blocks"):
            self._scores(0, step, wait=True, release=not two)
            if step:
                self._values(1, step - 1, held)
                self._commit(self._kv.v_mbar(held))
            if step < of_group_1:
                self._scores(1, step, wait=not two, release=True)
            held = self._kv.next_v()
            self._values(0, step, held)
            if not two:
                self._commit(self._kv.v_mbar(held))
                held = self._kv.next_v() if step < of_group_1 else -1
        if held >= 0:
            self._values(1, steps - 1, held)
            self._commit(self._kv.v_mbar(held))

    def _scores(self, wg: int, step: int, *, wait: bool, release: bool) -> None:
        """S = Q K, slice by slice of the depth."""
        config, kv, tiles = self._config, self._kv, self._tiles
        block = step if config.num_qo == 2 else 2 * step + wg
        qo = wg % config.num_qo
        for j in range(config.num_qk_stages):
            if wait:
                kv.k.consumer_wait(j)
            if qo and not step:
                mbars_at(self._mbars.q1_wait_mbar(), config.num_qk_stages, "Q1Sync")[j].wait(0)
            operands = [(tiles.slice_of_q(qo, j), qo), (kv.slice_of_k(j), tiles.item_of_k(block))]
            self._mma(operands, (tiles.s[wg], tiles.item_of_s(step)), config.BN, config.BK0)
            if release:
                self._commit(kv.k.consumer_mbar(j))
        if release:
            kv.k.state.step()
        self._commit(self._s[wg].producer_mbar())

    def _values(self, wg: int, step: int, slot: int) -> None:
        """O += P V, slice by slice of P as the softmax writes it; the first slice also waits for O's correction."""
        config, tiles = self._config, self._tiles
        block = step if config.num_qo == 2 else 2 * step + wg
        keys = config.BN // config.num_pv_stages
        size = self._kv.v(slot).nbytes // config.num_pv_stages
        for j in range(config.num_pv_stages):
            self._s[wg].consumer_mbar(j).wait(step & 1)
            operands = [(tiles.p(wg, warp, j), tiles.item_of_p(step)) for warp in range(EPILOGUE_WARPS)]
            operands.append((self._kv.v(slot).part(j * size, size), tiles.item_of_v(block)))
            if step and not j:  # the other slices add to what this one writes, in the engine's order
                operands.append((tiles.o[wg], tiles.item_of_o(step - 1, corrected=True)))
            self._mma(operands, (tiles.o[wg], tiles.item_of_o(step)), config.padded_depth, keys)
        self._commit(self._o[wg].producer_mbar())

    def _mma(self, operands: list[tuple[Slot, int]], result: tuple[Slot, int], n: int, k: int) -> None:
        reads = [(slot.mapa(cta), item) for cta in self._ctas for slot, item in operands]
        writes = [(result[0].mapa(cta), result[1]) for cta in self._ctas]
        cycles = mma_cycles(ROWS, n, k) * self._config.dtype.nbytes // BF16
        with self._w.elect_one():
            self._w.mma(Engine.TCGEN05, reads=reads, writes=writes, cycles=cycles)

    def _commit(self, mbar: SharedMemBarrier) -> None:
        """One arrival when the MMAs so far are finished; in a pair, at both CTAs."""
        if self._config.pair_cta:
            with self._w.elect_one():
                mma_arrive_multicast(mbar, 0b11)
        else:
            elect_mma_arrive(mbar, elect())
