"""What an agent that never waits is told, and that no agent is told it without reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pipesim.explain.missing_waits import advisories
from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine
from pipesim.model.program import Program
from pipesim.protocols.catalog import BUILT_IN
from pipesim.targets import find

Body = Callable[[Warp, TileArray, BarrierStorage], object]


def two(one: Body, other: Body, cluster: int = 1) -> Program:
    """A program of two roles, with four tiles and four mbarriers."""
    p = Protocol("two", cluster=cluster)
    tile = p.smem("tile", 4, 64)
    bars = p.mbarriers("bar", 4, count=1)
    p.role("one")(lambda w: one(w, tile, bars) and None)  # type: ignore[arg-type]
    p.role("other")(lambda w: other(w, tile, bars) and None)  # type: ignore[arg-type]
    return p.flatten()


def fill(w: Warp, tile: TileArray, bars: BarrierStorage) -> None:
    with w.elect_one():
        bars[0].expect_bytes(64)
        w.tma_load(tile[0], bars[0], 0)


def write(w: Warp, tile: TileArray, bars: BarrierStorage) -> None:
    w.write(tile[0], 0)
    bars[0].arrive()


def claims(program: Program) -> list[str]:
    return [a.claim for a in advisories(program)]


READ = "other never waits: its read of tile[0] is not ordered after the write by one"


@pytest.mark.parametrize("filled", [fill, write])
@pytest.mark.parametrize(
    "body",
    [
        lambda w, tile, _: w.read(tile[0], 0),
        lambda w, tile, _: w.async_read(Engine.BULK, tile[0], 0),
        lambda w, tile, bars: (bars[1].arrive(), w.read(tile[0], 0), w.read(tile[0], 1)),
        lambda w, tile, _: (w.async_read(Engine.BULK, tile[0]), w.commit(Engine.BULK), w.wait_group(Engine.BULK)),
        lambda w, tile, _: (w.write(tile[1], 0), w.read(tile[0], 0)),
    ],
)
def test_a_read_of_what_another_fills(filled: Body, body: Body) -> None:
    assert claims(two(filled, body)) == [READ]


@pytest.mark.parametrize(
    "body",
    [
        lambda w, tile, bars: (bars[0].wait(0), w.read(tile[0], 0)),
        lambda w, tile, bars: (bars[0].wait_if_needed(bars[0].try_wait(0), 0), w.read(tile[0], 0)),
        lambda w, tile, bars: (w.read(tile[0], 0), bars[0].wait(0)),  # it waits somewhere: not told from this alone
        lambda w, tile, _: (w.bar_sync(1, 64), w.read(tile[0], 0)),
        lambda w, tile, _: (w.write(tile[0], 1), w.read(tile[0], 1)),  # its own
        lambda w, tile, _: w.read(tile[1], 0),  # no agent's
        lambda w, *_: w.work(1),
    ],
)
def test_nothing_is_told_of_one_that_waits_or_keeps_to_its_own(body: Body) -> None:
    assert claims(two(fill, body)) == []


def test_what_the_init_wrote_is_there_for_all() -> None:
    p = Protocol("p")
    tile = p.smem("tile", 1, 64)
    warps: list[Warp] = []

    @p.role("one")
    def one(w: Warp) -> None:
        warps.append(w)
        w.write(tile[0], 1)
        w.sync_threads()

    @p.role("other")
    def other(w: Warp) -> None:
        w.sync_threads()
        w.read(tile[0], 1)

    assert claims(p.flatten()) == []


def test_one_that_takes_part_in_another_synchronisation_is_left_alone() -> None:
    """A foreign program need not begin with a barrier of all: what its first one orders is not known here."""
    program = two(fill, lambda w, tile, _: w.read(tile[0], 0))
    mine = tuple(op for op in program.code[1] if op[0] != program.code[1][0][0])
    assert mine != program.code[1]
    other = replace(program, code=(program.code[0], mine), lines=(program.lines[0], program.lines[1][1:]))
    assert claims(program) == [READ]
    assert claims(other) == []


def again(w: Warp, tile: TileArray, bars: BarrierStorage) -> None:
    for _ in range(3):
        fill(w, tile, bars)


def test_a_copy_over_its_own_copy() -> None:
    waits: Body = lambda w, tile, bars: (bars[0].wait(0), w.read(tile[0], 0))  # noqa: E731
    claim = "one never waits: its copy into tile[0] is not ordered after the read of its previous copy"
    assert claims(two(again, waits)) == [claim]
    assert claims(two(lambda w, t, b: (again(w, t, b), b[1].wait(1)), waits)) == []
    assert claims(two(fill, waits)) == []


@pytest.mark.parametrize("name", BUILT_IN)
def test_no_ready_made_protocol_is_told_anything(name: str) -> None:
    assert advisories(find(name).build({})) == ()
