"""Why a deadlock is there: a missed phase, a count that the program never reaches, and what only seems to arrive."""

import pytest

from pipesim.explain.causes import with_causes
from pipesim.explain.lap_counters import Laps
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.finding import Deadlock
from pipesim.timed.engine import Simulation, simulate
from pipesim.timed.profile import load_profile


def ran(protocol: Protocol) -> tuple[Simulation, Laps]:
    program = protocol.flatten()
    laps = Laps(program)
    return simulate(program, load_profile("h100"), observers=[laps]), laps


def stuck(protocol: Protocol) -> Deadlock:
    run, laps = ran(protocol)
    assert run.deadlock is not None
    return with_causes(run.program, run.state, run.deadlock, laps.disagreements)


def hasty(arrivals: int, *, looks_late: bool = True) -> Protocol:
    """One agent completes a phase with each arrival, the other looks for phase 0."""
    p = Protocol("hasty")
    b = p.mbarriers("b", 1, count=1)

    @p.role("a")
    def a(w: Warp) -> None:
        with w.elect_one():
            for _ in range(arrivals):
                w.work(500)
                b[0].arrive()

    @p.role("b")
    def late(w: Warp) -> None:
        w.work(4000 if looks_late else 1)
        b[0].wait(0)
        w.work(4000)

    return p


def test_a_phase_that_was_complete_before_its_waiter_looked() -> None:
    (blocked,) = stuck(hasty(2)).blocked
    assert (blocked.missed, blocked.phase_wanted, blocked.phase_now, blocked.given) == (0, 2, 2, -1)
    assert ran(hasty(2, looks_late=False))[0].deadlock is None, "in time it sees its phase"
    assert ran(hasty(1))[0].deadlock is None


@pytest.mark.parametrize("noinc", [False, True])
def test_only_a_noinc_arrive_of_cp_async_supplies(noinc: bool) -> None:
    p = Protocol("fill")
    b = p.mbarriers("b", 1, count=64)
    p.role("fill")(lambda _: b[0].cp_async_arrive(noinc=noinc))
    p.role("use")(lambda _: b[0].wait(0))
    (blocked,) = stuck(p).blocked
    assert (blocked.agent, [s.agent for s in blocked.suppliers]) == ("use", ["fill"] if noinc else [])
    assert blocked.given == (32 if noinc else -1)


def test_the_last_arrive_is_named_by_the_trip_of_the_outermost_loop() -> None:
    p = Protocol("nested")
    b = p.mbarriers("b", 1, count=1)

    @p.role("a")
    def a(w: Warp) -> None:
        with w.elect_one():
            for _ in w.loop(2, "warm"):
                w.work(1)
            for _ in w.loop(3, "tiles"):
                for k in w.loop(4, "k"):
                    if k < 2:
                        b[0].arrive()
            w.work(1)

    p.role("b")(lambda _: [b[0].wait(n & 1) for n in range(7)])  # type: ignore[arg-type]
    (blocked,) = stuck(p).blocked
    (supplier,) = blocked.suppliers
    assert (supplier.last_iteration, supplier.last_trip, supplier.last_loop) == (5, 2, "tiles")
