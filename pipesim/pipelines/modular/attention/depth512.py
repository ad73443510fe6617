"""``Depth512SM100Config``: the attention of heads of depth 256 and 512, on pairs of CTAs.

Upstream: ``nn/attention/gpu/nvidia/sm100/mha_depth512/config.mojo``. Two CTAs multiply together, and P lies in shared
memory. K arrives in slices of the depth and V in slices of the keys, and **each slice has a slot of its own** in one
ring that both share. At depth 512 the output is split in two halves, O_lo and O_hi.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from pipesim.errors import ConfigurationError, ParameterError
from pipesim.pipelines.modular.attention.fa4 import (
    B200_SMEM_BYTES,
    BF16,
    FP32_BYTES,
    MBAR_BYTES,
    TMEM_COLUMNS,
    WARP_GROUP,
    DType,
)
from pipesim.pipelines.modular.attention.swizzle import TensorMapSwizzle

_K_SLICE = 128  #: depth of a slice of K
_MOST_MBARS = 32  #: one warp initialises them, one a lane


@dataclass(frozen=True)
class Depth512SM100Config:
    """One configuration of the kernel. :meth:`for_b200` computes upstream's; a test may make a small one by hand."""

    dtype: DType
    qk_depth: int  #: of Q and K
    BN: int  #: keys in a tile
    num_kv_stages: int  #: slots of the ring, each of a slice of K or of V
    ov_depth: int = 0  #: of V and the output; 0: as ``qk_depth``
    swizzle_mode: TensorMapSwizzle = TensorMapSwizzle.SWIZZLE_128B  #: of one-byte elements always 64 bytes
    group: int = 1  #: query heads that share a head of K and V
    num_q_heads: int = 1

    cta_group: ClassVar[int] = 2
    num_threads: ClassVar[int] = 3 * WARP_GROUP  #: softmax, correction, and a group of MMA, load and two spare warps
    num_pv_stages: ClassVar[int] = 2  #: slices of the keys in which V arrives

    def __post_init__(self) -> None:
        object.__setattr__(self, "ov_depth", self.ov_depth or self.qk_depth)
        if self.dtype.nbytes == 1:
            object.__setattr__(self, "swizzle_mode", TensorMapSwizzle.SWIZZLE_64B)
        if min(self.num_kv_stages, self.group, self.num_q_heads) < 1 or self.BN < 2 or self.BN % 2:
            raise ParameterError(f"{self}", correction="every count must be at least 1, and BN even")
        if self.qk_depth < _K_SLICE or self.qk_depth % _K_SLICE or not 0 < self.ov_depth <= self.qk_depth:
            raise ParameterError(
                f"Q and K of depth {self.qk_depth}, V of depth {self.ov_depth}",
                cause=f"K arrives in slices of {_K_SLICE}",
                correction=f"use a multiple of {_K_SLICE}, and an ov_depth of no more",
            )
        if self.BK1 * self.v_cols_per_cta != self.BN // 2 * self.BK0:
            raise ParameterError(
                f"a slice of K of {self.BN // 2 * self.BK0} elements and one of V of {self.BK1 * self.v_cols_per_cta}",
                cause="both lie in the same slots",
                correction="use 256 or 512 for both depths",
            )

    # tiles

    @property
    def split_o(self) -> bool:
        """True if the output is two halves, O_lo and O_hi."""
        return self.ov_depth > 256

    @property
    def MMA_K(self) -> int:  # noqa: N802  # upstream's name
        """Elements of the depth that one MMA instruction takes."""
        return 16 if self.dtype.nbytes == 2 else 32

    @property
    def MMA_M(self) -> int:  # noqa: N802  # upstream's name
        """Rows of an MMA of both CTAs."""
        return 128 if self.split_o else 256

    @property
    def BM(self) -> int:  # noqa: N802  # upstream's name
        """Query rows of a CTA."""
        return self.MMA_M // self.cta_group

    @property
    def num_qk_stages(self) -> int:
        """Slices of the depth in which K arrives."""
        return self.qk_depth // _K_SLICE

    @property
    def BK0(self) -> int:  # noqa: N802  # upstream's name
        """Depth of one K slice."""
        return self.qk_depth // self.num_qk_stages

    @property
    def BK1(self) -> int:  # noqa: N802  # upstream's name
        """Keys of one V slice."""
        return self.BN // self.num_pv_stages

    @property
    def v_cols_per_cta(self) -> int:
        """Columns of a V slice in one CTA's memory: half of V's, or of each half of the output a half."""
        return self.ov_depth // (4 if self.split_o else 2)

    def k_rows_per_cta(self) -> int:
        """Keys of a K slice in one CTA's memory: half of them."""
        return self.BN // self.cta_group

    def rope_depth(self) -> int:
        """What Q and K are deeper than V."""
        return self.qk_depth - self.ov_depth

    @property
    def fuse_gqa(self) -> bool:
        """True if the query heads of a group lie in one tile."""
        return self.group > 1 and self.MMA_M % self.group == 0

    def BM_eff(self) -> int:  # noqa: N802  # upstream's name
        """Positions of the sequence in a CTA's query rows: fewer where the heads of a group share them."""
        return self.BM // self.group if self.fuse_gqa else self.BM

    @property
    def num_kv_heads(self) -> int:
        """Heads of K and V."""
        return self.num_q_heads // self.group

    # columns of tensor memory: an accumulator of MMA_M rows takes MMA_M / 256 of its width

    TMEM_O: ClassVar[int] = 0  #: first column of the output, or of O_lo

    @property
    def TMEM_O_hi(self) -> int:  # noqa: N802  # upstream's name
        """First column of O_hi; without a meaning where the output is not split."""
        return self.ov_depth // 4

    @property
    def TMEM_S_even(self) -> int:  # noqa: N802  # upstream's name
        """First column of the scores of even tiles."""
        return self.MMA_M * self.ov_depth // 256

    @property
    def TMEM_S_odd(self) -> int:  # noqa: N802  # upstream's name
        """First column of the scores of odd tiles."""
        return self.TMEM_S_even + self.MMA_M * self.BN // 256

    @property
    def tmem_used(self) -> int:
        """Columns in all."""
        return self.TMEM_S_even + 2 * (self.MMA_M * self.BN // 256)

    # bytes of shared memory

    @property
    def num_fixed_mbars(self) -> int:
        """Barriers beside those of the ring."""
        return 10 if self.split_o else 8

    @property
    def p_buf_bytes(self) -> int:
        """P, which the softmax writes for the second MMA."""
        return self.BM * self.BN * self.dtype.nbytes

    @property
    def kv_stage_bytes(self) -> int:
        """One slot of the ring in one CTA."""
        return self.k_rows_per_cta() * self.BK0 * self.dtype.nbytes

    @property
    def smem_used(self) -> int:
        """Bytes of a CTA's shared memory."""
        return self._fixed_bytes() + self.num_kv_stages * (self.kv_stage_bytes + 2 * MBAR_BYTES)

    def _fixed_bytes(self) -> int:
        """TMEM address, Q, P, a float for each row, and the barriers that are always there."""
        q = self.BM * self.qk_depth * self.dtype.nbytes
        return 4 + q + self.p_buf_bytes + self.BM * FP32_BYTES + self.num_fixed_mbars * MBAR_BYTES

    # upstream's choice

    def supported(self) -> bool:
        """True if upstream's kernel takes this configuration."""
        fits = self.tmem_used <= TMEM_COLUMNS and self.smem_used <= B200_SMEM_BYTES
        return fits and self.BN >= 32 and self.num_kv_stages >= max(2, self.num_qk_stages)

    @classmethod
    def for_b200(
        cls,
        depth: int,
        dtype: DType = BF16,
        *,
        ov_depth: int = 0,
        swizzle_mode: TensorMapSwizzle = TensorMapSwizzle.SWIZZLE_128B,
        page_size: int = 0,
        group: int = 1,
        num_q_heads: int = 1,
    ) -> Depth512SM100Config:
        """Upstream's choice for heads of depth 256 or 512: as many slots as fit in 227 KiB and 32 barriers.

        ConfigurationError for what upstream's kernel does not take.
        """
        if depth not in (256, 512) or ov_depth not in (0, depth):
            raise ConfigurationError(
                f"depth {depth}, ov_depth {ov_depth or depth}",
                cause="one slot holds a slice of K or of V, which are of one size at depth 256 and at depth 512 only",
                correction="use 256 or 512 for both; FA4Config is for less deep heads",
            )
        rows = 128 if depth > 256 else 256
        keys = min(256, (TMEM_COLUMNS * 256 // rows - depth) // 2)
        if page_size and page_size % keys and keys % page_size:
            keys = 1 << keys.bit_length() - 1
        made = cls(dtype, depth, keys, 1, depth, swizzle_mode, group, num_q_heads).with_most_stages()
        if not made.supported():
            raise ConfigurationError(
                f"heads of depth {depth} in elements of {dtype.nbytes} bytes leave room for {made.num_kv_stages} slots",
                cause=f"a tile of K alone has {made.num_qk_stages} slices",
                correction="use elements of 1 or 2 bytes",
            )
        return made

    def with_most_stages(self) -> Depth512SM100Config:
        """The same tiles in as many slots as fit in 227 KiB and in the barriers that one warp initialises."""
        fit = (B200_SMEM_BYTES - self._fixed_bytes()) // (self.kv_stage_bytes + 2 * MBAR_BYTES)
        return replace(self, num_kv_stages=max(1, min(fit, (_MOST_MBARS - self.num_fixed_mbars) // 2)))
