"""Work that only a launch does that is recorded, or only one that records nothing; products whose warp never comes."""

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.ops import Engine
from pipesim.model.program import Program
from pipesim.protocols.warp_group import GROUP
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile

BASE = load_profile("h200")


def late_warp(*, comes: bool) -> Program:
    """Two warp groups multiply on the same tensor cores; a warp of the first waits for a phase that may never come."""
    p = Protocol("late")
    sums, never = p.registers("sums", 2, 512), p.mbarriers("never", 1)

    @p.init
    def init() -> None:
        never[0].init(1)

    @p.role("multiply", warps=2 * GROUP)
    def multiply(w: Warp) -> None:
        group, warp = divmod(w.index, GROUP)
        if w.index == 0:
            never[0].wait(0)
        w.mma(Engine.WGMMA, reads=[], writes=[(sums[group].part(128 * warp, 128), 0)], cycles=100)
        w.compute("late/multiply", mma=64 * 128 * 64 // GROUP, products=4)
        w.commit(Engine.WGMMA)
        w.wait_group(Engine.WGMMA)

    if comes:

        @p.role("signal", warps=GROUP)
        def signal(w: Warp) -> None:
            if w.index == 0:
                with w.elect_one():
                    never[0].arrive()

    return p.flatten()


def test_a_group_waits_for_its_last_warp_and_no_longer() -> None:
    """Products that wait for a warp that never comes do not keep the run alive: the deadlock is reported."""
    found = simulate(late_warp(comes=False), BASE)
    assert found.outcome is Ending.DEADLOCK
    assert found.deadlock is not None
    assert simulate(late_warp(comes=True), BASE).outcome is Ending.FINISHED
