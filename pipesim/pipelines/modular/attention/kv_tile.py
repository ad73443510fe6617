"""What ``TMAProducerPipeline`` and ``TMAConsumerPipeline`` both compute from their parameters at compile time.

Upstream repeats these constants in both structs (``nn/attention/gpu/nvidia/sm100/attention_utils.mojo``). They are a
value of their own here because a protocol needs them before there is a pipeline: ``p.smem("K", kv, tile.full_bytes)``.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.errors import ProtocolError
from pipesim.lang.builder import author_line
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.lang.warp import Slot, TileArray
from pipesim.pipelines.modular.attention.fa4 import DType, FA4Config


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


@dataclass(frozen=True)
class KVTile:
    """The parameters ``[dtype, config, is_k]`` and the constants that follow from them."""

    dtype: DType
    config: FA4Config
    is_k: bool = True

    @property
    def tile_layout(self) -> TileLayout:
        """One slice of K, depth fastest, or the whole of V, columns fastest; in a pair of CTAs this CTA's half."""
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
        """Bytes of a slot, in one CTA."""
        return self.elements_full * self.dtype.nbytes

    def require_fits(self, smem: TileArray) -> None:
        """ProtocolError unless ``smem`` has a slot of ``full_bytes`` for each stage of the ring."""
        if smem.nbytes != self.full_bytes or smem.slots < self.config.num_kv_stages:
            raise ProtocolError(
                f"{smem.name} has {smem.slots} slots of {smem.nbytes} bytes; "
                f"{'K' if self.is_k else 'V'} needs {self.config.num_kv_stages} of {self.full_bytes}",
                place=author_line(),
                correction=f"protocol.smem({smem.name!r}, {self.config.num_kv_stages}, {self.full_bytes})",
            )
