"""A warp that waits by parity on a barrier whose users do not wait for it: found without a search."""

import pytest

from pipesim import Protocol, Warp
from pipesim.model.finding import Verdict
from pipesim.prove.check import How, check

LOADERS, MATH = 4, 4  #: warps of a group; of the loaders one issues copies, the others only wait


def lapped(counted: bool, registers: int, stages: int = 2, k_steps: int = 6) -> Protocol:
    """Loaders that issue nothing wait for room as well. ``counted``: they arrive on full, whose users wait for it."""
    p = Protocol("lapped", registers=registers)
    a = p.smem("a", stages, 1024)
    full, empty = p.mbarriers("full", stages), p.mbarriers("empty", stages)

    @p.init
    def init() -> None:
        for stage in range(stages):
            full[stage].init(LOADERS if counted else 1)
            empty[stage].init(MATH)

    @p.role("load", warps=LOADERS)
    def load(w: Warp) -> None:
        if registers:
            w.setmaxnreg(24)
        for n in w.loop(k_steps, "k_steps"):
            empty[n % stages].wait(1 - n // stages % 2)
            with w.elect_one():
                if w.index == 0:
                    full[n % stages].expect_bytes(1024)
                    w.tma_load(a[n % stages], full[n % stages], n)
                elif counted:
                    full[n % stages].arrive()

    @p.role("math", warps=MATH)
    def math(w: Warp) -> None:
        if registers:
            w.setmaxnreg(240)
        for n in w.loop(k_steps, "k_steps"):
            full[n % stages].wait(n // stages % 2)
            w.read(a[n % stages], n)
            with w.elect_one():
                empty[n % stages].arrive()

    return p


@pytest.mark.parametrize("registers", [0, 132], ids=["", "registers that the loaders give back"])
def test_a_warp_that_nobody_waits_for(registers: int) -> None:
    found = check(lapped(counted=False, registers=registers).flatten())
    assert (found.verdict, found.how, found.states) == (Verdict.REFUTED, How.SCHEDULE, 0)
    stuck = found.refutations[0].deadlock
    assert stuck is not None
    assert stuck.blocked[0].agent == "load/1"


@pytest.mark.parametrize("registers", [0, 132], ids=["", "registers that the loaders give back"])
def test_the_twin_that_is_counted(registers: int) -> None:
    found = check(lapped(counted=True, registers=registers).flatten())
    assert (found.verdict, found.how) == (Verdict.PROVED, How.CERTIFICATE)
