"""Matrix engines on the machine: an agent's MMAs end in order, a commit follows them, a multicast goes to peers."""

from typing import Any

import pytest

from pipesim.errors import ProtocolError
from pipesim.lang.intrinsics import (
    elect,
    elect_mma_arrive,
    mma_arrive_multicast,
    predicated,
    umma_arrive_leader_cta,
    umma_arrive_peer_cta,
)
from pipesim.lang.protocol import Protocol
from pipesim.model.finding import FaultKind
from pipesim.model.machine import TORN, land, own_channel
from pipesim.model.moves import can_land
from pipesim.model.ops import Engine, Op, Space
from pipesim.model.tables import Access, Agent, Barrier
from tests.support.small_programs import build, play

TWO = "TRANSFER_WRITE engine=WGMMA item=1; TRANSFER_WRITE engine=WGMMA item=2"


def test_accumulation_into_one_tile_is_no_race_and_ends_in_order() -> None:
    program = build(TWO + "; READ item=2", slots=1)
    state, made = play(program, "0 0")
    assert [step.faults for step in made] == [(), ()]
    first, second = state.flights
    assert (can_land(program, state, first), can_land(program, state, second)) == (True, False)
    state = land(program, state, first).state
    assert state.cells[0] == TORN  # the second still writes it
    assert can_land(program, state, second)
    _, made = play(program, "0", state)
    assert [fault.kind for step in made for fault in step.faults] == [FaultKind.RACE]
    state = land(program, state, second).state
    assert (state.cells[0], state.flights) == (2, ())
    _, made = play(program, "0", state)
    assert [step.faults for step in made] == [()]


@pytest.mark.parametrize(
    "code",
    [
        TWO.replace("engine=WGMMA item=2", "engine=TCGEN05 item=2"),  # another engine
        TWO.replace("WGMMA", "BULK"),  # an engine that keeps no order
        "TRANSFER_WRITE engine=WGMMA item=1; WRITE item=2",
    ],
)
def test_what_has_no_order_races(code: str) -> None:
    _, made = play(build(code, slots=1), "0 0")
    assert [fault.kind for step in made for fault in step.faults] == [FaultKind.RACE]


SHARED_TILE = "TRANSFER_WRITE engine=TCGEN05 item=7; TRANSFER_READ engine=TCGEN05 item="


def test_an_mma_reads_what_its_agents_copy_before_it_will_have_left() -> None:
    """tcgen05.cp fills the scale factors, the tcgen05.mma behind it reads them: the engine keeps them in order."""
    for item, expected in (("7", []), ("-1", []), ("6", [FaultKind.WRONG_ITEM])):
        _, made = play(build(SHARED_TILE + item, slots=1), "0 0")
        assert [fault.kind for step in made for fault in step.faults] == expected
    _, made = play(build("WRITE item=6; " + SHARED_TILE + "7; TRANSFER_WRITE engine=TCGEN05 item=8; "
                         "TRANSFER_READ engine=TCGEN05 item=8", slots=1), "0 0 0 0 0")  # fmt: skip
    assert [step.faults for step in made] == [()] * 5, "the latest counts"


def test_what_another_agent_or_engine_is_writing_is_no_operand() -> None:
    write, read = SHARED_TILE.split("; ")
    for codes, moves in (
        ((write, read + "7"), "0 1"),
        ((write + "; " + read.replace("TCGEN05", "WGMMA") + "7",), "0 0"),
    ):
        _, made = play(build(*codes, slots=1), moves)
        (fault,) = [fault for step in made for fault in step.faults]
        assert (fault.kind, fault.other_agent, fault.other_pc) == (FaultKind.RACE, 0, 0)


PARTS = (Access(Space.TENSOR, 0, 0, 64), Access(Space.TENSOR, 0, 32, 64), Access(Space.TENSOR, 0, 0, 96))


def test_two_results_that_overlap_in_part_have_no_order() -> None:
    """PTX orders MMAs on the same accumulator and of the same shape only; a read after or before either is ordered."""
    code = "TRANSFER_WRITE engine=TCGEN05 item=1; TRANSFER_WRITE engine=TCGEN05 access={} item=2"
    for access, expected in ((0, []), (1, [FaultKind.RACE]), (2, [FaultKind.RACE])):
        _, made = play(build(code.format(access), accesses=PARTS), "0 0")
        assert [fault.kind for step in made for fault in step.faults] == expected
    code = "TRANSFER_WRITE engine=TCGEN05 access=2 item=1; TRANSFER_READ engine=TCGEN05 access=1 item=1"
    assert [step.faults for step in play(build(code, accesses=PARTS), "0 0")[1]] == [(), ()]


def test_results_that_overlap_in_part_leave_nothing_torn() -> None:
    code = "TRANSFER_WRITE engine=TCGEN05 item=1; TRANSFER_WRITE engine=TCGEN05 access=1 item=2; READ access=2"
    program = build(code, accesses=PARTS)
    state, _ = play(program, "0 0 ~")
    assert state.cells == (1, TORN, TORN)
    state, made = play(program, "~ 0", state)
    assert (state.cells, made[-1].faults) == ((1, 2, 2), ())


def test_a_wait_for_a_wgmma_is_that_of_its_whole_warp_group() -> None:
    """One warp gives a tile back for all four: not before the others have read it too."""
    half = "TRANSFER_READ engine=WGMMA; COMMIT engine=WGMMA barrier=-1; WAIT_GROUP engine=WGMMA"
    first = "WRITE item=1; TRANSFER_READ engine=WGMMA; COMMIT engine=WGMMA barrier=-1; WAIT_GROUP engine=WGMMA; "
    program = build(first + "WRITE item=2", half, half, slots=1, agents=warps(0, 3, 4))
    assert program.warp_groups == ((0, 1), (0, 1), (2,))
    state, made = play(program, "0 0 0 2 2 ~ 0")  # the first lands its own
    assert made[-1].blocked == own_channel(program, 1), "the other has not closed its group"
    state, made = play(program, "1 1 0", state)
    assert [m.signalled for m in made] == [-1, own_channel(program, 1), -1]
    assert made[-1].blocked == own_channel(program, 1), "the other still reads"
    mine = next(f for f in state.flights if f.agent == 1)
    landed = land(program, state, mine)
    assert landed.signalled == own_channel(program, 1)
    state, made = play(program, "0 1", landed.state)
    assert [m.blocked for m in made] == [-1, -1]


def test_other_engines_and_warps_without_a_wgmma_are_not_waited_for() -> None:
    half = "TRANSFER_READ engine=WGMMA; COMMIT engine=WGMMA barrier=-1; WAIT_GROUP engine=WGMMA"
    program = build("WRITE item=1; " + half, "WORK", half.replace("WGMMA", "BULK"), agents=warps(0, 1, 2))
    assert program.warp_groups == ((0,), (0,), (0,))
    _, made = play(program, "0 2 2 0 0 ~ 2 ~ 0")
    assert [m.blocked for m in made] == [-1] * 9


def warps(*numbers: int) -> tuple[Agent, ...]:
    return tuple(Agent(0, n, (1 << 32) - 1, "mma", i) for i, n in enumerate(numbers))


def test_a_commit_follows_what_was_issued_before_and_not_what_comes_later() -> None:
    program = build(
        "INIT count=1; TRANSFER_READ engine=TCGEN05; COMMIT engine=TCGEN05 barrier=0; TRANSFER_READ engine=TCGEN05"
        "; COMMIT engine=TCGEN05 barrier=0", slots=1,
    )  # fmt: skip
    state, _ = play(program, "0 0 0 0 0")
    read, commit, later, last = state.flights
    assert [can_land(program, state, f) for f in state.flights] == [True, False, False, False]
    state = land(program, state, read).state
    assert [can_land(program, state, f) for f in state.flights] == [True, True, False]
    state = land(program, state, later).state  # a later MMA does not wait for the earlier commit's signal
    assert [can_land(program, state, f) for f in state.flights] == [True, False]
    arrived = land(program, state, commit)
    assert (arrived.signalled, arrived.faults) == (0, ())
    assert land(program, arrived.state, last).state.barriers[0].done == 2


CLUSTER: dict[str, Any] = {
    "agents": tuple(Agent(cta, 0, 1, "mma", 0) for cta in range(2)),
    "barriers": tuple(Barrier(cta, "empty", 0) for cta in range(2)),
    "accesses": tuple(Access(Space.SHARED, cta, 0, 64) for cta in range(2)),
    "tiles": (),
    "ctas": 2,
}


def test_a_multicast_commit_arrives_in_every_cta_of_its_mask() -> None:
    wait = "WAIT barrier=1 parity=0"
    code = "INIT barrier=0; INIT barrier=1; ENGINE_WORK engine=TCGEN05 cycles=9; "
    code += "COMMIT_MULTICAST engine=TCGEN05 cta_mask=3"
    program = build(code, wait, **CLUSTER)
    state, made = play(program, "0 0 0 0 ~ ~ 1")
    assert [m.signalled for m in made[-3:]] == [0, 1, -1]
    assert [(b.done, b.pending) for b in state.barriers] == [(1, 1), (1, 1)]
    assert (state.pcs, state.flights) == ((4, 1), ())


def test_a_commit_to_a_cta_that_has_exited_is_a_fault() -> None:
    code = "INIT barrier=0; INIT barrier=1; COMMIT_MULTICAST engine=TCGEN05 cta_mask=2; WORK cycles=1"
    for peer, expected in (("WORK cycles=1", [FaultKind.EXITED_CTA]), ("WORK cycles=1; WORK cycles=1", [])):
        state, made = play(build(code, peer, **CLUSTER), "0 0 0 1 ~")
        assert [fault.kind for step in made for fault in step.faults] == expected
        assert state.flights == ()


# what is recorded


def recorded(cluster: int, body: Any) -> list[list[tuple[int, ...]]]:
    p = Protocol("p", cluster=cluster)
    storage = p.mbarriers("b", 2, count=1)
    tile = p.smem("tile", 2, 64)
    acc = p.tmem("acc", 2, 1024)

    @p.role("mma")
    def mma(w: Any) -> None:
        body(w, storage, tile, acc)

    prologue = {Op.INIT, Op.FENCE, Op.BAR_SYNC, Op.CLUSTER_ARRIVE, Op.CLUSTER_WAIT}
    return [[op for op in code if op[0] not in prologue] for code in p.flatten().code]


def test_an_mma_is_work_reads_and_writes() -> None:
    def body(w: Any, storage: Any, tile: Any, acc: Any) -> None:
        with w.elect_one():
            w.mma(Engine.TCGEN05, reads=[(tile[1], 3)], writes=[(acc[0], 4)], cycles=128)
            w.commit(Engine.TCGEN05, storage[1])

    (code,) = recorded(1, body)
    engine = int(Engine.TCGEN05)
    assert code == [
        (Op.ENGINE_WORK, engine, 128),
        (Op.TRANSFER_READ, engine, 0, 64, 3),
        (Op.TRANSFER_WRITE, engine, 1, 1024, 4),
        (Op.COMMIT, engine, 1),
    ]


def test_the_elected_lane_commits_and_no_other() -> None:
    def body(w: Any, storage: Any, tile: Any, acc: Any) -> None:
        e = elect()
        elect_mma_arrive(storage[0], e)
        elect_mma_arrive(storage[0], 0)
        with predicated(e):
            mma_arrive_multicast(storage[1], 3)
        umma_arrive_leader_cta(storage[0])
        umma_arrive_peer_cta(storage[0])

    engine = int(Engine.TCGEN05)
    zero, one = recorded(2, body)
    assert zero[:2] == [(Op.COMMIT, engine, 0), (Op.COMMIT_MULTICAST, engine, 1, 3)]
    assert one[:2] == [(Op.COMMIT, engine, 2), (Op.COMMIT_MULTICAST, engine, 3, 3)]
    assert zero[2:] == one[2:] == [(Op.ARRIVE, 0, 32, 0, -1, 0), (Op.ARRIVE, 2, 32, 0, -1, 0)]


@pytest.mark.parametrize(
    ("body", "fact"),
    [
        (lambda w, s, t, a: w.commit(Engine.TCGEN05, s[0]), "mma: 32 lanes execute tcgen05.commit"),
        (lambda w, s, t, a: w.mma(Engine.TCGEN05, reads=[(t[0], 0)]), "mma: 32 lanes execute tcgen05.mma"),
        (lambda w, s, t, a: w.mma(Engine.BULK, reads=[(t[0], 0)]), "mma: BULK is not a matrix engine"),
        (lambda w, s, t, a: s[0].mapa(1).wait(0), "mma of CTA 0 waits for, or initialises, a barrier of CTA 1"),
        (lambda w, s, t, a: s[0].mapa(2).arrive(), "mma: a barrier of CTA 2"),
    ],
)
def test_what_cannot_be_meant_is_refused(body: Any, fact: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        recorded(2, body)
    assert caught.value.fact == fact
    assert "test_mma.py" in caught.value.place
