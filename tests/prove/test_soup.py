"""The engines of the proof on programs of every operation, and what such programs have shown."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path

import pytest

from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.ops import Engine, Op, Operation, Space
from pipesim.model.program import Access, Program
from pipesim.prove.check import How, check
from pipesim.prove.search import explore

HERE = Path(__file__).resolve().parent
SOUP = runpy.run_path(str(HERE / "soup.py"))["soup"]
PROGRAM = runpy.run_path(str(HERE / "promela_examples.py"))["program"]


MEET: list[Operation] = [(Op.CLUSTER_ARRIVE, 0), (Op.CLUSTER_WAIT, 0)]


@pytest.mark.parametrize("seed", range(0, 200, 20))
def test_certificate_and_reductions_against_the_plain_search(seed: int) -> None:
    settled = 0
    for program in map(SOUP, range(seed, seed + 20)):
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
    program: Program = PROGRAM("two CTAs", [[(Op.WRITE, 0, 7), *MEET, *first], [*MEET, *second]], ctas=2)
    return replace(program, accesses=tuple(Access(space, 0, a.offset, a.nbytes) for a in program.accesses))


READS = [
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
