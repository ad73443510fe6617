"""The rings of K and V of flash attention 4, split or fused: one object for each side, with counters of its own.

Upstream: ``nn/attention/gpu/nvidia/sm100/load_warp.mojo`` and ``mma_warp.mojo``. Split, K arrives in slices of the
depth and V whole, each in a ring of its own; fused, one ring carries K and V tiles in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.lang.tiles import Slot, TileArray
from pipesim.pipelines.common.pipeline_state import make_producer_start_state
from pipesim.pipelines.modular.attention.fa4 import FA4Config
from pipesim.pipelines.modular.attention.fa4_mbars import FA4MiscMBars
from pipesim.pipelines.modular.attention.staged import StagedPipeline
from pipesim.pipelines.modular.attention.tma_pipelines import TMAConsumerPipeline, TMADestination, TMAProducerPipeline


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
