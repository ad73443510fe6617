"""The search: pinned numbers of states, shortest schedules, and its limit."""

import pytest

from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.moves import Kind, moves
from pipesim.prove.counterexample.confirm import refutation
from pipesim.prove.counterexample.play import Play
from pipesim.prove.search.breadth_first import explore
from pipesim.targets import find, target_of
from tests.support.mistakes import BROKEN
from tests.support.small_programs import build

RINGS = {
    # stages, tiles, consumer warps: states of the plain search, of the reduced one
    (1, 0, 1): (24, 11),
    (1, 1, 1): (47, 20),
    (1, 3, 1): (95, 42),
    (2, 3, 1): (207, 44),
    (2, 5, 1): (351, 66),
    (2, 3, 2): (1_751, 65),
    (4, 8, 1): (2_183, 103),
}

PROTOCOLS = [
    # protocol, parameters: states of the plain search, of the reduced one
    ("cluster_multicast", {"stages": 1, "tiles": 1, "consumer_warps": 1}, 6_942, 315),
    ("persistent_scheduler", {"tiles": 0, "consumer_warps": 1}, 170, 31),
    ("persistent_scheduler", {"tiles": 2, "k_iters": 2, "stages": 2, "consumer_warps": 1}, 11_713, 120),
    ("two_copies_one_expected", {}, 160, 72),
    ("sync_counts_one_warp", {}, 75, 62),
    ("exit_under_a_remote_arrive", {}, 307, 57),
    ("store_not_waited_for", {}, 20, 17),
    ("commit_missing", {}, 60, 23),
    ("try_ignored", {}, 123, 86),
]


def ring(stages: int, tiles: int, warps: int, **more: int):
    return find("producer_consumer").build({"stages": stages, "tiles": tiles, "consumer_warps": warps, **more})


@pytest.mark.parametrize("shape", RINGS)
def test_the_states_of_a_ring_are_pinned(shape: tuple[int, int, int]) -> None:
    plain, reduced = (explore(ring(*shape), reduced=less) for less in (False, True))
    assert (plain.verdict, reduced.verdict) == (Verdict.PROVED, Verdict.PROVED)
    assert (plain.outcomes, reduced.outcomes, plain.complete, reduced.complete) == (1, 1, True, True)
    assert (plain.states, reduced.states) == RINGS[shape]


@pytest.mark.parametrize(("name", "params", "states", "fewer"), PROTOCOLS)
def test_the_states_of_a_protocol_are_pinned(name: str, params: dict[str, int], states: int, fewer: int) -> None:
    program = target_of(BROKEN[name]).build() if name in BROKEN else find(name).build(params)
    plain, reduced = (explore(program, reduced=less) for less in (False, True))
    assert (plain.states, reduced.states) == (states, fewer)
    assert (plain.verdict, plain.wrong, plain.outcomes) == (reduced.verdict, reduced.wrong, reduced.outcomes)
    assert (plain.complete, reduced.complete) == (True, True)


def test_a_limit_is_unknown_and_never_safe() -> None:
    seen = explore(ring(4, 8, 2), max_states=100)
    assert (seen.verdict, seen.complete, seen.refutations) == (Verdict.UNKNOWN, False, ())


def test_a_hang_is_found_with_a_shortest_schedule() -> None:
    """Upstream's order barrier in small: two arrivals before the first wait."""
    program = build("INIT; BAR_SYNC threads=64; ARRIVE; ARRIVE", "BAR_SYNC threads=64; WAIT")
    seen = explore(program)
    (found,) = (r for r in seen.refutations if r.end is Ending.DEADLOCK)
    assert seen.kinds == {Ending.DEADLOCK}
    again = refutation(Play(program, found.schedule))
    assert again is not None
    assert again.deadlock == found.deadlock
    assert len(found.schedule) == len(Play(program, found.schedule).moves)
    play = Play(program)
    for move in found.schedule:  # every move is one that was possible
        assert move in moves(program, play.state)
        play.make(move)
    assert moves(program, play.state) == []


def test_two_accesses_at_once_are_found_in_either_order() -> None:
    seen = explore(build("WRITE item=0", "READ"), reduced=False)
    assert seen.kinds == {FaultKind.RACE, FaultKind.UNINITIALISED_READ}
    first = {r.schedule[-1].kind for r in seen.refutations if r.kind is FaultKind.RACE}
    assert first == {Kind.OPEN}
