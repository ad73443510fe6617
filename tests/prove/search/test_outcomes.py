"""Two outcomes, and what is left at exit: each with a twin in which nothing is to be said."""

import pytest

from pipesim import Fence, Protocol, Warp
from pipesim.findings.catalog import report_fault
from pipesim.model.coverage import Assumption, Strictness
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.machine import finished, initial_state
from pipesim.model.moves import canonical, make, moves
from pipesim.model.ops import Engine, Op, Operation, Space
from pipesim.model.program import Program
from pipesim.model.tables import ALL_LANES, Access, Agent, Barrier, Tile
from pipesim.prove.assumed import assumed_by
from pipesim.prove.check import How, check
from pipesim.prove.counterexample.confirm import shown_by_code
from pipesim.prove.counterexample.leftovers import LeftKind, Leftover, advisories, assumed_at_exit, leftovers
from pipesim.prove.counterexample.play import Play
from pipesim.prove.repair.side_effects import leaves_more
from pipesim.prove.search.breadth_first import explore, outcomes
from tests.support.random_programs.exits import SYNC, one_in_each_cta, pair_load
from tests.support.random_programs.rings import random_ring

GO, FIRST, SECOND, LET = range(4)  #: barriers, all of one arrival
COUNTS = [(Op.INIT, barrier, 1) for barrier in range(4)]
MEET = (Op.BAR_SYNC, 0, 96, 32)


def flat(*codes: list[tuple[int, ...]], space: Space = Space.SHARED) -> Program:
    """Three agents behind the init of four barriers of one arrival; two slots of 64 bytes."""
    whole = [[*(COUNTS if agent == 0 else []), MEET, *code] for agent, code in enumerate([*codes, [], []][:3])]
    code = tuple(tuple(tuple(map(int, op)) for op in agent) for agent in whole)
    return Program(
        name="flat",
        params={},
        agents=tuple(Agent(0, agent, ALL_LANES, f"r{agent}", 0) for agent in range(3)),
        barriers=tuple(Barrier(0, "b", n) for n in range(4)),
        accesses=(Access(space, 0, 0, 64), Access(space, 0, 64, 64)),
        tiles=(Tile("t", space, 0, 0, 64, 2),),
        code=code,
        lines=tuple(tuple(range(len(agent))) for agent in code),
        sources=tuple(f"flat:{n}" for n in range(max(map(len, code)))),
        named_barriers=((0, 0),),
        registers=1,
        smem_bytes=256,
    )


def arrive(barrier: int) -> tuple[int, ...]:
    return (Op.ARRIVE, barrier, 1, 0, -1, 0)


def wait(barrier: int) -> tuple[int, ...]:
    return (Op.WAIT, barrier, 0, 0)


def test_a_cell_that_a_try_decides_about_ends_in_two_ways() -> None:
    """The second agent writes only if its try says yes. Where it waits instead, there is one end."""
    maybe = flat([arrive(GO)], [(Op.TEST_WAIT, GO, 0, 0, 0), (Op.JUMP_IF, 0, 0, 1), (Op.WRITE, 1, 5)])
    said = outcomes(maybe, 1_000)
    assert said.complete
    assert said.different is not None
    assert (sorted(said.different.items), said.different.agent, said.different.access) == ([-1, 5], -1, 1)
    ends = [Play(maybe, schedule) for schedule in (said.different.one, said.different.other)]
    assert [(play.ended, play.faults) for play in ends] == [(True, ())] * 2
    cell = maybe.cells[1][0]
    assert tuple(play.state.cells[cell] for play in ends) == said.different.items

    waited = outcomes(flat([arrive(GO)], [wait(GO), (Op.WRITE, 1, 5)]), 1_000)
    assert (waited.complete, waited.different) == (True, None)


def chosen(*, tried: bool) -> Program:
    """The third agent reads the slot before the second item is let in, or after: as its try, or nothing, decides."""
    writer = [(Op.WRITE, 0, 1), arrive(FIRST), wait(LET), (Op.WRITE, 0, 2), arrive(SECOND)]
    asked = [(Op.TEST_WAIT, GO, 0, 0, 0)] if tried else [wait(GO)]
    before = [(Op.JUMP_IF, 0, 1, 2), arrive(LET), wait(SECOND)]
    after = [(Op.JUMP_IF, 0, 0, 2), arrive(LET), wait(SECOND)]
    return flat(writer, [arrive(GO)], [wait(FIRST), *asked, *before, (Op.READ, 0, -1), *after])


def test_a_read_that_names_no_item_sees_two() -> None:
    program = chosen(tried=True)
    said = outcomes(program, 5_000)
    assert said.different is not None
    assert (said.different.agent, said.different.pc, said.different.access) == (2, 6, 0)
    assert sorted(said.different.items) == [1, 2]
    assert explore(program).verdict is Verdict.PROVED, "nothing raced"
    assert outcomes(chosen(tried=False), 5_000).different is None


def test_a_read_that_may_be_left_out_is_an_outcome() -> None:
    program = flat(
        [(Op.WRITE, 0, 3), arrive(GO)], [(Op.TEST_WAIT, GO, 0, 0, 0), (Op.JUMP_IF, 0, 0, 1), (Op.READ, 0, -1)]
    )
    said = outcomes(program, 1_000)
    assert said.different is not None
    assert (said.different.agent, said.different.pc, sorted(said.different.items)) == (1, 3, [-1, 3])


def test_a_try_that_only_spares_a_wait_is_one_outcome() -> None:
    code = [(Op.TEST_WAIT, GO, 0, 0, 0), (Op.JUMP_IF, 0, 1, 1), wait(GO), (Op.READ, 0, -1)]
    said = outcomes(flat([(Op.WRITE, 0, 3), arrive(GO)], code), 1_000)
    assert (said.complete, said.different) == (True, None)


def test_what_goes_wrong_and_a_limit_say_nothing_of_outcomes() -> None:
    assert not outcomes(chosen(tried=True), 5).complete
    race = outcomes(flat([(Op.WRITE, 0, 1)], [(Op.WRITE, 0, 2)]), 1_000)
    assert (race.complete, race.different) == (False, None)


STORE = [(Op.WRITE, 0, 1), (Op.TRANSFER_READ, Engine.BULK, 0, 64, 1), (Op.COMMIT, Engine.BULK, -1)]
MULTIPLY = [(Op.WRITE, 0, 1), (Op.TRANSFER_READ, Engine.TCGEN05, 0, 64, 1), (Op.COMMIT, Engine.TCGEN05, GO)]
#: The group that the agent waits for is over, the arrival of the commit on the barrier need not be.
GROUPED = [*MULTIPLY, (Op.COMMIT, Engine.TCGEN05, -1), (Op.WAIT_GROUP, Engine.TCGEN05, 0)]
COPY = [(Op.TRANSFER_WRITE, Engine.CP_ASYNC, 0, 64, 1), (Op.CP_ASYNC_ARRIVE, GO, 1, 1)]


@pytest.mark.parametrize(
    ("code", "said", "waited"),
    [
        (STORE, ["a store from t[0]"], (Op.WAIT_GROUP, Engine.BULK, 0)),
        (MULTIPLY, ["an MMA from t[0]", "a commit on b[0]"], wait(GO)),
        (GROUPED, ["a commit on b[0]"], wait(GO)),
        (COPY, ["a copy into t[0]", "an arrival of cp.async on b[0]"], wait(GO)),
    ],
    ids=["store", "commit", "commit beside a group", "cp.async"],
)
def test_what_no_agent_waits_for_is_under_way_when_its_cta_ends(
    code: list[tuple[int, ...]], said: list[str], waited: tuple[int, ...]
) -> None:
    """An assumption, and a finding with --strict-exit, with the same places."""
    program = flat(code)
    told = assumed_at_exit(program, leftovers(program))
    assert [each.what for each in told] == [f"r0: {each}" for each in said]
    assert {each.kind for each in told} == {Assumption.EXIT}
    assert set(told) <= set(assumed_by(program))
    strict = program.with_strictness(Strictness({Assumption.EXIT}))
    found = [each for each in shown_by_code(strict) if each.kind is FaultKind.UNDER_WAY_AT_EXIT]
    assert [program.line(each.fault.agent, each.fault.pc) for each in found if each.fault] == [told[0].lines[0]]
    assert assumed_at_exit(strict, ()) == () == shown_by_code(program)
    right = flat([*code, waited])
    assert assumed_at_exit(right, leftovers(right)) == ()
    assert shown_by_code(right.with_strictness(Strictness({Assumption.EXIT}))) == ()


@pytest.mark.parametrize("meet", [(), SYNC])
def test_work_of_a_cta_may_be_under_way_at_its_end_though_others_wait_for_it(meet: tuple[Operation, ...]) -> None:
    program = one_in_each_cta(*((*SYNC, *code, *meet) for code in pair_load(0, 1)))
    told = [(left.agent, left.pc) for left in leftovers(program) if left.what is LeftKind.UNDER_WAY]
    assert told == ([] if meet else [(0, 4)])


def test_data_that_nobody_reads_is_told() -> None:
    program = flat([(Op.WRITE, 0, 1), arrive(GO)], [wait(GO)])
    assert leftovers(program) == (Leftover(LeftKind.UNREAD, 0, 5, 0),)
    assert leftovers(flat([(Op.WRITE, 0, 1), arrive(GO)], [wait(GO), (Op.READ, 0, 1)])) == ()
    stays = flat([(Op.WRITE, 0, 1), arrive(GO)], [wait(GO)], space=Space.GLOBAL)
    assert leftovers(stays) == (), "what a kernel leaves in global memory is its result"


UNREAD = ", unread: {} of 3 deliveries"
PART = " of which no agent reads 16 of 64 bytes, from byte 48 on: 1 of 3 deliveries"
#: By the bytes of the tile that are read at each of three steps: the items and what is told of them, all of one slot.
READ_OF_EACH: dict[tuple[int, ...], list[tuple[int, str]]] = {
    (64, 64, 64): [],
    (64, 0, 64): [(1, UNREAD.format(1))],
    (0, 0, 64): [(0, UNREAD.format(2))],
    (64, 64, 0): [(2, UNREAD.format(1))],
    (64, 48, 0): [(1, PART), (2, UNREAD.format(1))],
    (-1, -1, -1): [],
}


@pytest.mark.parametrize("read", READ_OF_EACH)
def test_each_tile_that_is_overwritten_before_it_is_read_is_told(read: tuple[int, ...]) -> None:
    """A tile that is updated (-1), as atomics do, is read."""
    p = Protocol("unread")
    tile, full, empty = p.smem("tile", 1, 64), p.mbarriers("full", 1, 1), p.mbarriers("empty", 1, 1)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for item, _ in enumerate(read):
                empty[0].wait(item + 1 & 1)
                full[0].expect_bytes(64)
                w.tma_load(tile[0], full[0], item=item)

    @p.role("math")
    def math(w: Warp) -> None:
        for item, nbytes in enumerate(read):
            full[0].wait(item & 1)
            if nbytes > 0:
                w.read(tile[0].part(0, nbytes))
            elif nbytes < 0:
                w.write(tile[0], 10 + item)
                w.fence(Fence.PROXY_ASYNC)
            w.sync_warp()
            with w.elect_one():
                empty[0].arrive()

    program = p.flatten()
    told = [each.claim for each in advisories(program, leftovers(program)) if each.role == "load"]
    assert told == [
        f"load leaves data in tile[0] (item {item}, counted by full[0]){said}" for item, said in READ_OF_EACH[read]
    ]
    assert check(program).verdict is Verdict.PROVED


@pytest.mark.parametrize("other", [1, 0])
def test_a_change_with_which_bytes_are_no_longer_read_leaves_more(other: int) -> None:
    """Another slot is read than the one that is written, or a slot before it is written again; not by an order of both,
    nor where a hang ends.
    """
    write, read = [(Op.WRITE, 0, 1), arrive(GO)], (Op.READ, 0, -1)
    race = flat(write, [read])
    assert not leaves_more(race, flat(write, [wait(GO), read]))
    assert not leaves_more(flat(write, [wait(FIRST), read]), flat(write, [wait(GO), read]))
    assert leaves_more(race, flat(write, [wait(GO), (Op.READ, other, -1)] if other else [wait(GO)]))
    again = [*write, wait(FIRST), (Op.WRITE, 0, 2), arrive(SECOND)]
    assert leaves_more(flat(again, [wait(GO), read, arrive(FIRST), wait(SECOND), read]),
                       flat(again, [wait(GO), read, arrive(FIRST)]))  # fmt: skip


def test_a_run_that_does_not_end_leaves_nothing_to_tell() -> None:
    assert leftovers(flat([(Op.WRITE, 0, 1), wait(GO)])) == ()


def flying(program: Program) -> set[tuple[int, int]]:
    """The transfers that are under way in some state in which every agent has finished."""
    start = canonical(initial_state(program))
    seen, queue = {start}, [start]
    found: set[tuple[int, int]] = set()
    for state in queue:
        if all(finished(program, state, agent) for agent in range(len(program.agents))):
            found |= {(flight.agent, flight.pc) for flight in state.flights if flight.first < flight.end}
        for move in moves(program, state):
            after = make(program, state, move).state
            if after not in seen:
                seen.add(after)
                queue.append(after)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, pytest.param(60, marks=pytest.mark.long)])
def test_one_run_knows_what_may_be_in_flight_at_exit(first: int) -> None:
    """Against all states, for programs in which nothing goes wrong."""
    some = 0
    for seed in range(first, first + 60):
        program = random_ring(seed, mutated=0.9)
        seen = explore(program, 1_500, reduced=False)
        if seen.verdict is Verdict.PROVED:
            told = {
                (left.agent, left.pc)
                for left in leftovers(program)
                if left.what is LeftKind.UNDER_WAY and left.access >= 0
            }
            assert told == flying(program), seed
            some += bool(told)
    assert some >= 2


def test_check_refutes_what_ends_in_two_ways() -> None:
    """Both schedules are shown, each with what it leaves; where the wait is not left to chance it is proved."""
    said = check(chosen(tried=True))
    assert (said.verdict, said.how) == (Verdict.REFUTED, How.SCHEDULE)
    one, other = (refuted.fault for refuted in said.refutations)
    assert one is not None
    assert other is not None
    assert {one.kind, other.kind} == {FaultKind.TWO_OUTCOMES}
    assert {one.found, other.found} == {1, 2}
    assert (one.found, one.expected) == (other.expected, other.found)
    assert report_fault(chosen(tried=True), one).claim.endswith(
        f"item {one.found} in t[0] after one, item {other.found} after the other"
    )
    assert check(chosen(tried=False)).verdict is Verdict.PROVED


def test_what_a_try_leaves_in_memory_is_told_at_the_write() -> None:
    maybe = flat([arrive(GO)], [(Op.TEST_WAIT, GO, 0, 0, 0), (Op.JUMP_IF, 0, 0, 1), (Op.WRITE, 1, 5)])
    (one, other) = check(maybe).refutations
    assert one.fault is not None
    assert (one.fault.agent, one.fault.pc) == (1, 3)
    assert {one.fault.found, one.fault.expected} == {-1, 5}
    assert "nothing" in report_fault(maybe, one.fault).claim
    assert other.schedule != one.schedule
