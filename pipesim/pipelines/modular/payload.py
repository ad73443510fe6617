"""Tile payloads: the tile arrays that travel through an input pipeline side by side.

Upstream: ``linalg/matmul/gpu/sm100_structured/structured_kernels/tile_pipeline.mojo``. One barrier pair guards
``k_group_size`` consecutive slots of every array: the slot of a tile is ``stage * k_group_size + k_idx``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

from pipesim.errors import ProtocolError
from pipesim.lang.author import author_line
from pipesim.lang.tiles import Slot, TileArray


@dataclass(frozen=True)
class TilePayload:
    """The base of all payloads: named tile arrays with the same number of slots."""

    def __post_init__(self) -> None:
        slots = {name: len(tiles) for name, tiles in self.arrays.items()}
        if len(set(slots.values())) != 1:
            counted = ", ".join(f"{name} {count}" for name, count in slots.items())
            raise ProtocolError(
                f"the arrays of a payload differ in their slots: {counted}",
                place=author_line(),
                cause="one pipeline stage is the same slots of every array",
                correction="give every array num_group_stages * k_group_size slots",
            )

    @cached_property
    def arrays(self) -> dict[str, TileArray]:
        """Every array by its upstream name, in upstream's order."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def num_pipeline_stages(self) -> int:
        """Slots of each array."""
        return len(next(iter(self.arrays.values())))

    def stage_bytes(self, k_group_size: int, cta_group: int = 1) -> int:
        """What ``expect_bytes`` of one stage is: the tiles of all arrays, for the group, for both CTAs of a pair.

        It is constant: tiles beyond the end of K are zero-filled by the TMA, and their bytes count.
        """
        return cta_group * k_group_size * sum(tiles.nbytes for tiles in self.arrays.values())

    def get_tile(self, stage: int, k_idx: int, k_group_size: int) -> tuple[Slot, ...]:
        """The slot of each array that holds one tile of a stage's group.

        Upstream checks no bounds; here an index outside the group is an error.
        """
        if not 0 <= k_idx < k_group_size:
            raise ProtocolError(
                f"tile {k_idx} of a group of {k_group_size} in {next(iter(self.arrays.values())).name}",
                place=author_line(),
                cause="one stage holds tiles 0 to k_group_size - 1; the next belongs to another barrier",
            )
        return tuple(tiles[stage * k_group_size + k_idx] for tiles in self.arrays.values())


@dataclass(frozen=True)
class StandardTilePayload(TilePayload):
    """A and B tiles of an ordinary matrix multiplication."""

    a_tiles: TileArray
    b_tiles: TileArray


@dataclass(frozen=True)
class BlockScaledTilePayload(StandardTilePayload):
    """A and B tiles with the scale factors of both (MXFP8, NVFP4)."""

    sfa_tiles: TileArray
    sfb_tiles: TileArray


@dataclass(frozen=True)
class BlockwiseFP8TilePayload(StandardTilePayload):
    """A and B tiles with the scales of A; the scales of B are read from global memory in the epilogue."""

    a_scales_tiles: TileArray
