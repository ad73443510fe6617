"""Corrections at the slip itself come before those of a third party, or with which nothing overlaps: twins of small
protocols, each wrong in one place.
"""

from pathlib import Path

from pipesim import Engine, Fence, Order, Protocol, Scope, Warp
from pipesim.model.finding import Verdict
from pipesim.prove.check import check
from tests.support.offered import offered_for_program, without_places

TEXT = Path(__file__).read_text()


def said(wrong: Protocol, right: Protocol) -> list[str]:
    assert check(right.flatten()).verdict is Verdict.PROVED
    return [without_places(each.said) for each in offered_for_program(wrong.flatten())]


def rotating(to: int, ctas: int = 3, rounds: int = 2) -> Protocol:
    """Every CTA writes into the next one's block, whose reader gives it back to the CTA before."""
    p = Protocol("rotating", cluster=ctas)
    block, came, room = p.smem("block", 1, 64), p.mbarriers("came", 1, 1), p.mbarriers("room", 1, 1)

    @p.role("pass")
    def pass_on(w: Warp) -> None:
        following = (w.cta + 1) % ctas
        for lap in range(rounds):
            room[0].wait_acquire(lap % 2 ^ 1, Scope.CLUSTER)
            w.write(block[0].mapa(following), item=lap)
            with w.elect_one():
                came[0].mapa(following).arrive(order=Order.RELEASE, scope=Scope.CLUSTER)
            came[0].wait_acquire(lap % 2, Scope.CLUSTER)
            w.read(block[0], item=lap)
            with w.elect_one():
                room[0].mapa((w.cta + to) % ctas).arrive(order=Order.RELEASE, scope=Scope.CLUSTER)
        w.cluster_sync()

    return p


def test_an_arrive_is_for_the_cta_on_the_other_side() -> None:
    assert said(rotating(1), rotating(-1)) == ["pass: the arrive on room is for the CTA of the cluster before its own"]


def sharing(kept: int) -> Protocol:
    """One warp group gives registers back, two take more."""
    p = Protocol("sharing", registers=168)

    @p.role("load", warps=4)
    def load(w: Warp) -> None:
        w.setmaxnreg(kept)

    @p.role("math", warps=8)
    def math(w: Warp) -> None:
        w.setmaxnreg(240)

    return p


def test_registers_are_those_that_are_left() -> None:
    found = said(sharing(40), sharing(24))
    assert set(found) == {"load asks for 24 registers a thread instead of 40: no more than are left"}


def lagging(first: int, rows: int = 6) -> Protocol:
    """Stores are under way while the next row is scaled; a stage is given back in the turn after its store."""
    p = Protocol("lagging")
    tile, full, empty = p.smem("tile", 3, 64), p.mbarriers("full", 3, 1), p.mbarriers("empty", 3, 1)

    @p.role("fill")
    def fill(w: Warp) -> None:
        for i in range(rows):
            empty[i % 3].wait(i // 3 % 2 ^ first)
            w.write(tile[i % 3], item=i)
            w.fence(Fence.PROXY_ASYNC)
            with w.elect_one():
                full[i % 3].arrive()

    @p.role("store")
    def store(w: Warp) -> None:
        for i in range(rows):
            full[i % 3].wait(i // 3 % 2)
            with w.elect_one():
                w.async_read(Engine.BULK, tile[i % 3], item=i)
                w.commit(Engine.BULK)
                w.wait_group(Engine.BULK, 1)
                if i:
                    empty[(i - 1) % 3].arrive()

    return p


def test_a_parity_comes_before_arrives_in_other_turns() -> None:
    assert said(lagging(0), lagging(1))[0].startswith("fill waits for empty with parity 1 in the first lap")


def turns(second: int, tiles: int = 2) -> Protocol:
    """Two warps take turns, at 1 and 2 with their products and at 3 and 4 with their stores."""
    p = Protocol("turns")
    tile, out = p.smem("tile", 1, 64), p.smem("out", 1, 64)

    @p.role("math", warps=2)
    def math(w: Warp) -> None:
        mine = w.index
        if mine:
            w.bar_arrive(1, 64)
            w.bar_arrive(3, 64)
        for i in range(tiles):
            w.bar_sync(1 + mine, 64)
            w.write(tile[0], item=2 * i + mine)
            w.bar_arrive(2 - mine, 64)
            w.bar_sync(3 + mine, 64)
            w.write(out[0], item=2 * i + mine)
            w.bar_arrive(second - mine, 64)
        if not mine:
            w.bar_sync(1, 64)
            w.bar_sync(3, 64)

    return p


def test_the_turn_that_is_wrong_is_that_of_its_own_wait() -> None:
    (found,) = offered_for_program(turns(2).flatten())
    assert check(turns(4).flatten()).verdict is Verdict.PROVED
    assert found.said.startswith("math uses named barriers 3 and 4 instead of 1 and 2 at the bar_arrive")
    line = next(n for n, text in enumerate(TEXT.splitlines(), 1) if "w.bar_arrive(second - mine" in text)
    assert found.line.endswith(f":{line}")


def sliced(last: int, tiles: int = 3) -> Protocol:
    """A tile is read in four slices and given back with the last of them."""
    p = Protocol("sliced")
    tile, full, empty = p.smem("tile", 1, 64), p.mbarriers("full", 1, 1), p.mbarriers("empty", 1, 2)

    @p.role("fill")
    def fill(w: Warp) -> None:
        for i in range(tiles):
            empty[0].wait(i % 2 ^ 1)
            w.write(tile[0], item=i)
            w.sync_warp()
            with w.elect_one():
                full[0].arrive()

    @p.role("take", warps=2)
    def take(w: Warp) -> None:
        for i in range(tiles):
            full[0].wait(i % 2)
            for n in range(4):
                w.read(tile[0].part(16 * n, 16), item=i)
                w.sync_warp()
                if n == last:
                    with w.elect_one():
                        empty[0].arrive()
                w.bar_sync(1, 64)

    return p


def test_what_is_given_back_comes_after_the_last_use_of_the_tile() -> None:
    found = said(sliced(0), sliced(3))
    assert found[0] == "take executes the arrive on empty only after its last use of tile"
