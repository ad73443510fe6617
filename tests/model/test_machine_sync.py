"""The machine on named barriers, the cluster barrier, jumps and marks."""

import pytest

from pipesim.model.finding import Fault, FaultKind
from pipesim.model.machine import Step, initial_state, pass_over, step
from tests.support.small_programs import build, play

SYNC = "BAR_SYNC threads=64"


def test_the_first_to_come_waits_and_the_last_opens_the_barrier() -> None:
    program = build(SYNC, SYNC)
    fresh = initial_state(program)
    state, made = play(program, "0")
    assert made[0] == Step(state, blocked=1)
    assert state == fresh._replace(holds=(1, 0), named=((32, 64, 0),))
    assert step(program, state, 0) == Step(state, blocked=1), "asking again does not arrive again"
    state, made = play(program, "1", state)
    assert made[0] == Step(state, signalled=1)
    assert state == fresh._replace(pcs=(0, 1), holds=(1, 0), named=((0, 0, 1),))
    state, made = play(program, "0", state)
    assert state == fresh._replace(pcs=(1, 1), named=((0, 0, 1),))


def test_a_generation_can_be_reused_while_a_slow_waiter_still_sleeps_in_the_last() -> None:
    program = build(SYNC, f"{SYNC}; BAR_ARRIVE threads=64", f"BAR_ARRIVE threads=64; {SYNC}")
    state, made = play(program, "0 1 1 2")
    assert [m.blocked for m in made] == [1, -1, -1, -1]
    assert state.named == ((0, 0, 2),)
    assert (state.pcs, state.holds) == ((0, 2, 1), (1, 0, 0))
    state, made = play(program, "0 2", state)
    assert state.pcs == (1, 2, 1)
    assert state.named == ((32, 64, 2),), "agent 0 left the first generation, agent 2 waits in the third"
    assert made[-1].blocked == 1


def test_an_arrive_does_not_wait() -> None:
    program = build("BAR_ARRIVE threads=64; WORK", SYNC)
    state, made = play(program, "0 0 1")
    assert [m.blocked for m in made] == [-1, -1, -1]
    assert state == initial_state(program)._replace(pcs=(2, 1), named=((0, 0, 1),))


@pytest.mark.parametrize(
    ("codes", "moves", "fault"),
    [
        ((SYNC, "BAR_SYNC threads=96"), "0 1", Fault(FaultKind.BARRIER_THREADS, 1, 0, -1, 96, 64)),
        (("BAR_SYNC threads=48",), "0", Fault(FaultKind.BARRIER_THREADS, 0, 0, -1, 48, 0)),
        (("BAR_SYNC threads=0",), "0", Fault(FaultKind.BARRIER_THREADS, 0, 0, -1, 0, 0)),
        (("BAR_ARRIVE threads=96 lanes=64",) * 2, "0 1", Fault(FaultKind.BARRIER_OVERRUN, 1, 0, -1, 128, 96)),
        ((SYNC, SYNC), "0 1", None),
    ],
)
def test_disagreement_and_overrun(codes: tuple[str, ...], moves: str, fault: Fault | None) -> None:
    state, made = play(build(*codes), moves)
    assert made[-1].faults == ((fault,) if fault else ())
    assert fault is None or state.pcs[fault.agent] == 1, "the machine moves on; the driver decides whether to stop"


def test_named_barriers_of_two_numbers_do_not_meet() -> None:
    program = build(SYNC, "BAR_SYNC named_barrier=1 threads=64", named_barriers=((0, 1), (0, 2)))
    state, made = play(program, "0 1")
    assert [m.blocked for m in made] == [1, 2]
    assert state.named == ((32, 64, 0), (32, 64, 0))


def test_the_cluster_barrier_opens_with_the_last_arrival_and_can_be_used_again() -> None:
    twice = "CLUSTER_ARRIVE; CLUSTER_WAIT; CLUSTER_ARRIVE; CLUSTER_WAIT"
    program = build(twice, twice)
    fresh = initial_state(program)
    state, made = play(program, "0 0")
    assert made[-1] == Step(state, blocked=2)
    assert state == fresh._replace(pcs=(1, 0), cluster=(1, 0), cluster_held=(0, -1))
    state, made = play(program, "1 1 1", state)
    assert [(m.blocked, m.signalled) for m in made] == [(-1, 2), (-1, -1), (-1, -1)]
    assert state == fresh._replace(pcs=(1, 3), cluster=(1, 1), cluster_held=(0, 1))
    state, made = play(program, "1 0 0 0 1", state)
    assert [(m.blocked, m.signalled) for m in made] == [(2, -1), (-1, -1), (-1, 2), (-1, -1), (-1, -1)]
    assert state == fresh._replace(pcs=(4, 4), cluster=(0, 2))


@pytest.mark.parametrize("code", ["CLUSTER_WAIT", "CLUSTER_ARRIVE; CLUSTER_ARRIVE"])
def test_cluster_arrive_and_wait_alternate(code: str) -> None:
    program = build(code, "CLUSTER_ARRIVE")
    _, made = play(program, "0 " * (code.count(";") + 1))
    assert made[-1].faults == (Fault(FaultKind.CLUSTER_ARRIVE, 0, code.count(";")),)
    _, made = play(build("CLUSTER_ARRIVE; CLUSTER_WAIT", "CLUSTER_ARRIVE"), "0 1 0")
    assert [m.faults for m in made] == [(), (), ()]


def test_a_jump_is_taken_on_its_value_and_skips_forward() -> None:
    code = "INIT count=1; TEST_WAIT parity=1 register=0; JUMP_IF register=0 value={} skip=2; ARRIVE; ARRIVE; WORK"
    taken, _ = play(build(code.format(1)), "0 0 0")
    assert taken.pcs == (5,)
    passed, _ = play(build(code.format(0)), "0 0 0")
    assert passed == taken._replace(pcs=(3,))
    to_the_end, _ = play(build("JUMP_IF register=0 value=0 skip=1; WORK"), "0")
    assert to_the_end.pcs == (2,)


def test_fences_work_and_marks_move_their_agent_and_nothing_else() -> None:
    code = "FENCE fence=1; WORK cycles=9; LOOP_BEGIN trips=2; LOOP_NEXT; LOOP_END; SETMAXNREG registers=40"
    program = build(code)
    state = initial_state(program)
    for pc in range(1, 7):
        moved = step(program, state, 0)
        assert moved == Step(initial_state(program)._replace(pcs=(pc,)))
        state = moved.state


@pytest.mark.parametrize("most", [1, 3, 99])
def test_operations_without_effect_are_passed_over_as_their_steps_would(most: int) -> None:
    program = build("WORK; FENCE; WORK; LOOP_BEGIN; LOOP_END; BAR_SYNC threads=64; WORK", SYNC)
    state = stepped = initial_state(program)
    passed = pass_over(program, state, 0, most)
    while stepped.pcs[0] < min(most, 5):  # the sixth has an effect
        stepped = step(program, stepped, 0).state
    assert passed == stepped
    assert pass_over(program, passed, 1, most) == passed, "the other agent has nothing to pass over"
