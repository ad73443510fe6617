"""Lanes of a warp that part: where they are taken to meet again, and what counts each of them."""

from pathlib import Path

import pytest

from pipesim.cli.main import main
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.program import Program
from pipesim.model.program_json import dumps, loads
from pipesim.model.strictness import Strictness
from pipesim.prove.check import Check, check
from pipesim.ptx.launch.file import launch_json
from pipesim.ptx.launch.values import Launch
from tests.support.small_ptx import SET_UP, program_of, said, text_of

STRICT = Strictness(lanes=True)
#: Half of the lanes store what the other half does not; then {meet} all lanes arrive.
PART = (
    SET_UP.format(first=64, count=1)
    + """ setp.lt.u32 %p4, %r2, 16;
 @!%p4 bra rest;
 st.shared.u32 [tile], %r2;
rest:
{meet} mbarrier.arrive.shared::cta.b64 _, [%r3];
"""
)
WARP_SYNC = " bar.warp.sync -1;\n"
CLUSTER_WAIT = " barrier.cluster.wait.acquire;\n"


def strictly(program: Program) -> Check:
    """The verdict with lanes that go on together only where PTX says so."""
    return check(program.judged(STRICT))


def test_lanes_that_part_are_taken_to_meet_where_ptx_does_not_promise_it() -> None:
    apart = program_of(PART.format(meet=""))
    assert len(apart.coverage.rejoined) == 1
    assert loads(dumps(apart)).coverage == apart.coverage
    assert check(apart).verdict is Verdict.PROVED
    found = strictly(apart)
    assert found.verdict is Verdict.REFUTED
    assert [each.kind for each in found.refutations] == [FaultKind.LANES_APART]


@pytest.mark.parametrize("meet", [WARP_SYNC, " bar.warp.sync 0xffffffff;\n", " vote.sync.all.pred %p7, %p4, -1;\n"])
def test_operations_of_all_lanes_let_them_meet(meet: str) -> None:
    together = program_of(PART.format(meet=meet))
    assert together.coverage.rejoined == ()
    assert strictly(together).verdict is Verdict.PROVED


def test_an_operation_of_some_lanes_does_not() -> None:
    some = program_of(PART.format(meet=" @%p4 bar.warp.sync 0xffff;\n"))
    assert len(some.coverage.rejoined) == 1


def test_the_report_states_it_and_the_switch_makes_it_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = tmp_path / "small.ptx"
    kernel.write_text(text_of(PART.format(meet="")))
    kernel.with_suffix(".json").write_text(launch_json(Launch("kernel", (1, 1, 1), (64, 1, 1))))
    assert main(["check", str(kernel)]) == 0
    assert "--strict-lanes" in capsys.readouterr().out
    assert main(["check", str(kernel), "--strict-lanes"]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "taken to be together again" in shown
    assert "bar.warp.sync" in shown


def test_the_cluster_barrier_counts_threads() -> None:
    whole = SET_UP.format(first=1, count=1) + " barrier.cluster.arrive.release;\n" + CLUSTER_WAIT
    program = program_of(whole, cluster=2)
    assert program.coverage.complete
    assert check(program).verdict is Verdict.PROVED
    one_lane = " setp.eq.u32 %p4, %r2, 0;\n @%p4 barrier.cluster.arrive.release;\n"
    program = program_of(SET_UP.format(first=1, count=1) + one_lane + CLUSTER_WAIT, cluster=2)
    assert not any(line.startswith("CLUSTER_ARRIVE") for line in said(program, 0))
    assert check(program).verdict is not Verdict.PROVED
    others = one_lane + " @!%p4 barrier.cluster.arrive.release;\n" + CLUSTER_WAIT
    program = program_of(SET_UP.format(first=1, count=1) + others, cluster=2)
    assert sum(line.startswith("CLUSTER_ARRIVE") for line in said(program, 0)) == 1
    assert check(program).verdict is Verdict.PROVED
