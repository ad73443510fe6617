"""The engines of the proof on programs of every operation, and what such programs have shown."""

from dataclasses import replace

import pytest

from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.moves import run_canonically
from pipesim.model.ops import Engine, Fence, Op, Operation, Space
from pipesim.model.program import Program
from pipesim.model.tables import Access
from pipesim.prove.check import How, check
from pipesim.prove.search.breadth_first import explore
from tests.support.lanes import slow_but
from tests.support.promela_examples import example_program
from tests.support.random_programs.all_operations import random_operations

MEET: list[Operation] = [(Op.CLUSTER_ARRIVE, 0), (Op.CLUSTER_WAIT, 0)]


@pytest.mark.sampled(2, 6)
@pytest.mark.parametrize("seed", slow_but([0, 100], range(0, 200, 20)))
def test_certificate_and_reductions_against_the_plain_search(seed: int) -> None:
    settled = 0
    for program in map(random_operations, range(seed, seed + 20)):
        plain, reduced = explore(program, 40_000, reduced=False), explore(program, 40_000)
        assert plain.complete
        assert (reduced.kinds, reduced.outcomes) == (plain.kinds, plain.outcomes)
        said = check(program, max_states=1, one_memory=True)
        assert said.verdict in (plain.verdict, Verdict.UNKNOWN)
        assert {found.kind for found in said.refutations} <= plain.kinds
        settled += said.verdict is not Verdict.UNKNOWN
    assert settled > 10


def two_ctas(first: list[Operation], second: list[Operation], space: Space = Space.SHARED) -> Program:
    """Agent 0 in CTA 0, agent 1 in CTA 1; the accesses are to the memory of CTA 0."""
    program = example_program("two CTAs", [[(Op.WRITE, 0, 7), *MEET, *first], [*MEET, *second]], ctas=2)
    return replace(program, accesses=tuple(Access(space, 0, a.offset, a.nbytes) for a in program.accesses))


READS: list[list[Operation]] = [
    [(Op.READ, 0, 7)],
    [(Op.TRANSFER_READ, Engine.BULK, 0, 64, 7), (Op.COMMIT, Engine.BULK, -1), (Op.WAIT_GROUP, Engine.BULK, 0)],
]


@pytest.mark.parametrize("reads", READS)
def test_memory_of_a_cta_that_may_have_ended(reads: list[Operation]) -> None:
    program = two_ctas([], reads)
    assert explore(program, reduced=False).kinds == {FaultKind.EXITED_CTA}
    said = check(program, max_states=1, one_memory=True)
    assert (said.verdict, said.how) == (Verdict.REFUTED, How.SCHEDULE)
    assert [found.kind for found in said.refutations] == [FaultKind.EXITED_CTA]


@pytest.mark.parametrize("reads", READS)
def test_memory_of_a_cta_that_waits_for_its_reader(reads: list[Operation]) -> None:
    said = check(two_ctas(MEET, [*reads, *MEET]), max_states=1, one_memory=True)
    assert (said.verdict, said.how) == (Verdict.PROVED, How.CERTIFICATE)


def test_a_transfer_that_nobody_waits_for_may_outlive_the_cta() -> None:
    program = two_ctas(MEET, [READS[1][0], *MEET])
    assert explore(program, reduced=False).kinds == {FaultKind.EXITED_CTA}
    assert check(program, max_states=1, one_memory=True).verdict is Verdict.REFUTED


@pytest.mark.parametrize("reads", READS)
def test_global_memory_stays(reads: list[Operation]) -> None:
    assert check(two_ctas([], reads, Space.GLOBAL), max_states=1, one_memory=True).verdict is Verdict.PROVED


def test_a_cluster_wait_without_an_arrive_is_a_finding() -> None:
    said = check(two_ctas([], [(Op.CLUSTER_WAIT, 0)]), max_states=1)
    assert [found.kind for found in said.refutations] == [FaultKind.CLUSTER_ARRIVE]


def test_a_cta_without_agents_never_exits() -> None:
    program = two_ctas([], [(Op.INIT, 0, 1), (Op.ARRIVE, 0, 1, 0, -1, 0)])
    both = replace(program, agents=tuple(replace(agent, cta=1) for agent in program.agents))
    assert explore(program, reduced=False).kinds == {FaultKind.EXITED_CTA}
    assert explore(both, reduced=False).verdict is Verdict.PROVED
    assert check(both, max_states=1).verdict is Verdict.PROVED


MEET_TWICE: list[Operation] = [(Op.BAR_SYNC, 0, 64, 32)] * 2  # then it is agent 0 that goes on first
FREE, BUSY = 0, 1


def one_way(first: list[Operation], second: list[Operation]) -> Program:
    """Two agents of one CTA whose canonical run hides what another schedule shows."""
    inits: list[Operation] = [(Op.INIT, FREE, 1), (Op.INIT, BUSY, 1), (Op.FENCE, Fence.MBARRIER_INIT, 0)]
    return example_program("one way", [[*inits, *MEET_TWICE, *first], [*MEET_TWICE, *second]])


def accumulated(access: int) -> Program:
    """Two writes of an in-order engine; in the canonical run the first has landed when the second begins."""
    writes: list[Operation] = [(Op.TRANSFER_WRITE, Engine.TCGEN05, at, 32, 7) for at in (0, access)]
    between: Operation = (Op.WAIT, FREE, 0, 0)
    return one_way([writes[0], between, writes[1]], [(Op.ARRIVE, FREE, 1, 0, -1, 0)])


def token(register: int) -> Program:
    """The token of an arrive between a try and the wait that asks for its answer."""
    tried: list[Operation] = [(Op.TRY_WAIT, FREE, 0, 0, 0), (Op.ARRIVE, BUSY, 1, 0, register, 0)]
    waits: list[Operation] = [(Op.WAIT_UNLESS, FREE, 0, 0, 0), (Op.READ, 0, 7)]
    return one_way([(Op.WRITE, 0, 7), (Op.ARRIVE, FREE, 1, 0, -1, 0)], [*tried, *waits])


def raised(lanes: int) -> Program:
    """Two raises of a count in one phase; the first is taken back before the second, in the canonical run."""
    raises: Operation = (Op.CP_ASYNC_ARRIVE, BUSY, lanes, 0)
    between: Operation = (Op.WAIT, FREE, 0, 0)
    arrives: list[Operation] = [(Op.ARRIVE, bar, 1, 0, -1, 0) for bar in (FREE, BUSY)]
    return one_way([raises, between, raises, arrives[BUSY]], [arrives[FREE]])


def copied(nbytes: int) -> Program:
    """A copy that has landed before the phase it counts in is complete, in the canonical run."""
    copies: list[Operation] = [(Op.TMA_LOAD, BUSY, 0, nbytes, 7, 0), (Op.WAIT, FREE, 0, 0)]
    arrives: Operation = (Op.ARRIVE, BUSY, 1, nbytes, -1, 0)
    return one_way([*copies, arrives], [(Op.ARRIVE, FREE, 1, 0, -1, 0), (Op.WAIT, BUSY, 0, 0), (Op.READ, 0, 7)])


def completed(nbytes: int) -> Program:
    """Bytes that an agent takes off by hand are what the phase waits for, unless they are none."""
    arrives: Operation = (Op.ARRIVE, BUSY, 1, nbytes, -1, 0)
    writes: list[Operation] = [(Op.WRITE, 0, 7), (Op.COMPLETE_TX, BUSY, nbytes, 0)]
    return one_way(writes, [arrives, (Op.WAIT, BUSY, 0, 0), (Op.READ, 0, 7)])


@pytest.mark.parametrize(
    ("wrong", "right", "kinds"),
    [
        (accumulated(1), accumulated(0), {FaultKind.RACE}),
        (token(0), token(-1), {FaultKind.RACE, FaultKind.UNINITIALISED_READ}),
        (raised(600_000), raised(500_000), {FaultKind.ARRIVE_COUNT}),
        (copied(0), copied(64), {FaultKind.RACE}),
        (completed(0), completed(64), {FaultKind.RACE, FaultKind.UNINITIALISED_READ}),
    ],
)
def test_what_the_canonical_run_hides_is_no_proof(wrong: Program, right: Program, kinds: set[FaultKind]) -> None:
    for program in (wrong, right):
        assert run_canonically(program).finished
        assert not run_canonically(program).faults
    assert explore(wrong, reduced=False).kinds == kinds
    said = check(wrong, one_memory=True)
    assert said.verdict is Verdict.REFUTED
    assert {found.kind for found in said.refutations} <= kinds
    assert explore(right, reduced=False).verdict is Verdict.PROVED
    assert check(right, max_states=1, one_memory=True).how is How.CERTIFICATE
