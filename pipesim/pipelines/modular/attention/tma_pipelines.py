"""``TMAProducerPipeline`` and ``TMAConsumerPipeline``: the load warp's and the MMA warp's side of K or V.

Upstream: ``nn/attention/gpu/nvidia/sm100/attention_utils.mojo``, which repeats the constants of a tile in both structs.
They are a value of their own here, :class:`KVTile`, because a protocol needs them before there is a pipeline:
``p.smem("K", kv, tile.full_bytes)``.
"""

from dataclasses import dataclass

from pipesim.lang.author import author_error
from pipesim.lang.intrinsics import predicated
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.lang.tiles import Slot, TileArray
from pipesim.pipelines.common.register_value import MBarType, RegisterValue, pipeline_struct, require_within
from pipesim.pipelines.modular.attention.fa4 import DType, FA4Config
from pipesim.pipelines.modular.attention.staged import StagedPipeline


@dataclass(frozen=True)
class TileLayout:
    """The shape of what one TMA load fills: ``mn`` rows of K or columns of V, by ``k``. Swizzling is not modelled."""

    mn: int
    k: int
    k_major: bool

    def size(self) -> int:
        """Elements."""
        return self.mn * self.k


@dataclass(frozen=True)
class TMADestination:
    """Upstream's ``TMADestination``: where a TMA load writes and the barrier on which its bytes are counted."""

    mbar: SharedMemBarrier
    smem: Slot


class _TileConstants:
    """The constants that follow from the parameters ``[dtype, config, is_k]``."""

    dtype: DType
    config: FA4Config
    is_k: bool

    @property
    def tile_layout(self) -> TileLayout:
        """One slice of K, depth fastest, or of V, columns fastest; in a pair of CTAs this CTA's half."""
        if self.is_k:
            return TileLayout(self.config.k_rows_per_cta(), self.config.BK0, k_major=True)
        return TileLayout(self.config.v_cols_per_cta(), self.config.BK1, k_major=False)

    @property
    def num_qk_stages_effective(self) -> int:
        """Slices of a slot: the config's for K, 1 for V."""
        return self.config.num_qk_stages if self.is_k else 1

    @property
    def elements(self) -> int:
        """Elements of one slice."""
        return self.tile_layout.size()

    @property
    def elements_full(self) -> int:
        """Elements of a slot: all slices."""
        return self.elements * self.num_qk_stages_effective

    @property
    def tile_bytes(self) -> int:
        """Bytes of one slice, in one CTA."""
        return self.elements * self.dtype.nbytes

    @property
    def full_bytes(self) -> int:
        """Bytes of a slot of the ring, in one CTA: all slices (upstream's full_kv_bytes)."""
        return self.elements_full * self.dtype.nbytes


@dataclass(frozen=True)
class KVTile(_TileConstants):
    """The parameters ``[dtype, config, is_k]`` and the constants that follow from them."""

    dtype: DType
    config: FA4Config
    is_k: bool = True

    def ring(self, mbar: MBarType | StagedPipeline) -> StagedPipeline:
        """The ring of these tiles over these barriers, or a copy of the ring that was given."""
        slots, slices = self.config.num_kv_stages, self.num_qk_stages_effective
        if not isinstance(mbar, StagedPipeline):
            return StagedPipeline(mbar, slots, slices, name="K" if self.is_k else "V")
        if (mbar.num_kv_stages, mbar.num_qk_stages) != (slots, slices):
            raise author_error(
                f"a StagedPipeline of {mbar.num_kv_stages} slots in {mbar.num_qk_stages} slices; "
                f"{'K' if self.is_k else 'V'} of this configuration has {slots} in {slices}",
                correction=f"StagedPipeline(mbar, {slots}, {slices})",
            )
        return mbar.copy()


class _TMAPipeline(_TileConstants, RegisterValue):
    """Either side of K or V: the ring, and the memory of its tiles, one slot of ``KVTile.full_bytes`` for each."""

    def __init__(
        self,
        mbar: MBarType | StagedPipeline,
        smem: TileArray,
        *,
        dtype: DType,
        config: FA4Config,
        is_k: bool = True,
    ) -> None:
        super().__init__()
        self.dtype = dtype
        self.config = config
        self.is_k = is_k
        if smem.nbytes != self.full_bytes or smem.slots < config.num_kv_stages:
            raise author_error(
                f"{smem.name} has {smem.slots} slots of {smem.nbytes} bytes; "
                f"{'K' if is_k else 'V'} needs {config.num_kv_stages} of {self.full_bytes}",
                correction=f"protocol.smem({smem.name!r}, {config.num_kv_stages}, {self.full_bytes})",
            )
        self.pipeline = KVTile(dtype, config, is_k).ring(mbar)
        self.smem = smem


@pipeline_struct
class TMAProducerPipeline(_TMAPipeline):
    """Loads K in slices (``is_k``) or V whole. It waits, and names barriers and memory; the copy is ``w.tma_load``.

    ``smem`` has one slot for each tile, of all its slices. Both of upstream's constructors are this one: over barriers,
    or over a ``StagedPipeline``, which is copied. Both set the phase to 1, and nothing else of the state.

    A slice that is not named is slice **0** here, where the ``StagedPipeline`` inside takes the last one. Names with
    ``k`` have no default: there the slice must be named.
    """

    SMemType = TileArray  #: of the field ``smem``; where upstream adds to the pointer, a ``Slot`` is returned
    PairType = TMADestination
    KPairType = PairType

    def __init__(
        self,
        mbar: MBarType | StagedPipeline,
        smem: TileArray,
        *,
        dtype: DType,
        config: FA4Config,
        is_k: bool = True,
    ) -> None:
        super().__init__(mbar, smem, dtype=dtype, config=config, is_k=is_k)
        self.pipeline.state._phase = 1  # noqa: SLF001  # as upstream does it

    # constants: as of KVTile, and

    @property
    def bytes(self) -> int:
        """Another name of ``tile_bytes``: one slice, **not** the whole tile."""
        return self.tile_bytes

    # one slice

    def get_smem(self, *, qk_stage: int = 0) -> Slot:
        """Where a slice of the current slot lies. Of V there is only slice 0."""
        self._mine()
        chosen = require_within("slice", qk_stage, self.num_qk_stages_effective)
        return self.smem[self.pipeline.state.index()].part(chosen * self.tile_bytes, self.tile_bytes)

    def get_tile(self, e: int | None = None, *, qk_stage: int = 0) -> TMADestination:
        """The barrier and the memory of a slice. With ``e``, the lanes of that mask also expect its bytes, and arrive.

        Upstream's two overloads: without ``e`` it signals nothing, and so with ``e`` 0. The lanes that expect are as
        many as ``e`` has: ``elect()`` is one.
        """
        mbar = self.pipeline.producer_mbar(qk_stage)
        with predicated(0 if e is None else e) as any_lane:
            if any_lane:
                mbar.expect_bytes(self.tile_bytes)
        return self.PairType(mbar, self.get_smem(qk_stage=qk_stage))

    def acquire(self, *, qk_stage: int = 0) -> None:
        """Wait until a slice of the current slot is free: **this slice only**, and slice 0 unless named."""
        self._mine()
        self.pipeline.producer_acquire(qk_stage)

    def commit_step(self) -> None:
        """Step to the next slot. It commits nothing: the bytes of the TMA load complete the barrier."""
        self._mine()
        self.pipeline.state.step()

    # the same under the names of K and V

    def get_k_smem(self, *, qk_stage: int) -> Slot:
        """:meth:`get_smem`."""
        return self.get_smem(qk_stage=qk_stage)

    def get_k(self, e: int | None = None, *, qk_stage: int) -> TMADestination:
        """:meth:`get_tile`, with or without ``e``."""
        return self.get_tile(e, qk_stage=qk_stage)

    def acquire_k(self, *, qk_stage: int) -> None:
        """:meth:`acquire`."""
        self.acquire(qk_stage=qk_stage)

    def get_v_smem(self) -> Slot:
        """:meth:`get_smem` of slice 0."""
        return self.get_smem(qk_stage=0)

    def get_v(self, e: int) -> TMADestination:
        """:meth:`get_tile` of slice 0, only with ``e``."""
        return self.get_tile(e, qk_stage=0)

    def acquire_v(self) -> None:
        """:meth:`acquire` of slice 0."""
        self.acquire(qk_stage=0)


@pipeline_struct
class TMAConsumerPipeline(_TMAPipeline):
    """The MMA warp's side of K or V: it starts at phase 0, waits for slices by ``pipeline.consumer_wait``, and frees
    them by a commit to ``pipeline.consumer_mbar``.
    """
