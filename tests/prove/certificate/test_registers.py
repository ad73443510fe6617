"""Requests for registers that come after others were given back: proved where the pool suffices in every schedule."""

from dataclasses import replace

import pytest

from pipesim.model.coverage import Assumption, Strictness
from pipesim.model.finding import Verdict
from pipesim.model.ops import Op, Operation
from pipesim.model.program import Program
from pipesim.model.tables import ALL_LANES, Agent
from pipesim.prove.assumed import assumed_by
from pipesim.prove.certificate.canonical import CanonicalRun
from pipesim.prove.certificate.certificate import Certificate
from pipesim.prove.check import How, check
from pipesim.prove.search.breadth_first import explore
from tests.support.random_programs.registers import random_meetings

LAUNCHED = 128
_MEET: Operation = (int(Op.BAR_SYNC), 0, 64, 32)


def _take(registers: int) -> Operation:
    return int(Op.SETMAXNREG), registers


def two_groups(*plans: tuple[Operation, ...]) -> Program:
    """Two warp groups of one warp each, launched with 128 registers a thread: 256 for both of them."""
    return Program(
        name="groups",
        params={},
        agents=tuple(Agent(0, 4 * n, ALL_LANES, ("compute", "load")[n], 0) for n in range(2)),
        barriers=(),
        accesses=(),
        tiles=(),
        code=plans,
        lines=tuple((0,) * len(plan) for plan in plans),
        sources=("groups:1",),
        named_barriers=((0, 0),),
        launch_registers=LAUNCHED,
    )


def test_a_group_that_takes_its_registers_back_after_a_meeting_is_granted_them() -> None:
    compute = (_MEET, _take(208), _MEET, _take(152), _MEET)
    load = (_MEET, _take(24), _MEET, _MEET, _take(104), _take(24))
    found = check(two_groups(compute, load))
    assert (found.verdict, found.how) == (Verdict.PROVED, How.CERTIFICATE)


@pytest.mark.parametrize(
    ("compute", "load"),
    [
        pytest.param(
            (_MEET, _take(208), _MEET, _MEET), (_MEET, _take(24), _MEET, _take(104), _MEET), id="never given back"
        ),
        pytest.param((_take(208), _MEET, _take(152)), (_MEET, _take(24)), id="asked before the other gives back"),
        pytest.param(
            (_MEET, _take(208), _take(152), _MEET), (_MEET, _take(24), _take(104), _MEET), id="taken back too early"
        ),
    ],
)
def test_a_request_that_some_schedule_never_grants_is_refuted(
    compute: tuple[Operation, ...], load: tuple[Operation, ...]
) -> None:
    assert check(two_groups(compute, load)).verdict is Verdict.REFUTED


@pytest.mark.parametrize(("seeds", "least"), [(150, 1), pytest.param(600, 5, marks=pytest.mark.long)])
def test_the_certificate_calls_no_wrong_program_right_and_needs_the_wider_rule(seeds: int, least: int) -> None:
    wider = 0
    for seed in range(seeds):
        program = random_meetings(seed)
        certificate = Certificate(program)
        run = CanonicalRun(program, [certificate])
        run.to_end()
        certificate.close()
        if not run.finished or run.faults or certificate.doubts:
            continue
        searched = explore(program, 20_000, reduced=False)
        assert searched.complete, seed
        assert not searched.refutations, seed
        pools = program.register_pools
        wider += pools is not None and pools.highest(0) > pools.size(0)
    assert wider >= least


def test_requests_rest_on_the_registers_of_the_launch_where_these_are_not_known() -> None:
    """Also where nobody would have to wait: all of a group ask for 256, which the launch must have given them."""
    for launched, verdict, assumed in ((256, Verdict.PROVED, set()), (0, Verdict.UNKNOWN, {Assumption.REGISTERS})):
        program = replace(two_groups((_take(256),), (_take(256),)), launch_registers=launched)
        assert {each.kind for each in assumed_by(program)} == assumed
        assert check(program).verdict is Verdict.PROVED
        assert check(program.with_strictness(Strictness({Assumption.REGISTERS}))).verdict is verdict
