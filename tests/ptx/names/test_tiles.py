"""Tiles have the names of what copies write; equal ranges are slots of one tile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pipesim.model.ops import Space
from pipesim.model.tables import Tile
from pipesim.ptx.kernel import read_kernel
from pipesim.ptx.names.tiles import CopyInto, tiles_named_by_source
from tests.support.paths import EXAMPLES
from tests.support.ptx_programs import kernel_paths


def test_a_tile_of_the_example() -> None:
    """The last copy of a row is shorter: its range is in the same slot."""
    program = read_kernel(EXAMPLES / "row_max.ptx").program
    assert program.tiles == (Tile("s.tile", Space.SHARED, 0, 0, 4096, 3),)


def test_two_copies_fill_a_slot() -> None:
    ptx = next(path for path in kernel_paths() if path.stem.startswith("scale_ws_s3"))
    assert read_kernel(ptx).program.tiles == (Tile("tiles", Space.SHARED, 0, 0, 8192, 3),)


def test_each_cta_of_a_cluster_writes_a_part_of_each_slot() -> None:
    """Of the parts of one CTA alone it is not known where the slots begin: they have no name."""
    site: Any = SimpleNamespace(source=SimpleNamespace(sure=True))
    resolver: Any = SimpleNamespace(paths=lambda *_, **__: ["tile[stage]"])
    parts = {(cta, 4096 * cta + 8192 * slot, 4096): [CopyInto(0, 8 * slot, 1)] for cta in (0, 1) for slot in range(4)}
    found = list(tiles_named_by_source(parts, [site], resolver))
    assert [(tile.cta, tile.offset, tile.nbytes, tile.slots) for tile in found] == [(0, 0, 8192, 4), (1, 0, 8192, 4)]
    assert not list(tiles_named_by_source({at: it for at, it in parts.items() if at[0]}, [site], resolver))
