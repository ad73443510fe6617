"""The wrong twins: what their docstrings claim, a plain search of all schedules, and `check` say the same."""

from __future__ import annotations

import re
from functools import cache
from itertools import product

import pytest

from pipesim.findings.catalog import MEMORY_ORDER
from pipesim.lang.protocol import Protocol
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.program import Program
from pipesim.protocols.broken import BROKEN
from pipesim.protocols.broken.ring import right_ring
from pipesim.prove.check import Check, How, check
from pipesim.prove.search.breadth_first import Exploration, explore
from tests.support.lanes import slow_but

MOST_STATES = 30_000
SMALL = 3000  #: states that `check` may visit where it searches
FAST = [*BROKEN][::4]  #: twins that the fast lane searches
CLAIM = re.compile(r"^ *(\S.*): (proved|[A-Z_]+(?:, [A-Z_]+)*)$", re.MULTILINE)

Size = dict[str, int]


def around(s: int) -> list[int]:
    """No tile, one, and around one and two laps of a ring of ``s`` stages."""
    return sorted({0, 1, s - 1, s, s + 1, 2 * s, 2 * s + 1})


def ring_sizes(*stages: int) -> list[Size]:
    return [{"stages": s, "tiles": n} for s in stages for n in around(s)]


def k_sizes(*k_iters: int) -> list[Size]:
    return [{"stages": s, "tiles": n, "k_iters": k} for s, n, k in product((1, 2), (0, 1, 2, 3), k_iters)]


def cluster_sizes() -> list[Size]:
    return [{"stages": 1, "tiles": n} for n in range(4)] + [{"stages": 2, "tiles": n} for n in range(3)]


def peeled() -> list[Size]:
    return k_sizes(0, 1, 2)


def slots() -> list[Size]:
    return [{"slots": s, "tiles": n} for s in (1, 2) for n in around(s)]


SIZES: dict[str, list[Size]] = {
    "peer_not_waited_for": cluster_sizes(),
    "multicast_misses_a_cta": cluster_sizes(),
    "peer_arrives_uncounted": cluster_sizes(),
    "peer_counted_and_silent": cluster_sizes(),
    "exit_under_a_remote_arrive": cluster_sizes(),
    "peer_expects_nothing": cluster_sizes(),
    "phase_toggles_every_tile": ring_sizes(1, 2, 3),
    "phase_toggles_a_stage_early": ring_sizes(1, 2, 3),
    "consumer_arrives_twice": ring_sizes(1, 2, 3),
    "store_not_waited_for": slots(),
    "store_wait_too_deep": slots(),
    "store_not_committed": slots(),
    "consumer_peels_a_step": peeled(),
    "producer_peels_a_step": peeled(),
    "counters_restart_with_every_tile": [
        *k_sizes(0, 1, 2, 3, 4),
        *({"stages": s, "tiles": 2, "k_iters": k} for s, k in ((2, 5), (2, 7), (3, 4), (3, 6))),
    ],
    "consumer_stops_early": [{**size, "missing": m} for size in ring_sizes(1, 2) for m in range(size["tiles"] + 1)],
    "one_number_for_two_pairs": [{"tiles": n} for n in range(2)],
}


def sizes(name: str) -> list[Size]:
    if name in SIZES:
        return SIZES[name]
    has_stages = "stages" in BROKEN[name].__annotations__
    return ring_sizes(1, 2) if has_stages else [{"tiles": n} for n in range(4)]


def claimed(twin: object, size: Size) -> set[str]:
    """The kinds of the first line of the docstring whose condition holds at this size; none if it says proved."""
    for condition, kinds in CLAIM.findall(twin.__doc__ or ""):
        if condition == "else" or eval(condition, {"__builtins__": {}}, dict(size)):
            return set() if kinds == "proved" else set(kinds.split(", "))
    raise AssertionError("a claim for every size")


@cache
def flat(name: str, *size: tuple[str, int]) -> Program:
    return BROKEN[name](**dict(size)).flatten()


@cache
def searched(name: str, *size: tuple[str, int]) -> Exploration:
    return explore(flat(name, *size), MOST_STATES, reduced=False)


def checked(name: str, size: Size) -> Check:
    return check(flat(name, *size.items()), SMALL)


def kinds(exploration: Exploration) -> set[str]:
    assert exploration.complete
    return {kind.name for kind in exploration.kinds}


@pytest.mark.parametrize("name", slow_but(FAST, BROKEN))
def test_the_docstring_says_what_the_search_finds(name: str) -> None:
    found = {tuple(size.items()): kinds(searched(name, *size.items())) for size in sizes(name)}
    assert found == {tuple(size.items()): claimed(BROKEN[name], size) for size in sizes(name)}


@pytest.mark.parametrize("name", slow_but(FAST, BROKEN))
def test_check_does_not_contradict_the_search(name: str) -> None:
    for size in sizes(name):
        judge, said = searched(name, *size.items()), checked(name, size)
        assert said.verdict in (judge.verdict, Verdict.UNKNOWN), size
        assert {refutation.kind for refutation in said.refutations} <= judge.kinds, size
        assert (said.verdict is Verdict.UNKNOWN) == (said.how is How.NOTHING), size


@pytest.mark.parametrize("name", slow_but(FAST, BROKEN))
def test_a_fault_that_bites_somewhere_is_refuted_there(name: str) -> None:
    """An engine that knows nothing would pass the test before: `unknown` contradicts no agent."""
    bites = [size for size in sizes(name) if claimed(BROKEN[name], size)]
    assert [size for size in bites if checked(name, size).verdict is not Verdict.REFUTED] == []
    assert bites or name == "producer_runs_on"


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_the_right_ring_is_proved_at_every_size(stages: int) -> None:
    for tiles in around(stages):
        program = right_ring(stages, tiles).flatten()
        assert (check(program).verdict, check(program).how) == (Verdict.PROVED, How.CERTIFICATE)
        assert explore(program, MOST_STATES, reduced=False).verdict is Verdict.PROVED


def test_every_twin_is_named_after_its_fault_and_claims_something_for_every_size() -> None:
    known = {kind.name for kind in FaultKind} | {Ending.DEADLOCK.name}
    for name, twin in BROKEN.items():
        assert (twin.__name__, twin().name) == (name, name)
        claims = CLAIM.findall(twin.__doc__ or "")
        assert claims, name
        assert claims[-1][0] == "else", name
        assert {kind for _, said in claims for kind in said.split(", ")} <= known | {"proved"}, name
        assert isinstance(twin(), Protocol)


def test_the_twins_show_every_kind_of_fault_that_a_protocol_can_have() -> None:
    """What is missing is about single instructions; or memory order, which no schedule shows (test_memory_order.py).

    And warps, 32 threads each, never overrun a multiple of 32; no protocol branches (test_outcomes.py), and none is
    read from PTX (tests/ptx/emulate/test_lanes.py).
    """
    shown = {kind for name in BROKEN for size in sizes(name) for kind in claimed(BROKEN[name], size)}
    missing = {kind.name for kind in FaultKind} | {Ending.DEADLOCK.name}
    assert missing - shown - {kind.name for kind in MEMORY_ORDER} == {
        "ARRIVE_COUNT",
        "TX_EDGE",
        "NO_COMPLETE",
        "STALE_STATE",
        "BARRIER_OVERRUN",
        "TWO_OUTCOMES",
        "LANES_APART",
    }
