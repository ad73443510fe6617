"""The cluster barrier does not wait for agents that have ended, in every engine alike."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from pipesim.conform.diagnose.random_schedule import random_schedule
from pipesim.explain.phases import run_canonically
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.ops import Op, Operation
from pipesim.model.program import ALL_LANES, Agent, Barrier, Program
from pipesim.prove.check import How, check
from pipesim.prove.search.breadth_first import explore
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from tests.support.lanes import slow_but

ARRIVE, WAIT = (int(Op.CLUSTER_ARRIVE), 0), (int(Op.CLUSTER_WAIT), 0)
SYNC = (ARRIVE, WAIT)


def two(*codes: tuple[Operation, ...]) -> Program:
    """One agent in each CTA, the first of which initialises a barrier of its own."""
    inits = [((int(Op.INIT), a, 1),) for a in range(len(codes))]
    whole = [(*init, *code) for init, code in zip(inits, codes, strict=True)]
    return Program(
        name="exits",
        params={},
        agents=tuple(Agent(a, 0, ALL_LANES, f"r{a}", 0) for a in range(len(codes))),
        barriers=tuple(Barrier(a, "b", 0) for a in range(len(codes))),
        accesses=(),
        tiles=(),
        code=tuple(whole),
        lines=tuple((0,) * len(code) for code in whole),
        sources=("exits.py:1",),
        ctas=len(codes),
    )


def verdicts(program: Program) -> tuple[Verdict, Verdict, Verdict]:
    return check(program).verdict, explore(program).verdict, explore(program, reduced=False).verdict


def test_a_cta_that_returns_at_once_holds_nobody_up() -> None:
    program = two(SYNC * 2, ())
    assert program.leaves_cluster_barrier
    assert verdicts(program) == (Verdict.PROVED,) * 3
    assert check(program).how is How.SEARCH
    assert run_canonically(program).finished
    assert simulate(program, load_profile("h100")).outcome.value == "finished"


def test_one_that_has_arrived_and_ended_is_counted_once() -> None:
    assert verdicts(two(SYNC, (ARRIVE,), SYNC)) == (Verdict.PROVED,) * 3


def test_one_that_only_waits_elsewhere_is_waited_for() -> None:
    stuck = ((int(Op.WAIT), 1, 0, 0),)
    assert verdicts(two(SYNC, stuck)) == (Verdict.REFUTED,) * 3
    assert {shown.kind.value for shown in check(two(SYNC, stuck)).refutations} == {"deadlock"}


def test_what_comes_to_a_cta_that_has_returned_is_a_fault_as_before() -> None:
    remote = (*SYNC, (int(Op.ARRIVE), 1, 1, 0, -1, 0))
    found = check(two(remote, ()))
    assert {shown.kind for shown in found.refutations} == {FaultKind.EXITED_CTA}


def drawn(seed: int) -> Program:
    """Agents that synchronise unequally often, some of which wait for each other's barriers in between."""
    rng = random.Random(seed)
    agents = rng.choice([2, 2, 3])
    codes = []
    for _ in range(agents):
        code: list[Operation] = []
        for _ in range(rng.randint(0, 3)):
            code += rng.choice([SYNC, SYNC, SYNC, (ARRIVE,), ()])
            if rng.random() < 0.3:
                code.append((int(Op.ARRIVE), rng.randrange(agents), 1, 0, -1, 0))
            if rng.random() < 0.2:
                code.append((int(Op.WAIT), rng.randrange(agents), 0, 0))
        codes.append(tuple(code))
    return two(*(((*SYNC, *code)) for code in codes))


@pytest.mark.parametrize("first", slow_but([0], range(0, 2_000, 200)))
def test_the_engines_agree_on_random_exits(first: int) -> None:
    seen: Counter[object] = Counter()
    for seed in range(first, first + 200):
        program = drawn(seed)
        plain, reduced, said = explore(program, reduced=False), explore(program), check(program)
        assert (plain.verdict, plain.wrong, plain.outcomes) == (reduced.verdict, reduced.wrong, reduced.outcomes), seed
        assert said.verdict is plain.verdict, seed
        for n in range(5):
            walked = random_schedule(program, 10 * seed + n)
            kinds = {fault.kind for fault in walked.faults}
            assert kinds <= plain.kinds, seed
            assert walked.ended or kinds or plain.verdict is Verdict.REFUTED, seed
        seen[plain.verdict, program.leaves_cluster_barrier] += 1
    assert min(seen[Verdict.PROVED, True], seen[Verdict.REFUTED, True]) >= 10, seen
