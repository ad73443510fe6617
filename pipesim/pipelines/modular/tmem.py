"""Tensor memory as pipelines name it: an allocation and one stage of it (upstream ``structured_kernels/tmem.mojo``)."""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.errors import ProtocolError
from pipesim.lang.author_line import author_line
from pipesim.lang.tiles import Slot, TileArray
from pipesim.model.ops import Space

TMEM_COLUMNS = 512  #: of an SM
TMEM_COLUMN_BYTES = 128 * 4  #: of one column: 128 lanes of 4 bytes


@dataclass(frozen=True)
class TmemAllocation:
    """Accumulator tiles in tensor memory, the first of them at column ``addr``. ``tiles`` is of ``Protocol.tmem``."""

    tiles: TileArray
    addr: int = 0

    def __post_init__(self) -> None:
        if self.tiles.space is not Space.TENSOR:
            raise ProtocolError(
                f"{self.tiles.name} is not in tensor memory",
                place=author_line(),
                correction="make it with Protocol.tmem(name, slots, nbytes)",
            )


@dataclass(frozen=True)
class TmemStage:
    """One stage of an allocation: the tile of the accumulator, and the column where it begins."""

    tmem: TmemAllocation
    index: int
    stage_stride: int

    def offset(self) -> int:
        """The first column: that of the allocation plus ``index`` strides."""
        return self.tmem.addr + self.index * self.stage_stride

    def tile(self) -> Slot:
        """The tile, as MMAs write it and the epilogue reads it."""
        return self.tmem.tiles[self.index]
