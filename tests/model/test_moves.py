"""What may happen next: the answers that every driver chooses among, and that none of them has its own."""

import ast
from pathlib import Path

import pytest

import pipesim
from pipesim.model.coverage import Assumption, Strictness
from pipesim.model.machine import begin, initial_state, land
from pipesim.model.moves import (
    PIECE,
    Kind,
    Move,
    attempt,
    completing_size,
    fail_try,
    finds,
    first_to_land,
    held_up,
    landing_flights,
    landing_sizes,
    make,
    moves,
    of_agent,
    of_flight,
    opens,
)
from pipesim.model.tables import Agent, Barrier
from tests.support.small_programs import build, play

LOAD = "INIT count=1; ARRIVE expect={expect}; TMA_LOAD bytes=64 item=7"


@pytest.mark.parametrize(
    ("expect", "granularity", "sizes"),
    [
        (64, 0, (64,)),  # it completes the phase with its last byte
        (96, 0, (64,)),  # it does not complete it
        (40, 0, (40, 64)),  # the phase is complete before its last byte
        (64, 16, (16, 32, 48, 64)),
        (48, 16, (16, 32, 48, 64)),
        (40, 16, (16, 32, 40, 48, 64)),
        (64, 48, (48, 64)),
    ],
)
def test_how_many_bytes_may_land_at_once(expect: int, granularity: int, sizes: tuple[int, ...]) -> None:
    program = build(LOAD.format(expect=expect))
    state, _ = play(program, "0 0 0")
    (flight,) = state.flights
    assert landing_sizes(state, flight, granularity) == sizes
    assert completing_size(state, flight) == (expect if expect < 64 else 0)
    if not granularity:
        assert [move for move, _ in of_flight(program, state, 0)] == [Move(Kind.LAND, 0, size) for size in sizes]
        assert all(attempt(program, state, Move(Kind.LAND, 0, size)) is not None for size in sizes)
        assert attempt(program, state, Move(Kind.LAND, 0, 1)) is None


def test_no_part_completes_a_phase_that_lacks_arrivals() -> None:
    program = build("INIT count=2; ARRIVE expect=40; TMA_LOAD bytes=64 item=7")
    state, _ = play(program, "0 0 0")
    (flight,) = state.flights
    assert landing_sizes(state, flight) == (40, 64), "another arrive may complete it between the two"
    assert completing_size(state, flight) == 0


def test_what_counts_no_bytes_lands_whole() -> None:
    program = build("TRANSFER_WRITE engine=BULK bytes=64 item=1")
    state, _ = play(program, "0")
    (flight,) = state.flights
    assert landing_sizes(state, flight, PIECE) == (64,)


def test_an_access_opens_before_it_ends() -> None:
    program = build("WRITE item=1; READ item=1")
    state = initial_state(program)
    assert opens(program, state, 0)
    assert [move.kind for move, _ in of_agent(program, state, 0)] == [Kind.OPEN]
    state = begin(program, state, 0).state
    assert not opens(program, state, 0)
    assert [move.kind for move in moves(program, state)] == [Kind.STEP]
    assert opens(program, make(program, state, Move(Kind.STEP, 0)).state, 0)


def test_who_cannot_move() -> None:
    program = build("INIT count=1; WAIT", "BAR_SYNC threads=64", "")
    state, _ = play(program, "0")
    stopped = held_up(program, state, 0)
    assert stopped is not None
    assert (stopped.blocked, stopped.state) == (0, state)
    assert held_up(program, state, 1) is None, "it is yet to arrive"
    assert held_up(program, state, 2) is None, "it has ended"
    state, _ = play(program, "1", state)
    assert held_up(program, state, 1) is not None


def test_a_try_may_fail_whatever_it_finds() -> None:
    program = build(
        "INIT count=1; ARRIVE; TRY_WAIT register=0; ARRIVE register=1; TEST_STATE state_register=1 register=0"
    )
    state, _ = play(program, "0 0")
    assert finds(program, state, 0, 2)
    (yes, after), (no, other) = of_agent(program, state, 0)
    assert (yes.kind, no.kind) == (Kind.STEP, Kind.FAIL)
    assert other.state == fail_try(program, after.state, 0, 2)
    assert (after.state.registers[0][0], other.state.registers[0][0]) == (1, 0)
    state, _ = play(program, "0 0", state)
    assert finds(program, state, 0, 4)
    fresh, _ = play(program, "0")
    assert not finds(program, fresh, 0, 2), "the twin: nobody has arrived"
    tried = build("INIT count=1; TRY_WAIT register=0")
    state, _ = play(tried, "0")
    assert [move.kind for move, _ in of_agent(tried, state, 0)] == [Kind.STEP]


def test_what_must_land_before() -> None:
    """A commit follows its transfers; on an engine that works in order they follow each other."""
    program = build("INIT count=1; TRANSFER_WRITE engine=WGMMA item=1; TRANSFER_WRITE engine=WGMMA item=2; "
                    "COMMIT engine=WGMMA barrier=0")  # fmt: skip
    state, _ = play(program, "0 0 0 0")
    one, two, commit = state.flights
    assert landing_flights(program, state) == [(0, one)]
    assert [first_to_land(program, state, flight) for flight in (one, two, commit)] == [one, one, one]
    state = land(program, state, one).state
    assert [first_to_land(program, state, flight) for flight in (two, commit)] == [two, two]


@pytest.mark.parametrize(
    ("commits", "ordered"),
    [
        ("COMMIT engine=TCGEN05 barrier=0; COMMIT engine=TCGEN05 barrier=1", True),
        ("CP_ASYNC_ARRIVE barrier=0 lanes=32 noinc=1; CP_ASYNC_ARRIVE barrier=1 lanes=32 noinc=1", True),
        ("CP_ASYNC_ARRIVE barrier=0 lanes=16 noinc=1; CP_ASYNC_ARRIVE barrier=1 lanes=32 noinc=1", False),
        ("COMMIT engine=TCGEN05 barrier=0; CP_ASYNC_ARRIVE barrier=1 lanes=32 noinc=1", False),
    ],
)
def test_two_commits_of_one_thread_arrive_in_order_where_that_is_assumed(commits: str, ordered: bool) -> None:
    """PTX says after which work a commit arrives, and nothing of two commits of one thread."""
    begin = "INIT barrier=0 count=32; INIT barrier=1 count=32; TRANSFER_WRITE engine=TCGEN05 item=1; "
    program = build(begin + commits, barriers=2)
    state, _ = play(program, "0 0 0 0 0")
    work = next(flight for flight in state.flights if not flight.after)
    state = land(program, state, work).state
    first, second = state.flights
    strict = program.with_strictness(Strictness({Assumption.COMMITS}))
    assert landing_flights(program, state) == [(0, first), (1, second)][: 2 - ordered]
    assert first_to_land(program, state, second) == (first if ordered else second)
    assert landing_flights(strict, state) == [(0, first), (1, second)]
    state = land(strict, state, second).state
    assert state.barriers[0].pending == 32 > state.barriers[1].pending % 32, "the later commit has arrived first"


def test_the_arrivals_of_a_multicast_commit_have_no_order() -> None:
    agents = tuple(Agent(cta, 0, (1 << 32) - 1, "mma", cta) for cta in range(2))
    barriers = tuple(Barrier(cta, f"b{n}", 0) for n in range(2) for cta in range(2))
    both = "COMMIT_MULTICAST engine=TCGEN05 barrier={} cta_mask=3; ".format
    code = "INIT barrier=0 count=1; INIT barrier=2 count=1; " + both(0) + both(2)
    program = build(code, "WORK", agents=agents, barriers=barriers, ctas=2)
    state, _ = play(program, "0 0 0 0")
    assert [place for place, _ in landing_flights(program, state)] == [0, 1], "one of each CTA"


@pytest.mark.slow
def test_no_driver_has_an_answer_of_its_own() -> None:
    """What a try may answer is changed by ``moves`` alone, and no agent looks for the open access of an agent."""
    root = Path(pipesim.__file__).parent
    for path in sorted(root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if path.is_relative_to(root / "model") or not ("with_answer" in text or "OWN" in text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module == "pipesim.model.machine":
                assert "with_answer" not in {alias.name for alias in node.names}, path
            if isinstance(node, ast.Compare) and "OWN" in map(ast.unparse, node.comparators):
                assert ast.unparse(node.left) != "f.engine", path
