"""The memory of flash attention 4, and the items that it holds. P lies over the first half of the S that it is made of.

Upstream: ``nn/attention/gpu/nvidia/sm100/smem.mojo`` and the ``TMEM_`` columns of ``attention.mojo``.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.lang.protocol import Protocol
from pipesim.lang.tiles import Slot, TileArray
from pipesim.pipelines.modular.attention.fa4 import FA4Config
from pipesim.pipelines.modular.attention.tma_pipelines import KVTile
from pipesim.protocols.blackwell.fa4_kv import KVTiles
from pipesim.protocols.blackwell.sm100 import FP32, ROWS, rows

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
    def for_protocol(cls, p: Protocol, config: FA4Config) -> FA4Tiles:
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
