"""Tiles have the names of what copies write; equal ranges are slots of one tile."""

from __future__ import annotations

from pipesim.model.ops import Space
from pipesim.model.tables import Tile
from pipesim.ptx.kernel import read_kernel
from tests.support.paths import EXAMPLES
from tests.support.ptx_programs import kernel_paths


def test_a_tile_of_the_example() -> None:
    """The last copy of a row is shorter: its range is in the same slot."""
    program = read_kernel(EXAMPLES / "row_max.ptx").program
    assert program.tiles == (Tile("s.tile", Space.SHARED, 0, 0, 4096, 3),)


def test_two_copies_fill_a_slot() -> None:
    ptx = next(path for path in kernel_paths() if path.stem.startswith("scale_ws_s3"))
    assert read_kernel(ptx).program.tiles == (Tile("tiles", Space.SHARED, 0, 0, 8192, 3),)
