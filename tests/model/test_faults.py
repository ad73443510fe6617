"""Every fault can be seen, and a twin of one difference does not have it."""

from typing import Any

import pytest

from pipesim.findings.catalog import NO_MOVE_SHOWS
from pipesim.model.barrier import MAX_COUNT
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.machine import finished, step
from pipesim.model.ops import Space
from pipesim.model.tables import Access, Agent, Barrier
from tests.support.small_programs import build, play

SYNC = "BAR_SYNC threads=64"

#: fault: (wrong program, its moves, right program, its moves); the fault is the last move's
STORIES: dict[FaultKind, tuple[tuple[str, ...], str, tuple[str, ...], str]] = {
    FaultKind.INIT_COUNT: (("INIT count=0",), "0", ("INIT count=1",), "0"),
    FaultKind.ARRIVE_COUNT: (("INIT; ARRIVE count=0",), "0 0", ("INIT; ARRIVE count=1",), "0 0"),
    FaultKind.NOT_INITIALISED: (("ARRIVE", "INIT"), "0", ("ARRIVE", "INIT"), "1 0"),
    FaultKind.INVALIDATED: (("INIT; INVAL; ARRIVE",), "0 0 0", ("INIT; INVAL; INIT; ARRIVE",), "0 0 0 0"),
    FaultKind.REINITIALISED: (("INIT; INIT",), "0 0", ("INIT; INVAL; INIT",), "0 0 0"),
    FaultKind.INVAL_PENDING: (("INIT count=2; ARRIVE; INVAL",), "0 0 0", ("INIT count=1; ARRIVE; INVAL",), "0 0 0"),
    FaultKind.OVER_ARRIVAL: (("INIT count=31; ARRIVE count=32",), "0 0", ("INIT count=32; ARRIVE count=32",), "0 0"),
    FaultKind.TX_RANGE: (
        (f"INIT; EXPECT_TX bytes={MAX_COUNT}; EXPECT_TX bytes=2",), "0 0 0",
        (f"INIT; EXPECT_TX bytes={MAX_COUNT}; COMPLETE_TX bytes=1",), "0 0 0",
    ),
    FaultKind.TX_EDGE: (
        (f"INIT; EXPECT_TX bytes={MAX_COUNT}; EXPECT_TX bytes=1",), "0 0 0",
        (f"INIT; EXPECT_TX bytes={MAX_COUNT}",), "0 0",
    ),
    FaultKind.NO_COMPLETE: (("INIT count=1; ARRIVE_NO_COMPLETE",), "0 0", ("INIT count=2; ARRIVE_NO_COMPLETE",), "0 0"),
    FaultKind.STALE_STATE: (
        ("INIT; ARRIVE register=0; ARRIVE; WAIT_STATE register=0",), "0 0 0 0",
        ("INIT; ARRIVE register=0; WAIT_STATE register=0; ARRIVE",), "0 0 0 0",
    ),
    FaultKind.BARRIER_THREADS: ((SYNC, "BAR_SYNC threads=96"), "0 1", (SYNC, SYNC), "0 1"),
    FaultKind.BARRIER_OVERRUN: (
        ("BAR_ARRIVE threads=64", "BAR_ARRIVE threads=64 lanes=64"), "0 1", ("BAR_ARRIVE threads=64", SYNC), "0 1",
    ),
    FaultKind.CLUSTER_ARRIVE: (
        ("CLUSTER_ARRIVE; CLUSTER_ARRIVE",), "0 0", ("CLUSTER_ARRIVE; CLUSTER_WAIT; CLUSTER_ARRIVE",), "0 0 0",
    ),
    FaultKind.RACE: (
        ("INIT; WRITE item=1; TMA_LOAD item=2; READ item=1",), "0 0 0 0",
        ("INIT; WRITE item=1; READ item=1; TMA_LOAD item=2",), "0 0 0 0",
    ),
    FaultKind.UNINITIALISED_READ: (("READ; WRITE item=1",), "0", ("WRITE item=1; READ",), "0 0"),
    FaultKind.WRONG_ITEM: (("WRITE item=1; READ item=2",), "0 0", ("WRITE item=1; READ item=1",), "0 0"),
}  # fmt: skip

TRAPPING_ON_THE_CHIP = {FaultKind.OVER_ARRIVAL, FaultKind.TX_RANGE, FaultKind.NOT_INITIALISED, FaultKind.EXITED_CTA}
SILENT_ON_THE_CHIP = {FaultKind.REINITIALISED, FaultKind.NO_COMPLETE, FaultKind.RACE, FaultKind.WRONG_ITEM,
                      FaultKind.INIT_COUNT, FaultKind.ARRIVE_COUNT, FaultKind.INVALIDATED,
                      FaultKind.TX_EDGE}  # fmt: skip


def test_every_fault_has_a_story() -> None:
    """But for faults of memory order, which the machine does not know: tests/prove/memory_order has theirs."""
    assert set(STORIES) | {FaultKind.EXITED_CTA} | NO_MOVE_SHOWS == set(FaultKind)


def test_a_barrier_of_a_cta_that_has_exited() -> None:
    """In a cluster of two: every remote operation ends the launch once the other CTA has nothing left to run."""
    fields: dict[str, Any] = {
        "ctas": 2,
        "agents": (Agent(0, 0, 1, "sender", 0), Agent(1, 0, 1, "owner", 0)),
        "barriers": (Barrier(1, "b", 0),),
        "accesses": (Access(Space.SHARED, 0, 0, 64),),
    }
    for use in ("ARRIVE", "ARRIVE_DROP", "ARRIVE_NO_COMPLETE", "EXPECT_TX", "COMPLETE_TX"):
        program = build(use, "INIT count=2; WORK", **fields)
        state, made = play(program, "1 1 0")
        assert made[-1].faults == (Fault(FaultKind.EXITED_CTA, 0, 0, 0),)
        assert state.barriers == play(program, "1 1")[0].barriers
        assert play(program, "1 0")[1][-1].faults == (), "the twin: the other CTA still runs"
    program = build("WORK", "INIT count=2; ARRIVE", **fields)
    assert play(program, "1 0 1")[1][-1].faults == (), "a barrier of one's own CTA"


def test_the_memory_of_a_cta_that_has_exited() -> None:
    """As its barriers: whoever reads it or writes to it, at once or with a transfer that ends too late."""
    fields: dict[str, Any] = {
        "ctas": 2,
        "agents": (Agent(0, 0, 1, "reader", 0), Agent(1, 0, 1, "owner", 0)),
        "barriers": (Barrier(0, "b", 0),),
        "tiles": (),
    }
    there, everybodys = Access(Space.SHARED, 1, 0, 64), Access(Space.GLOBAL, 1, 0, 64)
    uses = ("READ", "WRITE item=1", "TRANSFER_READ", "TRANSFER_WRITE engine=TCGEN05 item=1", "TMA_LOAD item=2")
    for use in uses:
        program = build(use, "WRITE item=1; WORK", accesses=(there,), **fields)
        fault = Fault(FaultKind.EXITED_CTA, 0, 0, -1, 0)
        assert play(program, "1 1 0")[1][-1].faults == (fault,)
        assert play(program, "1 0")[1][-1].faults == (), "the twin: the other CTA still runs"
        assert play(build(use, "WRITE item=1", accesses=(everybodys,), **fields), "1 0")[1][-1].faults == ()
    for use in uses[2:]:
        program = build("INIT; " + use, "WRITE item=1; WORK", accesses=(there,), **fields)
        late = play(program, "0 1 0 1 ~")[1][-1]
        assert ([f.kind for f in late.faults], late.state.flights) == ([FaultKind.EXITED_CTA], ())
        assert play(program, "0 1 0 ~ 1")[1][-2].faults == ()


@pytest.mark.parametrize("kind", STORIES, ids=lambda k: k.name)
def test_the_fault_is_seen(kind: FaultKind) -> None:
    code, moves, _, _ = STORIES[kind]
    state, made = play(build(*code), moves)
    assert [[f.kind for f in m.faults] for m in made] == [[]] * (len(made) - 1) + [[kind]]
    fault = made[-1].faults[0]
    assert fault.agent == int(moves.split()[-1])
    assert fault.pc == state.pcs[fault.agent] - 1, "the machine moves past the fault"


@pytest.mark.parametrize("kind", STORIES, ids=lambda k: k.name)
def test_the_twin_does_not_have_it(kind: FaultKind) -> None:
    _, _, code, moves = STORIES[kind]
    _, made = play(build(*code), moves)
    assert [m.faults for m in made] == [()] * len(made)
    assert all(m.blocked < 0 for m in made[1:])


def test_faults_that_trap_leave_the_barrier_as_it_was() -> None:
    for kind, (code, moves, _, _) in STORIES.items():
        if kind.traps:
            before = play(build(*code), " ".join(moves.split()[:-1]))[0]
            after = play(build(*code), moves)[0]
            assert (after.barriers, after.named, after.cells) == (before.barriers, before.named, before.cells), kind


def test_what_stops_the_chip_is_told_apart_from_what_it_lets_pass() -> None:
    assert {kind for kind in FaultKind if kind.traps} >= TRAPPING_ON_THE_CHIP
    assert not any(kind.traps for kind in SILENT_ON_THE_CHIP)
    assert len({kind.value for kind in FaultKind}) == len(FaultKind), "every fault has words of its own"


@pytest.mark.parametrize(
    "use",
    ["ARRIVE", "ARRIVE_DROP", "ARRIVE_NO_COMPLETE", "EXPECT_TX", "COMPLETE_TX", "WAIT", "WAIT_UNLESS", "TRY_WAIT",
     "TEST_WAIT", "WAIT_STATE register=0", "TEST_STATE register=0", "CP_ASYNC_ARRIVE", "CP_ASYNC_ARRIVE noinc=1",
     "INVAL"],
)  # fmt: skip
def test_every_use_of_a_barrier_needs_it_live(use: str) -> None:
    program = build(f"WORK; {use}", "INIT count=32; INVAL; INIT count=32", registers=1)
    for moves, kind in (("0 0", FaultKind.NOT_INITIALISED), ("0 1 1 0", FaultKind.INVALIDATED)):
        state, made = play(program, moves)
        assert [f.kind for f in made[-1].faults] == [kind]
        assert (finished(program, state, 0), state.flights) == (True, ())
    live, _ = play(program, "0 1 1 1")
    assert step(program, live, 0).faults == ()
