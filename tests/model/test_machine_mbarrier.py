"""The machine on mbarriers: what each operation leaves behind in the whole state."""

import pytest

from pipesim.model.barrier import INVALID, LIVE, BarrierState
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.machine import Flight, Step, finished, initial_state, land, own_channel, step, with_answer
from pipesim.model.ops import Engine
from tests.support.small_programs import build, play


def word(expected: int, pending: int, tx: int = 0, done: int = 0) -> BarrierState:
    return BarrierState(expected, pending, tx, done, LIVE)


def test_at_the_start_nothing_has_happened() -> None:
    program = build("INIT barrier=0 count=1", "", barriers=2, slots=2, registers=2)
    state = initial_state(program)
    assert tuple(state) == (
        (0, 0), ((0, 0), (0, 0)), (0, 0), (BarrierState(),) * 2, ((0, 0, 0),), (0, 0), (-1, -1), (), (0,) * 8, 0,
        (-1, -1),
    )  # fmt: skip
    assert [finished(program, state, a) for a in (0, 1)] == [False, True]
    assert {state: 1}[state] == 1, "states are hashable"
    assert own_channel(program, 1) == 2 + 1 + 1 + 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INIT count=3", word(3, 3)),
        ("INIT count=3; ARRIVE count=2 expect=64", word(3, 1, 64)),
        ("INIT count=3; ARRIVE_DROP count=1 expect=16", word(2, 2, 16)),
        ("INIT count=3; ARRIVE_NO_COMPLETE count=2", word(3, 1)),
        ("INIT count=3; EXPECT_TX bytes=48", word(3, 3, 48)),
        ("INIT count=3; COMPLETE_TX bytes=48", word(3, 3, -48)),
        ("INIT count=3; INVAL", word(3, 3)._replace(life=INVALID)),
    ],
)
def test_an_operation_changes_its_barrier_and_its_agent_and_nothing_else(text: str, expected: BarrierState) -> None:
    program = build("", text + "; WORK", barriers=2)
    count = text.count(";") + 1
    state, made = play(program, "1 " * count)
    fresh = initial_state(program)
    assert state == fresh._replace(pcs=(0, count), barriers=(expected, fresh.barriers[1]))
    assert made[-1] == Step(state)


def test_the_arrive_that_completes_a_phase_signals_the_barrier() -> None:
    program = build("INIT barrier=1 count=2; ARRIVE barrier=1; ARRIVE barrier=1", barriers=2)
    state, made = play(program, "0 0 0")
    assert [m.signalled for m in made] == [-1, -1, 1]
    assert state.barriers[1] == word(2, 2, 0, 1)


def test_a_wait_blocks_until_its_phase_completes_and_then_moves_on() -> None:
    program = build("INIT count=1; WORK; ARRIVE", "WAIT parity=0")
    state, _ = play(program, "0")
    blocked = step(program, state, 1)
    assert blocked == Step(state, blocked=0)
    assert blocked.state is state
    state, made = play(program, "0 0 1", state)
    assert state == initial_state(program)._replace(pcs=(3, 1), barriers=(word(1, 1, 0, 1),))
    assert made[-1] == Step(state)


def test_a_wait_that_missed_two_phases_blocks_again_though_both_completed() -> None:
    """Parity aliasing, made visible by ``done``: the waiter of phase 0 comes when phase 1 has completed too."""
    program = build("INIT count=1; ARRIVE; ARRIVE", "WAIT parity=0")
    early, _ = play(program, "0 0 1")
    late, made = play(program, "0 0 0 1")
    assert early.pcs == (2, 1)
    assert (late.pcs, made[-1].blocked, late.barriers[0].done) == ((3, 0), 0, 2)


def test_a_try_leaves_its_answer_in_a_register_and_blocks_nobody() -> None:
    for test in ("TRY_WAIT", "TEST_WAIT"):
        program = build(f"INIT count=1; {test} parity=1 register=1; {test} parity=0 register=0; {test} parity=1")
        state, _ = play(program, "0 0 0 0")
        assert state == initial_state(program)._replace(pcs=(4,), registers=((0, 1),), barriers=(word(1, 1),))


def test_a_predicated_wait_is_skipped_on_a_true_answer_only() -> None:
    program = build("INIT count=1; TRY_WAIT parity=1 register=0; WAIT_UNLESS parity=0 register=0; WORK")
    state, _ = play(program, "0 0 0")
    assert state.pcs == (3,), "skipped: the try said true"
    missed = with_answer(program, play(program, "0 0")[0], 0, 1, 0)
    assert missed == play(program, "0 0")[0]._replace(registers=((0,),))
    assert step(program, missed, 0) == Step(missed, blocked=0), "PTX lets a try fail for no reason"
    always = build("INIT count=1; WAIT_UNLESS parity=0 register=-1")
    assert play(always, "0 0")[1][-1].blocked == 0


def test_a_wait_by_state_waits_for_the_phase_of_its_own_arrive() -> None:
    code = "INIT count=2; ARRIVE register=0; WAIT_STATE register=0; TEST_STATE state_register=0 register=1"
    program = build(code, "ARRIVE; ARRIVE count=2; WORK")
    state, made = play(program, "0 0 0")
    assert made[-1] == Step(state, blocked=0)
    assert state.registers == ((0 << 20 | 2, 0), (0, 0))
    state, made = play(program, "1 0 0", state)
    assert state == initial_state(program)._replace(
        pcs=(4, 1), registers=((2, 1), (0, 0)), barriers=(word(2, 2, 0, 1),)
    )
    stale, made = play(program, "0 0 1 1 1 0 0")
    assert [m.faults for m in made[-2:]] == [
        (Fault(FaultKind.STALE_STATE, 0, 2, 0, 2),), (Fault(FaultKind.STALE_STATE, 0, 3, 0, 2),)
    ]  # fmt: skip
    assert (stale.pcs, stale.barriers) == ((4, 3), (word(2, 2, 0, 2),))


def test_pending_count_reads_the_count_before_the_arrive() -> None:
    program = build("INIT count=7; ARRIVE count=3 register=0; PENDING_COUNT state_register=0 register=1")
    state, _ = play(program, "0 0 0")
    assert state.registers == ((7, 7),)


def test_cp_async_arrive_waits_for_the_copies_before_it() -> None:
    copy = "TRANSFER_WRITE engine=CP_ASYNC access=0 item=5"
    program = build(f"INIT count=1; {copy}; CP_ASYNC_ARRIVE lanes=4; ARRIVE", slots=1)
    state, made = play(program, "0 0 0 0")
    first = Flight(0, 1, -1, 64, 0, Engine.CP_ASYNC, 0, 0, 1, writes=True, item=5, after=0, sequence=1)
    arrival = Flight(0, 2, 0, 0, 4, Engine.CP_ASYNC, -1, 0, 0, writes=False, item=0, after=2, sequence=2)
    assert state == initial_state(program)._replace(
        pcs=(4,), barriers=(word(1, 4),), flights=(first, arrival), issued=2, cells=(-2,)
    )
    with pytest.raises(StopIteration):
        play(program, "~ ~ ~", state)
    state, made = play(program, "~ ~", state)
    assert [m.signalled for m in made] == [own_channel(program, 0), 0]
    assert state == initial_state(program)._replace(pcs=(4,), barriers=(word(1, 1, 0, 1),), issued=2, cells=(5,))


def test_cp_async_arrive_noinc_is_one_of_the_count() -> None:
    program = build("INIT count=4; CP_ASYNC_ARRIVE lanes=4 noinc=1")
    state, made = play(program, "0 0 ~")
    assert made[1].state.barriers == (word(4, 4),)
    assert (state.barriers, state.flights, made[-1].signalled) == ((word(4, 4, 0, 1),), (), 0)


def test_bytes_land_in_pieces_and_the_phase_ends_when_tx_touches_zero() -> None:
    """Half of the bytes expected, as seen on the chip: the phase is over with the tile still torn."""
    program = build("INIT count=1; ARRIVE expect=32; TMA_LOAD bytes=64 item=3", "WAIT parity=0; READ item=3")
    state, made = play(program, "0 0 0 ~32 1")
    assert made[3].signalled == 0
    assert state.pcs == (3, 1)
    assert state.flights[0].remaining == 32
    assert step(program, state, 1).faults == (Fault(FaultKind.RACE, 1, 1, -1, 0, 0, 0, 2),)
    whole, made = play(program, "0 0 0 ~ 1")
    assert (made[3].signalled, made[4].blocked) == (-1, 0), "the same copy in one piece never completes the phase"
    assert whole.barriers == (word(1, 0, -32),)


def test_landing_a_fault_is_told_and_the_word_stays() -> None:
    program = build("INIT count=1; TMA_LOAD bytes=64 item=3; INVAL")
    state, _ = play(program, "0 0 0")
    landed = land(program, state, state.flights[0])
    assert landed.faults == (Fault(FaultKind.INVALIDATED, 0, 1, 0, 64, 0),)
    assert landed.state == state._replace(flights=(), cells=(3,))
