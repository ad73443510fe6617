"""Tile payloads: the tile arrays that travel through an input pipeline side by side.

Upstream: ``linalg/matmul/gpu/sm100_structured/structured_kernels/tile_pipeline.mojo``. One barrier pair guards
``k_group_size`` consecutive slots of every array: the slot of a tile is ``stage * k_group_size + k_idx``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

from pipesim.errors import ProtocolError
from pipesim.lang.author_line import author_line
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


def _slot(tiles: TileArray, stage: int, k_idx: int, k_group_size: int) -> Slot:
    """The slot of one tile. Upstream checks no bounds; here an index outside the group is an error."""
    if not 0 <= k_idx < k_group_size:
        raise ProtocolError(
            f"tile {k_idx} of a group of {k_group_size} in {tiles.name}",
            place=author_line(),
            cause="one stage holds tiles 0 to k_group_size - 1; the next belongs to another barrier",
        )
    return tiles[stage * k_group_size + k_idx]


@dataclass(frozen=True)
class _Operands(TilePayload):
    """The A and B tiles that every payload begins with."""

    a_tiles: TileArray
    b_tiles: TileArray

    def get_a_tile(self, stage: int, k_idx: int, k_group_size: int) -> Slot:
        """The A tile."""
        return _slot(self.a_tiles, stage, k_idx, k_group_size)

    def get_b_tile(self, stage: int, k_idx: int, k_group_size: int) -> Slot:
        """The B tile."""
        return _slot(self.b_tiles, stage, k_idx, k_group_size)


@dataclass(frozen=True)
class StandardTilePayload(_Operands):
    """A and B tiles of an ordinary matrix multiplication."""

    def get_tile(self, stage: int, k_idx: int, k_group_size: int) -> tuple[Slot, Slot]:
        """The A and the B tile."""
        return self.get_a_tile(stage, k_idx, k_group_size), self.get_b_tile(stage, k_idx, k_group_size)


@dataclass(frozen=True)
class BlockScaledTilePayload(_Operands):
    """A and B tiles with the scale factors of both (MXFP8, NVFP4)."""

    sfa_tiles: TileArray
    sfb_tiles: TileArray

    def get_tile(self, stage: int, k_idx: int, k_group_size: int) -> tuple[Slot, Slot, Slot, Slot]:
        """The A, B, SFA and SFB tile."""
        at = stage, k_idx, k_group_size
        return self.get_a_tile(*at), self.get_b_tile(*at), self.get_sfa_tile(*at), self.get_sfb_tile(*at)

    def get_sfa_tile(self, stage: int, k_idx: int, k_group_size: int) -> Slot:
        """The scale factors of the A tile."""
        return _slot(self.sfa_tiles, stage, k_idx, k_group_size)

    def get_sfb_tile(self, stage: int, k_idx: int, k_group_size: int) -> Slot:
        """The scale factors of the B tile."""
        return _slot(self.sfb_tiles, stage, k_idx, k_group_size)


@dataclass(frozen=True)
class BlockwiseFP8TilePayload(_Operands):
    """A and B tiles with the scales of A; the scales of B are read from global memory in the epilogue."""

    a_scales_tiles: TileArray

    def get_tile(self, stage: int, k_idx: int, k_group_size: int) -> tuple[Slot, Slot, Slot]:
        """The A tile, the B tile and the scales of A."""
        at = stage, k_idx, k_group_size
        return self.get_a_tile(*at), self.get_b_tile(*at), self.get_a_scales_tile(*at)

    def get_a_scales_tile(self, stage: int, k_idx: int, k_group_size: int) -> Slot:
        """The scales of the A tile."""
        return _slot(self.a_scales_tiles, stage, k_idx, k_group_size)
