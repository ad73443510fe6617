"""``FA4Config``: tile sizes and stage counts of flash attention 4.

Upstream: ``nn/attention/gpu/nvidia/sm100/attention.mojo``. Of its struct this has what barriers and tiles
depend on, for heads whose Q, K and V have one depth (no MLA).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from pipesim.errors import ConfigurationError, ParameterError

B200_SMEM_BYTES = 227 * 1024  #: of the 228 KiB of an SM, what a CTA may use
TMEM_COLUMNS = 512
WARP_GROUP = 128
MBAR_BYTES = 8


@dataclass(frozen=True)
class DType:
    """An element type: its name and how many bytes one element has."""

    name: str
    nbytes: int


BF16 = DType("bfloat16", 2)
FP8 = DType("float8_e4m3fn", 1)

_SWIZZLE_ELEMENTS = 64  # 128 bytes of bf16, 64 bytes of fp8


@dataclass(frozen=True)
class FA4Config:
    """One configuration of the kernel. :meth:`for_b200` computes upstream's; a test may make a small one by hand."""

    dtype: DType
    depth: int  #: of a head
    BN: int  #: keys in a tile
    num_kv_stages: int
    num_qk_stages: int = 1  #: depth slices in which a K tile arrives
    num_pv_stages: int = 2  #: slices in which P is written
    use_fused_kv: bool = False  #: K and V tiles share one ring, in turn; else each has its own
    pair_cta: bool = False
    num_qo: int = 2  #: Q tiles of a CTA

    def __post_init__(self) -> None:
        counts = (self.depth, self.BN, self.num_kv_stages, self.num_qk_stages, self.num_pv_stages)
        if min(counts) < 1 or self.num_qo not in (1, 2):
            raise ParameterError(f"{self}", correction="every count must be at least 1, and num_qo 1 or 2")
        if self.use_fused_kv and self.num_qk_stages > 1:
            raise ParameterError(
                f"a fused ring with K in {self.num_qk_stages} slices",
                cause="the fused ring alternates K and V tiles, and V has one slice",
                correction="use num_qk_stages 1, or split rings",
            )
        if self.padded_depth % self.num_qk_stages:
            raise ParameterError(f"a depth of {self.padded_depth} does not divide into {self.num_qk_stages} slices")
        if self.pair_cta and (self.num_qo == 1 or self.BN % 2):
            raise ParameterError(
                f"a pair of CTAs with num_qo {self.num_qo} and BN {self.BN}",
                correction="a pair has two Q tiles and an even BN",
            )

    @property
    def padded_depth(self) -> int:
        """``depth``, rounded up to a swizzle atom (upstream's ``padded_qk_depth`` and ``padded_ov_depth``)."""
        return _padded(self.depth)

    @property
    def BK0(self) -> int:  # noqa: N802  # upstream's name
        """Depth of one K slice."""
        return self.padded_depth // self.num_qk_stages

    @property
    def BK1(self) -> int:  # noqa: N802  # upstream's name
        """Keys of a V tile: all of them."""
        return self.BN

    def cta_group(self) -> int:
        """CTAs that share an MMA."""
        return 2 if self.pair_cta else 1

    def k_rows_per_cta(self) -> int:
        """Keys of a K tile in one CTA's memory: half of them in a pair."""
        return self.BN // self.cta_group()

    def v_cols_per_cta(self) -> int:
        """Columns of a V tile in one CTA's memory: half of them in a pair."""
        return self.padded_depth // self.cta_group()

    @classmethod
    def for_b200(cls, depth: int, dtype: DType = BF16, *, pair_cta: bool = False, num_qo: int = 2) -> FA4Config:
        """Upstream's choice for heads of ``depth``, without paging: as many stages as fit in 227 KiB."""
        padded = _padded(depth)
        bn = min(256, (TMEM_COLUMNS // 2 - padded) // _mma_k(dtype) * _mma_k(dtype))
        if bn < 64:
            raise ConfigurationError(
                f"heads of depth {depth} leave {bn} keys a tile",
                cause="two S and two O tiles share 512 columns of tensor memory; upstream takes 64 keys or more",
                correction="use a depth of 64 to 192",
            )
        if depth < 64 or (pair_cta and not 64 < depth <= 128) or (pair_cta and num_qo == 1):
            raise ConfigurationError(
                f"depth {depth}, pair_cta {pair_cta}, num_qo {num_qo}",
                correction="use a depth from 64 on; a pair of CTAs takes 65 to 128 and two Q tiles",
            )
        kv_bytes = bn * padded * dtype.nbytes // (2 if pair_cta else 1) + 2 * MBAR_BYTES
        slices = gcd(padded // _SWIZZLE_ELEMENTS, padded // _mma_k(dtype))
        used = _bytes_without_kv(padded, dtype, slices, num_qo)
        tiles = (B200_SMEM_BYTES - used) // kv_bytes
        if tiles % 2:  # an odd number of tiles does not split in two rings of equal length
            return cls(dtype, depth, bn, tiles, 1, use_fused_kv=True, pair_cta=pair_cta, num_qo=num_qo)
        more_mbars = (slices - 1) * (tiles // 2) * 2 * MBAR_BYTES
        if used + tiles * kv_bytes + more_mbars >= B200_SMEM_BYTES:
            slices = 1
        return cls(dtype, depth, bn, tiles // 2, slices, pair_cta=pair_cta, num_qo=num_qo)


def _padded(depth: int) -> int:
    return -(-depth // _SWIZZLE_ELEMENTS) * _SWIZZLE_ELEMENTS


def _mma_k(dtype: DType) -> int:
    return 16 if dtype.nbytes == 2 else 32


def _bytes_without_kv(padded: int, dtype: DType, slices: int, num_qo: int) -> int:
    """TMEM address, barriers that do not depend on the ring, Q, and a float for each softmax thread."""
    mbars = 8 + 2 * 2 + (slices if num_qo == 2 else 0)
    rows = WARP_GROUP * num_qo  # 256 for two tiles; a pair of CTAs has 256 each, too
    return 4 + mbars * MBAR_BYTES + rows * padded * dtype.nbytes + 2 * WARP_GROUP * 4
