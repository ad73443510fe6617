"""Tiles have the names of what copies write; equal ranges are slots of one tile."""

from types import SimpleNamespace
from typing import Any

import pytest

from pipesim.model.ops import Space
from pipesim.model.tables import Tile
from pipesim.ptx.kernel import read_kernel
from pipesim.ptx.names.tiles import CopyInto, tiles_named_by_source
from pipesim.ptx.text.instruction import Frame, SourceLine
from tests.support.ptx_programs import kernel_paths


def copied_at(line: int, *, sure: bool = True) -> SourceLine:
    """The place of a copy in a wrapper that is called in this line of a kernel."""
    frames = (Frame("k.cu", line, "k", 1), Frame("copy.h", 7, "copy", 1))
    return SourceLine("k.cu", line, "k", frames, sure)


@pytest.mark.slow
def test_two_copies_fill_a_slot() -> None:
    ptx = next(path for path in kernel_paths() if path.stem.startswith("scale_ws_s3"))
    assert read_kernel(ptx).program.tiles == (Tile("tiles", Space.SHARED, 0, 0, 8192, 3),)


#: Lines of a kernel that copies to a, b, a, b, … on the barriers of a ring, and names of the tiles and their slots.
UNROLLED = (
    ("the copies on the first barrier are sure", [(1, True), (2, True), *[(2, False)] * 2], "full", "a 2, b 2"),
    ("those on the first barrier are on another array", [(1, True), (2, True), *[(2, False)] * 2], "other", ""),
    ("the place of the second is said before it", [(1, True), (2, False), *[(2, False)] * 2], "full", "a 2, b 2"),
    ("both places are said before the first", [(2, False), (2, False), *[(2, False)] * 2], "full", ""),
)


@pytest.mark.parametrize(
    ("lines", "array", "tiles"), [each[1:] for each in UNROLLED], ids=[each[0] for each in UNROLLED]
)
def test_copies_of_an_unrolled_loop(lines: list[tuple[int, bool]], array: str, tiles: str) -> None:
    """Of a loop that nvcc unrolled the places are said once; the other copies are on other elements of the ring."""
    copies = {at: copied_at(line, sure=sure) for at, (line, sure) in enumerate(lines, 1)}
    body: Any = [SimpleNamespace(source=each) for each in (copied_at(1), *copies.values())]
    resolver: Any = SimpleNamespace(paths=lambda each, **_: ["", "a[s]", "b[s]"][each.source.frames[0].line :][:1])
    places = {
        (0, 4096 * ((at - 1) % 2 * 2 + (at - 1) // 2), 4096): [CopyInto(at, (at - 1) // 2 * 8, 1)] for at in copies
    }
    found = tiles_named_by_source(places, body, resolver, {0: ("full", 0), 8: (array, 1)})
    assert ", ".join(f"{tile.name} {tile.slots}" for tile in found if tile.slots > 1) == tiles


#: Lines of the copies that write each of three slots, the first of which is sure, and the tiles that they are.
TURNS = (
    ("k and v take turns", "12 21 2", "a+b 3"),
    ("no slot is written under two names", "1 1 1", "a 3"),
    ("one of the names is another tile's", "13 31 3", "a 3"),
    ("a line says nothing", "10 1 1", "a 3"),
)


@pytest.mark.parametrize(("slots", "tiles"), [each[1:] for each in TURNS], ids=[each[0] for each in TURNS])
def test_tiles_that_share_a_ring(slots: str, tiles: str) -> None:
    """Of a ring of which a slot is written under two names the tile has both."""
    copied = [(slot, int(line)) for slot, lines in enumerate(slots.split()) for line in lines]
    body: Any = [SimpleNamespace(source=copied_at(3))]
    body += [SimpleNamespace(source=copied_at(line, sure=at == 0)) for at, (_, line) in enumerate(copied)]
    resolver: Any = SimpleNamespace(
        paths=lambda each, **_: [*filter(None, [["", "a[s]", "b[s]", "c"][each.source.frames[0].line]])],
        value=lambda _: "",
    )
    places: dict[Any, list[CopyInto]] = {(0, 65536, 64): [CopyInto(0, 80, 1)]}
    for at, (slot, _) in enumerate(copied, 1):
        places.setdefault((0, 4096 * slot, 4096), []).append(CopyInto(at, 8 * slot, at))
    found = tiles_named_by_source(places, body, resolver, {8 * slot: ("full", slot) for slot in range(3)})
    assert ", ".join(f"{tile.name} {tile.slots}" for tile in found if tile.slots > 1) == tiles
