"""``FA4Config``: tile sizes and stage counts of flash attention 4.

Upstream: ``nn/attention/gpu/nvidia/sm100/attention.mojo``.
"""

from dataclasses import dataclass

from pipesim.errors import ParameterError

WARP_GROUP = 128
_ATOM = 64  #: elements of a row of a swizzle atom: 128 bytes of bf16, 64 of fp8


@dataclass(frozen=True)
class DType:
    """An element type: its name and how many bytes one element has."""

    name: str
    nbytes: int


BF16 = DType("bfloat16", 2)
FP8 = DType("float8_e4m3fn", 1)


@dataclass(frozen=True)
class FA4Config:
    """One configuration of the kernel: what upstream knows at compile time."""

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
        if self.num_qk_stages > 1 and self.use_fused_kv:
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
        """``depth``, rounded up to a swizzle atom."""
        return -(-self.depth // _ATOM) * _ATOM

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
