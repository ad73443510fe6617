"""Arrives that may be counted in the phase of another lap: proved where no agent can tell, and only there."""

import pytest

from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.ops import Op, Operation
from pipesim.model.program import Program
from pipesim.prove.certificate.canonical import CanonicalRun
from pipesim.prove.certificate.certificate import Certificate
from pipesim.prove.check import How, check
from pipesim.prove.refutation import Why
from tests.support.random_programs.exchanged import Code, assembled
from tools.judge_proof import judge

FULL, EMPTY = (0, 2), (1, 3)
SYNC: Code = [(Op.CLUSTER_ARRIVE, 0), (Op.CLUSTER_WAIT, 0)]
LAPS = 3


def arrive(bar: int, count: int = 1) -> Operation:
    return (Op.ARRIVE, bar, count, 0, -1, 0)


def two_ctas(*, laps_of_first: int = LAPS, early: bool = False, drains: bool = False) -> Program:
    """Both consumers arrive at the *empty* of both CTAs, and the loader of CTA 0 fills both tiles.

    ``early``: the consumer of CTA 1 arrives in CTA 0 before it has read; ``drains``: no meeting at the end, but both
    loaders wait for the last phase.
    """
    first, other, left, right = Code(), Code(), Code(), Code()
    for lap in range(LAPS):
        turn = lap % 2
        if lap < laps_of_first:
            first += [(Op.WAIT, FULL[0], turn, 0), (Op.READ, 0, lap + 1), arrive(EMPTY[0]), arrive(EMPTY[1])]
        read: Code = [(Op.READ, 1, lap + 1)]
        other += [(Op.WAIT, FULL[1], turn, 0), *([] if early else read), arrive(EMPTY[0])]
        other += [*(read if early else []), arrive(EMPTY[1])]
        left += [(Op.WAIT, EMPTY[0], turn ^ 1, 0)] if lap else []
        left += [(Op.WRITE, 0, lap + 1), arrive(FULL[0]), (Op.WRITE, 1, lap + 1), arrive(FULL[1])]
        right += [*([(Op.WAIT, EMPTY[1], turn ^ 1, 0)] if lap else []), arrive(FULL[1])]
    drain: list[Code] = [[], [], [(Op.WAIT, EMPTY[0], (LAPS - 1) % 2, 0)], [(Op.WAIT, EMPTY[1], (LAPS - 1) % 2, 0)]]
    end = drain if drains else [SYNC] * 4
    inits: Code = [
        (Op.INIT, FULL[0], 1),
        (Op.INIT, FULL[1], 2),
        (Op.INIT, EMPTY[0], 2),
        (Op.INIT, EMPTY[1], 2),
    ]
    codes = [[*SYNC, *code, *after] for code, after in zip((first, other, left, right), end, strict=True)]
    codes[0] = [*inits, (Op.FENCE, 0, 0), *codes[0]]
    return assembled(codes, [0, 1, 0, 1], 2, 2)


def doubts(program: Program) -> set[Why]:
    certificate = Certificate(program)
    CanonicalRun(program, [certificate]).to_end()
    certificate.close()
    return {doubt.why for doubt in certificate.doubts}


@pytest.mark.parametrize("drains", [False, True])
def test_arrives_in_two_ctas_by_one_instruction(drains: bool) -> None:
    program = two_ctas(drains=drains)
    assert doubts(program) == {Why.EARLY_PART}, "the phases are not the same in every schedule"
    found = check(program, max_states=1)
    assert (found.verdict, found.how, found.doubts) == (Verdict.PROVED, How.CERTIFICATE, ())


def test_an_arrive_before_the_read_is_refuted() -> None:
    found = check(two_ctas(early=True), max_states=1)
    assert found.verdict is Verdict.REFUTED
    assert {each.kind for each in found.refutations} <= {FaultKind.RACE, FaultKind.WRONG_ITEM}


def test_a_consumer_that_ends_a_lap_early_is_refuted() -> None:
    assert check(two_ctas(laps_of_first=LAPS - 1, drains=True), max_states=1).verdict is Verdict.REFUTED


def primed(*, waits_for: int, size: int = 1) -> Program:
    """Two consumers arrive at both *empty* barriers of their CTA before the first lap, for which the loader waits with
    the second ring alone (``waits_for`` 1) or with neither (0). One arrives with ``size``.
    """
    sizes = (1, size)
    consumers = [
        [arrive(EMPTY[0], s), arrive(EMPTY[1], s), (Op.WAIT, FULL[0], 0, 0), (Op.READ, 0, 1), arrive(EMPTY[0], s),
         (Op.WAIT, FULL[1], 0, 0), (Op.READ, 1, 1), arrive(EMPTY[1], s)] for s in sizes
    ]  # fmt: skip
    loader: Code = [(Op.ARRIVE, FULL[0], 1, 64, -1, 0), (Op.TMA_LOAD, FULL[0], 0, 64, 1, 0)]
    loader += [(Op.WAIT, EMPTY[1], 0, 0)] * waits_for
    loader += [(Op.WRITE, 1, 1), arrive(FULL[1]), (Op.WAIT, EMPTY[0], 1, 0), (Op.WRITE, 0, 2)]
    inits: Code = [
        (Op.INIT, FULL[0], 1), (Op.INIT, FULL[1], 1), (Op.INIT, EMPTY[0], sum(sizes)), (Op.INIT, EMPTY[1], sum(sizes)),
    ]  # fmt: skip
    codes = [[*SYNC, *code, *SYNC] for code in (loader, *consumers)]
    codes[0] = [*inits, (Op.FENCE, 0, 0), *codes[0]]
    return assembled(codes, [0, 0, 0], 2, 1)


def test_a_phase_before_the_first_lap_that_nobody_waits_for() -> None:
    program = primed(waits_for=1)
    assert doubts(program) == {Why.EARLY_PART, Why.EARLY_PASS}
    found = check(program, max_states=1)
    assert (found.verdict, found.how) == (Verdict.PROVED, How.CERTIFICATE)


def test_a_wait_that_may_look_before_all_have_arrived_once_is_refuted() -> None:
    assert check(primed(waits_for=0), max_states=1).verdict is Verdict.REFUTED


def test_arrives_of_different_sizes_are_not_exchanged() -> None:
    assert check(primed(waits_for=1, size=2), max_states=1).verdict is not Verdict.PROVED


@pytest.mark.slow
def test_random_programs_against_every_schedule() -> None:
    said = [word for seed in range(12) for word in judge(seed, "exchanged")]
    assert not [word for word in said if word.isupper()]
    assert min(said.count("right"), said.count("wrong")) > 2


def told_by_another(*, order: tuple[int, int]) -> Program:
    """The second consumer reads a tile between its two arrives at each *empty* barrier, first in this ``order``.

    The first one arrives again as soon as both have met; so that, for the loader, this arrive may
    come in the place of one by the second, which may not have reached the other barrier then.
    """
    again = EMPTY[0]
    first = [arrive(EMPTY[1]), arrive(again), *SYNC, arrive(again), arrive(EMPTY[1])]
    other = [*SYNC, *map(arrive, order), (Op.READ, 1, 1), arrive(EMPTY[1])]
    loader = [*SYNC, (Op.WAIT, again, 0, 0), (Op.WAIT, EMPTY[1], 1, 0), (Op.WRITE, 1, 2)]
    inits = [(Op.INIT, EMPTY[0], 2), (Op.INIT, EMPTY[1], 2), (Op.FENCE, 0, 0)]
    start = [*inits, (Op.WRITE, 1, 1), *SYNC]
    codes: list[Code] = [[*start, *loader, *SYNC], [*SYNC, *other, *SYNC], [*SYNC, *first, *SYNC]]
    return assembled(codes, [0, 0, 0], 2, 1)


@pytest.mark.parametrize("order", [(EMPTY[1], EMPTY[0]), (EMPTY[0], EMPTY[1])])
def test_an_arrive_says_nothing_of_another_by_the_same_instruction(order: tuple[int, int]) -> None:
    assert check(told_by_another(order=order), max_states=1).verdict is Verdict.REFUTED


@pytest.mark.parametrize("again", [False, True])
def test_a_phase_that_may_have_an_arrive_of_the_next_one_does_not_tell_that_all_have_come(again: bool) -> None:
    """A CTA may end, when it has seen the phase, before the first arrive has come from another CTA."""
    late = [*SYNC, SYNC[0], arrive(EMPTY[0]), SYNC[1]]
    twice = [*SYNC, *SYNC, *[arrive(EMPTY[0])] * (1 + again), arrive(EMPTY[1])]
    loader = [(Op.INIT, EMPTY[0], 2), (Op.INIT, EMPTY[1], 1), (Op.FENCE, 0, 0), *SYNC, *SYNC]
    loader += [(Op.WAIT, EMPTY[0], 0, 0), (Op.WAIT, EMPTY[1], 0, 0)]
    found = check(assembled([loader, late, twice], [0, 1, 1], 2, 1, ctas=2), max_states=1)
    assert found.verdict is (Verdict.REFUTED if again else Verdict.PROVED)
