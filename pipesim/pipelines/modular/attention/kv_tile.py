"""What ``TMAProducerPipeline`` and ``TMAConsumerPipeline`` both compute from their parameters at compile time.

Upstream repeats these constants in both structs (``nn/attention/gpu/nvidia/sm100/attention_utils.mojo``). They are a
value of their own here because a protocol needs them before there is a pipeline: ``p.smem("K", kv, tile.slot_bytes)``.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.errors import ProtocolError
from pipesim.lang.author_line import author_line
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.lang.tiles import Slot, TileArray
from pipesim.pipelines.modular.attention.depth512 import Depth512SM100Config
from pipesim.pipelines.modular.attention.fa4 import DType, FA4Config
from pipesim.pipelines.modular.attention.swizzle import TensorMapSwizzle

KVConfig = FA4Config | Depth512SM100Config  #: what says how tiles of K and V are cut


@dataclass(frozen=True)
class TileLayout:
    """The shape of what one TMA load fills: ``mn`` rows of K or columns of V, by ``k``. Swizzling is not modelled."""

    mn: int
    k: int
    k_major: bool
    swizzle_mode: TensorMapSwizzle = TensorMapSwizzle.SWIZZLE_128B

    def size(self) -> int:
        """Elements."""
        return self.mn * self.k


@dataclass(frozen=True)
class TMADestination:
    """Upstream's ``TMADestination``: where a TMA load writes and the barrier on which its bytes are counted."""

    mbar: SharedMemBarrier
    smem: Slot


@dataclass(frozen=True)
class KVTile:
    """The parameters ``[dtype, config, is_k]`` and the constants that follow from them.

    At depth 256 and 512 every slice of K and of V has a slot of its own, so that a tile here is a slice.
    """

    dtype: DType
    config: KVConfig
    is_k: bool = True

    @property
    def tile_layout(self) -> TileLayout:
        """One slice of K, depth fastest, or of V, columns fastest; in a pair of CTAs this CTA's half."""
        config = self.config
        if self.is_k:
            return TileLayout(config.k_rows_per_cta(), config.BK0, k_major=True, swizzle_mode=config.swizzle_mode)
        columns = config.v_cols_per_cta() if isinstance(config, FA4Config) else config.v_cols_per_cta
        return TileLayout(columns, config.BK1, k_major=False, swizzle_mode=config.swizzle_mode)

    @property
    def num_qk_stages_effective(self) -> int:
        """Slices of a slot: the config's for K, 1 for V and where each slice has its own slot."""
        return self.config.num_qk_stages if self.is_k and isinstance(self.config, FA4Config) else 1

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
        """Bytes of one slice, in one CTA, all of it of ``dtype``."""
        return self.elements * self.dtype.nbytes

    @property
    def nope_bytes(self) -> int:
        """Bytes of K without its rope part, or of V, in one CTA."""
        return self.elements_full * self.dtype.nbytes - self._rope_elements * self.dtype.nbytes

    @property
    def rope_bytes(self) -> int:
        """Bytes of K's rope part, in one CTA; 0 without one."""
        rope = self.config.rope_dtype if isinstance(self.config, FA4Config) else None
        return 0 if rope is None else self._rope_elements * rope.nbytes

    @property
    def scale_bytes(self) -> int:
        """Bytes of the scales of K's rows, in one CTA; 0 without any."""
        scale = self.config.scale_dtype if isinstance(self.config, FA4Config) and self.is_k else None
        return 0 if scale is None else self.config.k_rows_per_cta() * scale.nbytes

    @property
    def full_bytes(self) -> int:
        """Bytes of a whole tile, in one CTA: all slices, the rope part in its own type (upstream's full_kv_bytes)."""
        return self.nope_bytes + self.rope_bytes

    @property
    def slot_bytes(self) -> int:
        """Bytes of a slot of the ring. A fused ring's hold K without its rope part, which has buffers beside it."""
        fused = isinstance(self.config, FA4Config) and self.config.use_fused_kv
        return self.nope_bytes if fused else self.full_bytes

    @property
    def _rope_elements(self) -> int:
        """Of K in one CTA."""
        if not self.is_k or not isinstance(self.config, FA4Config):
            return 0
        return self.config.k_rows_per_cta() * self.config.rope_depth()

    def require_fits(self, smem: TileArray) -> None:
        """ProtocolError unless ``smem`` has a slot of ``slot_bytes`` for each stage of the ring."""
        if smem.nbytes != self.slot_bytes or smem.slots < self.config.num_kv_stages:
            raise ProtocolError(
                f"{smem.name} has {smem.slots} slots of {smem.nbytes} bytes; "
                f"{'K' if self.is_k else 'V'} needs {self.config.num_kv_stages} of {self.slot_bytes}",
                place=author_line(),
                correction=f"protocol.smem({smem.name!r}, {self.config.num_kv_stages}, {self.slot_bytes})",
            )

    def require_one_load(self) -> None:
        """ProtocolError unless one load fills a slice, as ``get_tile`` says: not with a rope part of its own."""
        if self.tile_bytes * self.num_qk_stages_effective != self.slot_bytes:
            raise ProtocolError(
                f"K of {self.nope_bytes} bytes and its rope part of {self.rope_bytes} are not one tile",
                place=author_line(),
                cause="the rope part has another element size, or lies beside a fused ring",
                correction="use a StagedPipeline, and expect nope_bytes, rope_bytes and scale_bytes of KVTile",
            )
