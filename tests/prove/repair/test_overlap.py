"""Who takes turns after a change and did not before: two warps of one role, and two CTAs."""

from collections.abc import Callable

import pytest

from pipesim import Order, Protocol, Warp
from pipesim.model.program import Program
from pipesim.prove.repair.side_effects import serialised

STEPS = 4


def warps(turns: bool) -> Program:
    """Two warps of one role, each with a tile; ``turns``: the second has each step only after that of the first."""
    p = Protocol("warps")
    tile = p.smem("tile", slots=2, nbytes=1024)

    @p.role("mma", warps=2)
    def mma(w: Warp) -> None:
        for n in w.loop(STEPS, "steps"):
            if w.index and turns:
                w.bar_sync(1, 64)
            w.write(tile[w.index], item=n)
            if not w.index and turns:
                w.bar_sync(1, 64)
            if turns:
                w.bar_sync(2, 64)

    return p.flatten()


def ctas(turns: bool) -> Program:
    """Two CTAs, each with a tile; ``turns``: the second begins when a word says that the first ended."""
    p = Protocol("ctas", grid=2)
    tile = p.smem("tile", slots=1, nbytes=1024)
    done = p.gmem("done", 1, 4)

    @p.role("sums")
    def sums(w: Warp) -> None:
        if turns and w.cta:
            w.spin_until(done[0], equals=1, order=Order.ACQUIRE)
        for n in w.loop(STEPS, "steps"):
            w.write(tile[0], item=n)
        if not w.cta:
            w.sync_warp()
            with w.elect_one():
                w.gstore(done[0], value=1, order=Order.RELEASE)

    return p.flatten()


@pytest.mark.parametrize(("made", "said"), [(warps, ("mma/0", "mma/1")), (ctas, ("sums@0", "sums@1"))])
def test_agents_of_one_role_are_named_that_take_turns_and_did_not(
    made: Callable[[bool], Program], said: tuple[str, str]
) -> None:
    free, turns = made(False), made(True)
    assert serialised(free, turns) == (said,)
    assert serialised(turns, turns) == serialised(turns, free) == serialised(free, free) == ()
