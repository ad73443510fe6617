"""Schedules without a move to spare, held against the plainest way to leave one out."""

import random
from collections.abc import Sequence
from functools import cache

import pytest

from pipesim.findings.catalog import NO_MOVE_SHOWS
from pipesim.model.machine import initial_state
from pipesim.model.moves import Kind, Move, attempt, canonical, make, moves
from pipesim.model.program import Program
from pipesim.prove.check import check
from pipesim.prove.counterexample.confirm import refutation
from pipesim.prove.counterexample.play import Play
from pipesim.prove.counterexample.shorten import shorten
from pipesim.prove.refutation import Refutation
from pipesim.targets import find
from tests.support.lanes import long_after, slow_but
from tests.support.mistakes import BROKEN
from tests.support.random_programs.rings import random_ring

BITES = {"epilogue_over_operands": {"tiles": 2}}  #: where the default sizes show nothing

Named = tuple[Kind, object, int]  # kind, agent or flight, bytes (-1: the rest)


def end_of(found: Refutation) -> object:
    """What must stay the same."""
    if found.fault is not None:
        return found.fault.kind, found.fault.agent, found.fault.pc
    assert found.deadlock is not None
    return frozenset((b.agent, b.barrier, b.parity, b.line) for b in found.deadlock.blocked)


def named(program: Program, schedule: Sequence[Move]) -> list[Named]:
    """The moves with their flights by operation and place, not by where they stand in a state."""
    state = canonical(initial_state(program))
    found: list[Named] = []
    for move in schedule:
        if move.kind == Kind.LAND:
            flight = state.flights[move.who]
            rest = -1 if move.nbytes == flight.remaining else move.nbytes
            found.append((Kind.LAND, (flight.agent, flight.pc, flight.barrier, flight.first), rest))
        else:
            found.append((Kind(move.kind), move.who, 0))
        state = make(program, state, move).state
    return found


def walked(program: Program, names: Sequence[Named]) -> Play | None:
    """These moves, each in its place and nothing else; None if one of them is not possible there."""
    play = Play(program)
    for kind, who, nbytes in names:
        if play.faults:
            return None
        if kind is Kind.LAND:
            places = [n for n, f in enumerate(play.state.flights) if (f.agent, f.pc, f.barrier, f.first) == who]
            if not places:
                return None
            left = play.state.flights[places[0]].remaining
            move = Move(Kind.LAND, places[0], left if nbytes < 0 else nbytes)
        else:
            assert isinstance(who, int)
            move = Move(kind, who)
        if move not in moves(program, play.state):
            return None
        play.make(move)
    return play


def spared(program: Program, found: Refutation) -> list[int]:
    """The moves that can be left out: what is left ends in the same way."""
    names = named(program, found.schedule)
    can = []
    for n in range(len(names)):
        play = walked(program, [*names[:n], *names[n + 1 :]])
        shown = refutation(play) if play is not None else None
        if shown is not None and end_of(shown) == end_of(found):
            can.append(n)
    return can


@cache
def of_twin(name: str) -> tuple[Program, tuple[Refutation, ...]]:
    program = BROKEN[name](**BITES.get(name, {})).flatten()
    return program, check(program, max_states=3000).refutations


def require_short(program: Program, found: Refutation) -> Refutation:
    short = shorten(program, found)
    assert end_of(short) == end_of(found)
    assert len(short.schedule) <= len(found.schedule)
    again = refutation(Play(program, short.schedule))
    assert again == short, "the schedule replays to what it says"
    assert walked(program, named(program, short.schedule)) is not None, "every move is possible where it stands"
    assert spared(program, short) == []
    assert shorten(program, short) == short
    return short


@pytest.mark.sampled(0, 20)
@pytest.mark.parametrize("name", [name for name in BROKEN if name != "producer_runs_on"])
def test_no_move_of_a_twins_schedule_can_be_left_out(name: str) -> None:
    program, refutations = of_twin(name)
    assert refutations
    for found in refutations:
        if found.kind not in NO_MOVE_SHOWS:
            require_short(program, found)


def test_some_schedules_of_the_twins_had_moves_to_spare() -> None:
    """The twin: what comes from the proof is not short already, and what tells so is not blind."""
    left_out = {
        name: len(found.schedule) - len(shorten(program, found).schedule)
        for name in ("two_producers_one_counted", "initialised_by_both", "consumer_does_not_wait")
        for program, (found, *_) in [of_twin(name)]
    }
    assert left_out == {"two_producers_one_counted": 5, "initialised_by_both": 5, "consumer_does_not_wait": 1}
    program, (found, *_) = of_twin("initialised_by_both")
    assert spared(program, found)


def random_refutation(program: Program, seed: int) -> Refutation | None:
    """Where moves made at random lead to, None if they lead to no harm."""
    rng = random.Random(seed)
    play = Play(program)
    while not play.faults and (possible := moves(program, play.state)):
        play.make(rng.choice(possible))
    return refutation(play)


@pytest.mark.parametrize("first", long_after(1, slow_but([], range(0, 300, 30))))
def test_no_move_of_a_random_programs_schedule_can_be_left_out(first: int) -> None:
    seen = shorter = 0
    for seed in range(first, first + 30):
        program = random_ring(seed, mutated=1.0)
        for found in (*check(program, max_states=1).refutations, random_refutation(program, seed)):
            if found is not None and found.kind not in NO_MOVE_SHOWS:
                seen += 1
                shorter += len(require_short(program, found).schedule) < len(found.schedule)
    assert seen >= 20
    assert shorter >= 2


def test_a_schedule_that_wanders_comes_back_to_what_matters() -> None:
    """The consumer's first read, behind all that the producer can do and copies that land in any order and in parts."""
    program = BROKEN["expects_half"](stages=3, tiles=3).flatten()
    play = Play(program)
    while play.advance(0) or play.advance(1):
        pass
    for place, nbytes in ((2, 32), (0, 32), (2, 32)):  # the last behind the first: another place names another copy
        play.make(Move(Kind.LAND, place, nbytes))
    while not play.faults and play.advance(1):
        pass
    found = refutation(play)
    assert found is not None
    short = require_short(program, found)
    assert (len(found.schedule), len(short.schedule)) == (24, 16)
    assert [move for move in short.schedule if move.kind == Kind.LAND] == [Move(Kind.LAND, 0, 32)]


def test_a_bound_of_the_work_leaves_a_schedule_that_ends_in_the_same_way() -> None:
    program, (found, *_) = of_twin("used_after_inval")
    for most in (0, 1, 10, 100):
        short = shorten(program, found, most_moves=most)
        assert end_of(short) == end_of(found)
        assert refutation(Play(program, short.schedule)) == short


@pytest.mark.slow
def test_a_long_schedule_is_shortened_within_its_bound() -> None:
    program = find("conv_epilogue").build({})
    found, _ = check(program).refutations
    short = shorten(program, found, most_moves=5_000)
    assert len(found.schedule) > 1_000
    assert end_of(short) == end_of(found)


def test_a_move_is_attempted_exactly_if_it_is_possible() -> None:
    """In every state of some schedules, every move that could be named."""
    for seed in range(0, 40, 4):
        program = random_ring(seed, mutated=1.0)
        for found in check(program, max_states=1).refutations:
            play = Play(program)
            for made in found.schedule:
                possible = moves(program, play.state)
                sizes = {flight.remaining for flight in play.state.flights} | {0, 16, 32, 64}
                named_moves = [Move(kind, who) for kind in (Kind.STEP, Kind.OPEN, Kind.FAIL) for who in range(-1, 4)]
                named_moves += [Move(Kind.LAND, n, size) for n in range(len(play.state.flights) + 1) for size in sizes]
                for move in named_moves:
                    result = attempt(program, play.state, move)
                    assert (result is not None) == (move in possible), (seed, move)
                    assert result is None or result == make(program, play.state, move)
                play.make(made)
