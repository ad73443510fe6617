"""The machine on transfers and memory: accesses that open and close, items, pieces, groups, multicast."""

from typing import Any

import pytest

from pipesim.model.barrier import LIVE, BarrierState
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.machine import TORN, UNINITIALISED, Flight, Step, initial_state, land, own_channel
from pipesim.model.ops import Space
from pipesim.model.tables import Access, Barrier
from tests.support.small_programs import build, play


def word(expected: int, pending: int, tx: int = 0, done: int = 0) -> BarrierState:
    return BarrierState(expected, pending, tx, done, LIVE)


def faults(made: list[Step]) -> list[FaultKind]:
    return [fault.kind for step in made for fault in step.faults]


def test_a_tma_load_opens_its_tile_and_lands_in_pieces() -> None:
    program = build("INIT count=1; ARRIVE expect=64; TMA_LOAD access=1 bytes=64 item=7", slots=2)
    fresh = initial_state(program)
    state, made = play(program, "0 0 0")
    flight = Flight(0, 2, 0, 64, 0, -1, 0, 1, 2, writes=True, item=7, after=0, sequence=1)
    issued = fresh._replace(
        pcs=(3,), barriers=(word(1, 0, 64),), flights=(flight,), issued=1, cells=(UNINITIALISED, TORN)
    )
    assert state == issued
    state, made = play(program, "~16 ~40", state)
    assert [m.signalled for m in made] == [-1, -1]
    assert state == issued._replace(barriers=(word(1, 0, 8),), flights=(flight._replace(remaining=8),))
    state, made = play(program, "~999", state)
    assert made == [Step(state, signalled=0)]
    assert state == issued._replace(barriers=(word(1, 1, 0, 1),), flights=(), cells=(UNINITIALISED, 7))


def test_flights_land_in_any_order() -> None:
    program = build("INIT count=1; TMA_LOAD access=0 item=0; TMA_LOAD access=1 item=1; ARRIVE expect=128", slots=2)
    state, _ = play(program, "0 0 0 0")
    first = land(program, land(program, state, state.flights[1]).state, state.flights[0])
    second = land(program, land(program, state, state.flights[0]).state, state.flights[1])
    assert first == second
    assert (first.signalled, first.state.cells) == (0, (0, 1))


MEMORY = {
    "read of what is there": ("WRITE item=4; READ item=4", []),
    "read of whatever is there": ("WRITE item=4; READ", []),
    "read of nothing": ("READ", [FaultKind.UNINITIALISED_READ]),
    "read of another item": ("WRITE item=4; READ item=5", [FaultKind.WRONG_ITEM]),
    "read under a copy": ("INIT; WRITE item=4; TMA_LOAD item=5; READ item=4", [FaultKind.RACE]),
    "read of anything under a copy": ("INIT; WRITE item=4; TMA_LOAD item=5; READ", [FaultKind.RACE]),
    "write under a copy": ("INIT; TMA_LOAD item=5; WRITE item=4", [FaultKind.RACE]),
    "two copies at once": ("INIT; TMA_LOAD item=5; TMA_LOAD item=6", [FaultKind.RACE]),
    "two copies apart": ("INIT; TMA_LOAD item=5; TMA_LOAD access=1 item=6", []),
    "read under a store": ("WRITE item=1; TRANSFER_READ engine=BULK item=1; READ item=1", []),
    "two stores of one tile": ("WRITE item=1; TRANSFER_READ engine=BULK; TRANSFER_READ engine=BULK", []),
    "write under a store": ("WRITE item=1; TRANSFER_READ engine=BULK; WRITE item=2", [FaultKind.RACE]),
    "copy under an MMA": ("INIT; WRITE item=1; TRANSFER_READ engine=WGMMA; TMA_LOAD item=2", [FaultKind.RACE]),
    "store of nothing": ("TRANSFER_READ engine=BULK", [FaultKind.UNINITIALISED_READ]),
    "MMA of another item": ("WRITE item=1; TRANSFER_READ engine=WGMMA item=2", [FaultKind.WRONG_ITEM]),
    "store under a copy is told once": ("INIT; TMA_LOAD item=5; TRANSFER_READ engine=BULK", [FaultKind.RACE]),
    "result over a store": ("WRITE item=1; TRANSFER_READ engine=BULK; TRANSFER_WRITE engine=WGMMA item=2",
                            [FaultKind.RACE]),
}  # fmt: skip


@pytest.mark.parametrize("story", MEMORY)
def test_what_accesses_may_meet(story: str) -> None:
    code, expected = MEMORY[story]
    program = build(code, slots=2)
    state, made = play(program, "0 " * (code.count(";") + 1))
    assert faults(made) == expected
    assert state.pcs == (len(program.code[0]),)
    assert all(step.faults == () for step in made[:-1])


def test_a_fault_says_who_where_and_what() -> None:
    _, made = play(build("WRITE access=1 item=4; READ access=1 item=5", slots=2), "0 0")
    assert made[1].faults == (Fault(FaultKind.WRONG_ITEM, 0, 1, -1, 4, 5),)
    _, made = play(build("READ access=1 item=5", slots=2), "0")
    assert made[0].faults == (Fault(FaultKind.UNINITIALISED_READ, 0, 0, -1, 1, 5),)
    _, made = play(build("INIT barrier=1; TMA_LOAD barrier=1 item=0; TMA_LOAD barrier=1 item=1", barriers=2), "0 0 0")
    assert made[2].faults == (Fault(FaultKind.RACE, 0, 2, 1, 0, 0, 0, 1),)


def test_partial_tiles_overlap_where_their_bytes_do() -> None:
    """A tile of 64 bytes written in two halves, and a third range across the cut."""
    halves = tuple(Access(Space.SHARED, 0, o, n) for o, n in ((0, 32), (32, 32), (16, 32), (0, 64), (64, 8)))
    program = build("WRITE access=0 item=1; WRITE access=1 item=2; READ access=0 item=1; READ access=1 item=2; "
                    "READ access=3 item=1; READ access=2 item=1; READ access=3; READ access=4",
                    accesses=halves)  # fmt: skip
    assert program.cells == ((0, 2), (2, 4), (1, 3), (0, 4), (4, 5))
    state, made = play(program, "0 0 0 0 0 0 0 0")
    assert state.cells == (1, 1, 2, 2, -1)
    assert [[f.kind for f in m.faults] for m in made[2:]] == [
        [], [], [FaultKind.WRONG_ITEM], [FaultKind.WRONG_ITEM], [], [FaultKind.UNINITIALISED_READ],
    ]  # fmt: skip


def test_a_copy_of_one_half_does_not_race_with_a_read_of_the_other() -> None:
    halves = tuple(Access(Space.SHARED, 0, o, n) for o, n in ((0, 32), (32, 32), (31, 2)))
    code = "INIT; WRITE access=0 item=1; WRITE access=1 item=1; TMA_LOAD access=0 item=2; READ access={} item=1"
    assert faults(play(build(code.format(1), accesses=halves), "0 0 0 0 0")[1]) == []
    assert faults(play(build(code.format(2), accesses=halves), "0 0 0 0 0")[1]) == [FaultKind.RACE]


def test_the_same_offset_in_another_memory_is_another_place() -> None:
    places = (Access(Space.SHARED, 0, 0, 64), Access(Space.TENSOR, 0, 0, 64))
    state, made = play(build("WRITE item=1; READ access=1", accesses=places), "0 0")
    assert faults(made) == [FaultKind.UNINITIALISED_READ]
    assert state.cells == (1, UNINITIALISED, UNINITIALISED)


def test_a_multicast_lands_in_each_cta_of_its_mask_on_its_own_barrier() -> None:
    program = build(
        "INIT barrier=0; INIT barrier=1; INIT barrier=2; TMA_LOAD barrier=1 access=1 item=9 cta_mask=5",
        barriers=tuple(Barrier(i, "b", 0) for i in range(3)),
        accesses=tuple(Access(Space.SHARED, i, 0, 64) for i in range(3)),
        tiles=(),
        ctas=3,
    )
    state, made = play(program, "0 0 0 0")
    flight = Flight(0, 3, 0, 64, 0, -1, 0, 0, 1, writes=True, item=9, after=0, sequence=1)
    there = flight._replace(barrier=2, first=4, end=5, sequence=2)
    assert state.flights == (flight, there)
    assert state.cells == (TORN, -1, -1, -1, TORN)
    assert (made[-1].faults, state.pcs, state.issued) == ((), (4,), 2)
    state, _ = play(program, "~ ~", state)
    assert [b.tx for b in state.barriers] == [-64, 0, -64]
    assert (state.cells, state.flights) == ((9, -1, -1, -1, 9), ())


def test_a_multicast_races_in_each_cta_on_its_own() -> None:
    fields: dict[str, Any] = {
        "barriers": (Barrier(0, "b", 0), Barrier(1, "b", 0)),
        "accesses": (Access(Space.SHARED, 0, 0, 64), Access(Space.SHARED, 1, 0, 64)),
        "tiles": (),
        "ctas": 2,
    }
    one = build("INIT; TMA_LOAD barrier=1 access=1 item=8; TMA_LOAD item=9 cta_mask=3", **fields)
    assert play(one, "0 0 0")[1][-1].faults == (Fault(FaultKind.RACE, 0, 2, 1, 1, 0, 0, 1),)
    none = build("INIT; TMA_LOAD barrier=1 access=1 item=8; TMA_LOAD item=9 cta_mask=1", **fields)
    assert play(none, "0 0 0")[1][-1].faults == ()


def test_wait_group_waits_for_closed_groups_of_its_own_engine() -> None:
    code = ("WRITE item=1; TRANSFER_READ engine=BULK; COMMIT engine=BULK barrier=-1; WRITE access=1 item=2; "
            "TRANSFER_READ engine=BULK access=1; COMMIT engine=BULK barrier=-1; "
            "TRANSFER_READ engine=BULK access=1; WAIT_GROUP engine=WGMMA; WAIT_GROUP engine=BULK groups=1; "
            "WAIT_GROUP engine=BULK groups=0; WRITE access=1 item=3")  # fmt: skip
    program = build(code, slots=2)
    state, made = play(program, "0 " * 9)
    assert state.commits == (2, 0, 0, 0)
    assert [f.group for f in state.flights] == [0, 1, 2]
    assert made[-1] == Step(state, blocked=own_channel(program, 0)), "one group too many is unfinished"
    state, made = play(program, "~ 0 0", state)
    assert [m.blocked for m in made] == [-1, -1, own_channel(program, 0)]
    assert made[0].signalled == own_channel(program, 0)
    state, made = play(program, "~ 0", state)
    assert made[-1].blocked == -1, "the transfer after the last commit is in no closed group"
    assert faults(play(program, "0", state)[1]) == [FaultKind.RACE], "and so may still be reading"


def test_a_store_in_pieces_signals_its_agent_with_the_last_only() -> None:
    program = build("WRITE item=1; TRANSFER_READ engine=BULK bytes=64")
    _, made = play(program, "0 0 ~16 ~")
    assert [m.signalled for m in made] == [-1, -1, -1, own_channel(program, 0)]


@pytest.mark.parametrize(("engine", "index"), [("BULK", 0), ("CP_ASYNC", 1), ("WGMMA", 2), ("TCGEN05", 3)])
def test_every_engine_counts_its_own_groups_for_each_agent(engine: str, index: int) -> None:
    program = build("", f"TRANSFER_WRITE engine={engine} item=3; COMMIT engine={engine} barrier=-1; "
                    f"WAIT_GROUP engine={engine}; READ item=3")  # fmt: skip
    state, made = play(program, "1 1 1")
    assert state.commits == tuple(int(i == 4 + index) for i in range(8))
    assert made[-1].blocked == own_channel(program, 1)
    state, made = play(program, "~ 1 1", state)
    assert faults(made) == []
    assert state == initial_state(program)._replace(pcs=(0, 4), commits=state.commits, issued=1, cells=(3,))


def test_a_tcgen05_commit_arrives_when_the_mmas_before_it_are_done() -> None:
    mma = "TRANSFER_READ engine=TCGEN05 item=1"
    program = build(f"INIT count=1; WRITE item=1; {mma}; {mma}; COMMIT engine=TCGEN05 barrier=0; {mma}", "WAIT")
    state, made = play(program, "0 0 0 0 0 0")
    assert [f.after for f in state.flights] == [0, 0, 3, 0]
    assert made[4].state.barriers == (word(1, 1),)
    state, made = play(program, "~ ~ ~ 1", state)
    assert [m.signalled for m in made] == [own_channel(program, 0)] * 2 + [0, -1]
    assert (state.pcs, state.barriers, len(state.flights)) == ((6, 1), (word(1, 1, 0, 1),), 1)


def test_a_commit_that_arrives_too_often_says_how_many_were_pending() -> None:
    code = "INIT count=1; COMMIT engine=TCGEN05 barrier=0; CP_ASYNC_ARRIVE lanes=32 noinc=1"
    _, made = play(build(code), "0 0 0 ~ ~")
    assert [m.faults for m in made[-2:]] == [(), (Fault(FaultKind.OVER_ARRIVAL, 0, 2, 0, 32, 1),)]


def test_a_commit_with_nothing_before_it_still_arrives_later() -> None:
    program = build("INIT count=1; COMMIT engine=TCGEN05 barrier=0", "WAIT")
    state, made = play(program, "0 0 1")
    assert made[-1].blocked == 0
    state, made = play(program, "~ 1", state)
    assert state.pcs == (2, 1)
