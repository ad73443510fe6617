"""The causal past of a failure: what is left of a schedule when all else is taken out still fails in the same way."""

import pytest

from pipesim.findings.catalog import NO_MOVE_SHOWS
from pipesim.model.ending import Ending
from pipesim.model.machine import initial_state
from pipesim.model.moves import Kind, Move, canonical, make, moves
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.prove.check import check
from pipesim.prove.counterexample.past import agents_to_show, core, past_of
from pipesim.prove.counterexample.play import Play
from pipesim.prove.counterexample.words import Part, final_states, schedule_lines
from pipesim.prove.refutation import Refutation
from tests.prove.counterexample.test_shorten import random_refutation
from tests.support.mistakes import BROKEN
from tests.support.random_programs.rings import random_ring


def kept(program: Program, found: Refutation, past: frozenset[int]) -> Play:
    """A play of the moves of the past only, each of which must be possible where it then stands."""
    whole, play = canonical(initial_state(program)), Play(program)
    for number, move in enumerate(found.schedule):
        if number in past:
            mine = move
            if move.kind == Kind.LAND:
                flight = whole.flights[move.who]
                key = (flight.agent, flight.pc, flight.barrier, flight.first)
                (place,) = [n for n, f in enumerate(play.state.flights) if (f.agent, f.pc, f.barrier, f.first) == key][
                    :1
                ]
                mine = Move(Kind.LAND, place, move.nbytes)
            assert mine in moves(program, play.state), (number, move)
            play.make(mine)
        whole = make(program, whole, move).state
    return play


def require_past(program: Program, found: Refutation) -> int:
    """The past alone fails in the same way; how many moves were not in it."""
    past = past_of(program, found)
    play = kept(program, found, past)
    if found.fault is not None and found.kind in NO_MOVE_SHOWS:
        assert play.state.pcs[found.fault.agent] > found.fault.pc
    elif found.fault is not None:
        kinds = {(f.kind, f.agent, f.pc) for f in play.faults}
        assert (found.fault.kind, found.fault.agent, found.fault.pc) in kinds
    else:
        assert found.deadlock is not None
        whole = Play(program, found.schedule)
        for agent in range(len(program.agents)):
            if program.agent_name(agent) in agents_to_show(found.deadlock):
                assert play.state.pcs[agent] == whole.state.pcs[agent]
    return len(found.schedule) - len(past)


@pytest.mark.sampled(20, 40)
@pytest.mark.parametrize("name", [name for name in BROKEN if name != "producer_runs_on"])
def test_the_past_of_a_twins_failure_fails_alone(name: str) -> None:
    program = BROKEN[name]().flatten()
    for found in check(program, max_states=3000).refutations:
        require_past(program, found)


@pytest.mark.slow
def test_the_past_of_a_random_programs_failure_fails_alone() -> None:
    beside = seen = 0
    for seed in range(400):
        program = random_ring(seed, mutated=1.0)
        found = random_refutation(program, seed)
        if found is not None:
            seen += 1
            beside += require_past(program, found) > 0
    assert seen > 100
    assert beside > 50, "the twin: not all of a schedule made at random matters"


def test_what_a_step_has_to_do_with_a_deadlock() -> None:
    """The consumer never gives back: the producer's wait is the cause, and the set-up is told apart."""
    program = BROKEN["consumer_never_arrives"](stages=1, tiles=2).flatten()
    (found,) = check(program).refutations
    assert found.deadlock is not None
    assert core(found.deadlock) == {"producer"}
    assert agents_to_show(found.deadlock) == {"producer", "consumer"}
    said = [(step.agent, step.short, step.note, step.part) for step in schedule_lines(program, found)]
    assert said == [
        ("producer", "init full[0] count 1", "", Part.SETUP),
        ("producer", "init empty[0] count 1", "", Part.FOCUS),
        ("producer", "fence mbarrier_init", "", Part.SETUP),
        ("producer", "sync named barrier 0", "", Part.SETUP),
        ("consumer", "sync named barrier 0", "", Part.SETUP),
        ("producer", "sync named barrier 0", "", Part.SETUP),
        ("producer", "wait empty[0]", "immediately", Part.FOCUS),
        ("producer", "arrive full[0] + expect 64", "", Part.PAST),
        ("producer", "copy → tile[0] (item 0)", "", Part.PAST),
        ("producer", "64 bytes land in tile[0] (item 0)", "completes phase 0", Part.PAST),
        ("consumer", "wait full[0]", "phase 0", Part.PAST),
        ("consumer", "read tile[0] (item 0) begins", "", Part.PAST),
        ("consumer", "read tile[0] (item 0)", "", Part.PAST),
    ]
    assert final_states(program, found) == {"producer": "waits for empty[0]", "consumer": "waits for full[0]"}
    phases = [(step.barrier, step.stage, step.phase) for step in schedule_lines(program, found)]
    assert phases[6:11] == [("empty", 0, -1), ("full", 0, 0), ("full", 0, 0), ("full", 0, 0), ("full", 0, 0)]


def test_a_try_tells_what_it_found() -> None:
    """Before the phase is complete it says no, behind it yes; it may also say no for no reason, which is a move."""

    def tries(*moves: Move) -> list[tuple[str, str]]:
        refuted = Refutation(Ending.FAULT, tuple(moves), None)
        return [(step.short, step.note) for step in schedule_lines(program, refuted) if "try" in step.short]

    program = BROKEN["try_ignored"](stages=1, tiles=1).flatten()
    set_up = [Move(Kind.STEP, 0)] * 4 + [Move(Kind.STEP, 1)] + [Move(Kind.STEP, 0)]
    loaded = [Move(Kind.STEP, 0)] * 3
    assert program.code[1][1][0] == Op.TRY_WAIT
    assert tries(*set_up, Move(Kind.STEP, 1)) == [("try full[0]", "false")]
    landed = [*set_up, *loaded, Move(Kind.LAND, 0, 64)]
    assert tries(*landed, Move(Kind.STEP, 1)) == [("try full[0]", "true")]
    assert tries(*landed, Move(Kind.FAIL, 1)) == [("try full[0] parity 0: false", "")]
