"""``FA4Config``: tile sizes and stage counts of flash attention 4.

Upstream: ``nn/attention/gpu/nvidia/sm100/attention.mojo``. Heads of depth 256 and 512 have another kernel, whose
configuration is ``Depth512SM100Config``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd
from typing import ClassVar

from pipesim.errors import ConfigurationError, ParameterError
from pipesim.pipelines.modular.attention.swizzle import TensorMapSwizzle

B200_SMEM_BYTES = 227 * 1024  #: of the 228 KiB of an SM, what a CTA may use
TMEM_COLUMNS = 512
WARP_GROUP = 128
MBAR_BYTES = 8
FP32_BYTES = 4


@dataclass(frozen=True)
class DType:
    """An element type: its name and how many bytes one element has."""

    name: str
    nbytes: int


BF16 = DType("bfloat16", 2)
FP8 = DType("float8_e4m3fn", 1)
FP32 = DType("float32", FP32_BYTES)


@dataclass(frozen=True)
class FA4Config:
    """One configuration of the kernel. :meth:`for_b200` computes upstream's; a test may make a small one by hand.

    MLA's heads have a rope part: Q and K are ``depth`` deep, of which the last ``depth - ov_depth`` are the rope, of
    ``rope_dtype``; V and the output are ``ov_depth`` deep. With ``scale_dtype`` each row of Q and of K has a scale.
    """

    dtype: DType
    depth: int  #: of Q and K (upstream's ``qk_depth``)
    BN: int  #: keys in a tile
    num_kv_stages: int
    num_qk_stages: int = 1  #: depth slices in which a K tile arrives
    num_pv_stages: int = 2  #: slices in which P is written
    use_fused_kv: bool = False  #: K and V tiles share one ring, in turn; else each has its own
    pair_cta: bool = False
    num_qo: int = 2  #: Q tiles of a CTA
    ov_depth: int = 0  #: of V and the output; 0: as ``depth``
    rope_dtype: DType | None = None  #: of the rope part of Q and K, where they have one
    scale_dtype: DType | None = None  #: of the scale of each row of Q and K, where there are any
    swizzle_mode: TensorMapSwizzle = TensorMapSwizzle.SWIZZLE_128B  #: of one-byte elements always 64 bytes
    is_mla: bool = False
    group: int = 1  #: query heads that share a head of K and V
    num_q_heads: int = 1
    page_size: int = 0  #: keys of a page of the cache, 0: not paged

    num_threads: ClassVar[int] = 512  #: two groups of softmax, one of correction, one of all others

    def __post_init__(self) -> None:
        object.__setattr__(self, "ov_depth", self.ov_depth or self.depth)
        if self.dtype.nbytes == 1:
            object.__setattr__(self, "swizzle_mode", TensorMapSwizzle.SWIZZLE_64B)
        counts = (self.depth, self.BN, self.num_kv_stages, self.num_qk_stages, self.num_pv_stages)
        if min(*counts, self.group, self.num_q_heads) < 1 or self.num_qo not in (1, 2):
            raise ParameterError(f"{self}", correction="every count must be at least 1, and num_qo 1 or 2")
        if self.num_qk_stages > 1 and (self.use_fused_kv or self.is_mla):
            fused = self.use_fused_kv
            raise ParameterError(
                f"{'a fused ring' if fused else 'MLA'} with K in {self.num_qk_stages} slices",
                cause="the fused ring alternates K and V tiles, and V has one slice" if fused else "",
                correction="use num_qk_stages 1, or split rings" if fused else "use num_qk_stages 1",
            )
        if self.padded_depth % self.num_qk_stages:
            raise ParameterError(f"a depth of {self.padded_depth} does not divide into {self.num_qk_stages} slices")
        if self.pair_cta and (self.num_qo == 1 or self.BN % 2):
            raise ParameterError(
                f"a pair of CTAs with num_qo {self.num_qo} and BN {self.BN}",
                correction="a pair has two Q tiles and an even BN",
            )
        self._require_rope()

    def _require_rope(self) -> None:
        if self.rope_depth() < 0 or (self.rope_depth() > 0) != (self.rope_dtype is not None):
            raise ParameterError(
                f"Q and K of depth {self.padded_qk_depth}, V of depth {self.padded_ov_depth}, a rope part of "
                f"{self.rope_dtype.name if self.rope_dtype else 'no type'}",
                cause="what Q and K are deeper than V is the rope part, and it has a type of its own",
                correction="give rope_dtype where ov_depth is below depth, and nowhere else",
            )

    # depths

    @property
    def qk_depth(self) -> int:
        """``depth``, by upstream's name."""
        return self.depth

    @property
    def padded_qk_depth(self) -> int:
        """``qk_depth``, rounded up to a swizzle atom."""
        return self._padded(self.depth)

    @property
    def padded_ov_depth(self) -> int:
        """``ov_depth``, rounded up to a swizzle atom."""
        return self._padded(self.ov_depth)

    @property
    def padded_depth(self) -> int:
        """``padded_qk_depth``; of heads without a rope part ``padded_ov_depth`` as well."""
        return self.padded_qk_depth

    def rope_depth(self) -> int:
        """Depth of the rope part of Q and K: what they are deeper than V, both padded."""
        return self.padded_qk_depth - self.padded_ov_depth

    def _padded(self, depth: int) -> int:
        atom = self.swizzle_mode.bytes() // self.dtype.nbytes
        return -(-depth // atom) * atom

    # tiles

    @property
    def MMA_K(self) -> int:  # noqa: N802  # upstream's name
        """Elements of the depth that one MMA instruction takes."""
        return 16 if self.dtype.nbytes == 2 else 32

    @property
    def MMA_M(self) -> int:  # noqa: N802  # upstream's name
        """Rows of an MMA: 128, of a pair of CTAs 256."""
        return WARP_GROUP * self.cta_group()

    @property
    def BM(self) -> int:  # noqa: N802  # upstream's name
        """Query rows of a CTA: two tiles of 128, or one."""
        return 2 * WARP_GROUP if self.num_qo == 2 else self.MMA_M

    @property
    def fuse_gqa(self) -> bool:
        """True if the query heads of a group lie in one tile, which no MLA kernel does."""
        return self.group > 1 and self.MMA_M % self.group == 0 and not self.is_mla

    def BM_eff(self) -> int:  # noqa: N802  # upstream's name
        """Positions of the sequence in a CTA's query rows: fewer where the heads of a group share them."""
        return self.BM // self.group if self.fuse_gqa else self.BM

    def PairBM_eff(self) -> int:  # noqa: N802  # upstream's name
        """Positions of the sequence that both CTAs of a pair cover."""
        return self.BM_eff() * self.cta_group()

    @property
    def num_kv_heads(self) -> int:
        """Heads of K and V."""
        return self.num_q_heads // self.group

    @property
    def BK0(self) -> int:  # noqa: N802  # upstream's name
        """Depth of one K slice."""
        return self.padded_qk_depth // self.num_qk_stages

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
        return self.padded_ov_depth // self.cta_group()

    # columns of tensor memory

    TMEM_S0: ClassVar[int] = 0  #: first column of the scores of group 0; P lies over S, and C, the factors, after P

    @property
    def TMEM_S1(self) -> int:  # noqa: N802  # upstream's name
        """First column of the scores of group 1."""
        return self.BN

    @property
    def TMEM_C0(self) -> int:  # noqa: N802  # upstream's name
        """First column after P of group 0."""
        return self.BN // 2

    @property
    def TMEM_C1(self) -> int:  # noqa: N802  # upstream's name
        """First column after P of group 1."""
        return self.BN + self.BN // 2

    @property
    def TMEM_O0(self) -> int:  # noqa: N802  # upstream's name
        """First column of the output of group 0."""
        return 2 * self.BN

    @property
    def TMEM_O1(self) -> int:  # noqa: N802  # upstream's name
        """First column of the output of group 1."""
        return 2 * self.BN + self.padded_ov_depth

    @property
    def tmem_used(self) -> int:
        """Columns in all."""
        return 2 * self.BN + 2 * self.padded_ov_depth

    # bytes of shared memory

    def q_nope_bytes(self) -> int:
        """Q but for its rope part."""
        return self.BM * self.padded_ov_depth * self.dtype.nbytes

    def q_rope_bytes(self) -> int:
        """The rope part of Q."""
        return self.BM * self.rope_depth() * _bytes_of(self.rope_dtype)

    def num_rope_buffers(self) -> int:
        """Buffers of K's rope part beside a fused ring, at most half of whose tiles are K; split rings hold it in K."""
        return -(-self.num_kv_stages // 2) if self.use_fused_kv and self.rope_depth() else 0

    def num_k_scale_bufs(self) -> int:
        """Buffers of the scales of a K tile: one for each K that may be under way."""
        if self.scale_dtype is None:
            return 0
        return -(-self.num_kv_stages // 2) if self.use_fused_kv else self.num_kv_stages

    @property
    def smem_used(self) -> int:
        """Bytes of a CTA's shared memory, as upstream reserves them: Q1Sync for every slice that K might arrive in."""
        tiles = self.num_kv_stages if self.use_fused_kv else 2 * self.num_kv_stages
        more_mbars = (self.num_qk_stages - 1) * self.num_kv_stages * 2 * MBAR_BYTES
        return self._fixed_bytes() + self._ring_bytes(tiles) + more_mbars

    def _fixed_bytes(self) -> int:
        """TMEM address, barriers that do not depend on the ring, Q and its scales, a float for each softmax thread."""
        slices = max(self.num_qk_stages, self._most_qk_stages())
        mbars = 8 + 2 * self.num_pv_stages + (slices if self.num_qo == 2 else 0)
        q = self.q_nope_bytes() + self.q_rope_bytes() + self.BM * _bytes_of(self.scale_dtype)
        return 4 + mbars * MBAR_BYTES + q + 2 * WARP_GROUP * FP32_BYTES

    def _ring_bytes(self, tiles: int) -> int:
        """Tiles of K without its rope part and of V, with their barriers, and what every other one adds."""
        return tiles * self._tile_bytes() + -(-tiles // 2) * self._k_bytes()

    def _tile_bytes(self) -> int:
        elements = self.BN * self.padded_ov_depth // self.cta_group()
        return elements * self.dtype.nbytes + 2 * MBAR_BYTES

    def _k_bytes(self) -> int:
        """The rope part and the scales of a K tile."""
        return self.k_rows_per_cta() * (self.rope_depth() * _bytes_of(self.rope_dtype) + _bytes_of(self.scale_dtype))

    def _most_qk_stages(self) -> int:
        """Slices in which K may arrive: each whole atoms of the swizzle and whole MMA instructions."""
        if self.is_mla:
            return 1
        atom = self.swizzle_mode.bytes() // self.dtype.nbytes
        return gcd(self.padded_qk_depth // atom, self.padded_qk_depth // self.MMA_K)

    # upstream's choice

    def supported(self) -> bool:
        """True if upstream's kernel takes this configuration."""
        paged = 0 < self.page_size < self.BN and not self.is_mla
        fits = self.tmem_used <= TMEM_COLUMNS and self.smem_used <= B200_SMEM_BYTES
        if not fits or self.BN < 64 or self.num_kv_stages < 2 or (paged and self.page_size % self.MMA_K):
            return False
        if self.num_qo == 1:
            return 64 <= self.qk_depth <= 256 and not self.pair_cta
        return 64 < self.qk_depth <= 128 if self.pair_cta else self.qk_depth >= 64

    @classmethod
    def for_b200(
        cls,
        depth: int,
        dtype: DType = BF16,
        *,
        pair_cta: bool = False,
        num_qo: int = 2,
        ov_depth: int = 0,
        rope_dtype: DType | None = None,
        scale_dtype: DType | None = None,
        swizzle_mode: TensorMapSwizzle = TensorMapSwizzle.SWIZZLE_128B,
        page_size: int = 0,
        is_mla: bool = False,
        group: int = 1,
        num_q_heads: int = 1,
    ) -> FA4Config:
        """Upstream's choice for heads of ``depth``: as many stages as fit in 227 KiB.

        ConfigurationError for what upstream's kernel does not take.
        """
        if depth < 64 or (pair_cta and (num_qo == 1 or not 64 < depth <= 128)):
            raise ConfigurationError(
                f"depth {depth}, pair_cta {pair_cta}, num_qo {num_qo}",
                correction="use a depth from 64 on; a pair of CTAs takes 65 to 128 and two Q tiles",
            )

        smallest = cls(
            dtype, depth, 2, 1, pair_cta=pair_cta, num_qo=num_qo, ov_depth=ov_depth, rope_dtype=rope_dtype,
            scale_dtype=scale_dtype, swizzle_mode=swizzle_mode, is_mla=is_mla, group=group, num_q_heads=num_q_heads,
            page_size=page_size,
        )  # fmt: skip
        made = replace(smallest, BN=_keys_of_a_tile(smallest)).with_most_stages()
        if not made.supported():
            raise ConfigurationError(
                f"depth {depth} with {made.num_kv_stages} stages of {made.BN} keys"
                + (f", in pages of {page_size}" if page_size else ""),
                cause="upstream takes 2 stages or more, depths of Q up to 256 with one Q tile, and pages of whole MMAs",
                correction="use less deep heads, smaller elements, or larger pages",
            )
        return made

    def with_most_stages(self) -> FA4Config:
        """The same tiles in as many stages as fit in 227 KiB, as upstream counts them.

        One ring if the number of tiles is odd; else one for K and one for V, and K in slices where their barriers fit.
        """
        left, tile, k = B200_SMEM_BYTES - self._fixed_bytes(), self._tile_bytes(), self._k_bytes()
        tiles = left // (tile + k // 2)
        if self._ring_bytes(tiles) > left:
            tiles -= 1
        if tiles < 2:
            raise ConfigurationError(
                f"{max(tiles, 0)} tiles of K and V fit into {max(left, 0):,} bytes",
                cause=f"that is what Q leaves of {B200_SMEM_BYTES:,} bytes; a tile takes {tile + k // 2:,}",
                correction="use less deep heads, or smaller elements",
            )
        if tiles % 2:  # an odd number of tiles does not split in two rings of equal length
            return replace(self, num_kv_stages=tiles, num_qk_stages=1, use_fused_kv=True)
        whole = replace(self, num_kv_stages=tiles // 2, num_qk_stages=1, use_fused_kv=False)
        staged = replace(whole, num_qk_stages=self._most_qk_stages())
        return staged if staged.smem_used < B200_SMEM_BYTES else whole


def _keys_of_a_tile(config: FA4Config) -> int:
    """BN: two S and two O share tensor memory; whole pages in a tile or whole tiles in a page."""
    page_size = config.page_size
    left = min(256, (TMEM_COLUMNS // 2 - config.padded_ov_depth) // config.MMA_K * config.MMA_K)
    if left > 0 and page_size and page_size % left and left % page_size:
        left = 1 << left.bit_length() - 1
    if left < 64:
        raise ConfigurationError(
            f"heads of depth {config.ov_depth} leave {max(left, 0)} keys a tile",
            cause="two S and two O tiles share 512 columns of tensor memory; upstream takes 64 keys or more",
            correction="use a depth of 64 to 192; depth 256 and 512 are Depth512SM100Config's",
        )
    return left


def _bytes_of(dtype: DType | None) -> int:
    return 0 if dtype is None else dtype.nbytes
