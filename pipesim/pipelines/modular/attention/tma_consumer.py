"""``TMAConsumerPipeline``: the MMA warp's side of K or V.

Upstream: ``nn/attention/gpu/nvidia/sm100/attention_utils.mojo``.
"""

from __future__ import annotations

from pipesim.lang.tiles import Slot, TileArray
from pipesim.pipelines.common.pipeline_struct import pipeline_struct
from pipesim.pipelines.common.register_value import MBarType, RegisterValue
from pipesim.pipelines.modular.attention.fa4 import DType
from pipesim.pipelines.modular.attention.kv_tile import KVConfig, KVTile
from pipesim.pipelines.modular.attention.staged import StagedPipeline
from pipesim.pipelines.modular.attention.tma_producer import staged_for


@pipeline_struct
class TMAConsumerPipeline(RegisterValue):
    """Waits for the slices of K, or for V, and frees them by ``tcgen05.commit``. It starts at phase 0.

    A slice that is not named is slice **0** in :meth:`wait` and :meth:`release`, so that a bare ``release`` of K in
    several slices frees one and does not step; the last one in :meth:`wait_k` and :meth:`release_k`.

    ``release`` commits in this CTA only. A pair of CTAs commits by multicast, ``mma_arrive_multicast(
    k.pipeline.consumer_mbar(q), 0b11)``, and steps ``k.pipeline.state`` itself.
    """

    def __init__(
        self,
        mbar: MBarType | StagedPipeline,
        smem: TileArray,
        *,
        dtype: DType,
        config: KVConfig,
        is_k: bool = True,
    ) -> None:
        super().__init__()
        self.dtype = dtype
        self.config = config
        self.is_k = is_k
        self._tile = KVTile(dtype, config, is_k)
        self._tile.require_fits(smem)
        self.pipeline = staged_for(mbar, self._tile)
        self.smem = smem

    @property
    def full_kv_bytes(self) -> int:
        """Bytes of a slot in this CTA."""
        return self._tile.full_bytes

    @property
    def staged_k_bytes(self) -> int:
        """Bytes of one slice of K in this CTA; without a meaning for V."""
        return self.config.k_rows_per_cta() * self.config.BK0 * self.dtype.nbytes

    @property
    def num_qk_stages_effective(self) -> int:
        """Slices of a slot: the config's for K, 1 for V."""
        return self._tile.num_qk_stages_effective

    def get(self) -> Slot:
        """The current slot, whole: an MMA of slice q reads ``.part(q * staged_k_bytes, staged_k_bytes)`` of it."""
        self._mine()
        return self.smem[self.pipeline.state.index()]

    def wait(self, *, qk_stage: int = 0) -> None:
        """Wait until a slice of the current slot is filled, slice 0 unless named. No step."""
        self._mine()
        self.pipeline.consumer_wait(qk_stage)

    def release(self, e: int, *, qk_stage: int = 0) -> None:
        """Free a slice, slice 0 unless named, when the MMAs so far are finished; step if it is the last."""
        self._mine()
        self.pipeline.consumer_release(e, qk_stage)

    # the same under the names of K and V

    def get_k(self) -> Slot:
        """:meth:`get`."""
        return self.get()

    def wait_k(self, *, qk_stage: int | None = None) -> None:
        """:meth:`wait`, for the last slice unless named."""
        self.wait(qk_stage=self._or_last(qk_stage))

    def release_k(self, e: int, *, qk_stage: int | None = None) -> None:
        """:meth:`release`, of the last slice unless named, and so with the step."""
        self.release(e, qk_stage=self._or_last(qk_stage))

    def get_v(self) -> Slot:
        """:meth:`get`."""
        return self.get()

    def wait_v(self) -> None:
        """:meth:`wait` for slice 0."""
        self.wait(qk_stage=0)

    def release_v(self, e: int) -> None:
        """:meth:`release` of slice 0."""
        self.release(e, qk_stage=0)

    def _or_last(self, qk_stage: int | None) -> int:
        return self.num_qk_stages_effective - 1 if qk_stage is None else qk_stage
