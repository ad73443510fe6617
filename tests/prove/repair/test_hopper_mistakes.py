"""Mistakes typical of Hopper and cp.async kernels get the correction that was meant, and none gets another one."""

from __future__ import annotations

import re

import pytest

from pipesim.model.finding import Verdict
from pipesim.model.groups import ON_NAMED_BARRIER, PRIVATE
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program
from pipesim.protocols.broken.hopper import MISTAKES
from pipesim.prove.check import check
from pipesim.prove.repair.edits import repaired
from pipesim.prove.search.breadth_first import explore
from tests.support.more_mistakes import MORE, RIGHT
from tests.support.offered import offered_for, without_places

#: Mistakes whose correction is another spelling of the right kernel: the operation stands beside the place where the
#: right kernel has it, or in iterations in which it makes no difference.
ELSEWHERE = {
    "wgmma_ring.released_too_early", "wgmma_ring.no_group_wait", "wgmma_ring.no_sync_after_store_wait",
    "wgmma_ring.no_store_wait", "grouped_ring.no_wait", "multistage.no_commit_in_tail",
    "multicast_ring.arrives_at_home_only", "multicast_ring.half_the_mask",
}  # fmt: skip


def does(program: Program) -> list[list[Operation]]:
    """What every agent does to others: no times and names, registers of tokens or numbers of tables."""
    return [[_plain(program, op) for op in code if op[0] not in PRIVATE or op[0] == Op.FENCE] for code in program.code]


def _plain(program: Program, op: Operation) -> Operation:
    if op[0] == Op.ARRIVE:
        return (*op[:4], op[5])
    if op[0] in ON_NAMED_BARRIER:
        return (op[0], *program.named_barriers[operand(op, "named_barrier")], *op[2:])
    return op


def test_there_are_many_and_each_right_kernel_is_proved() -> None:
    assert len(MISTAKES) == 51
    assert len({each.right for each in MISTAKES.values()}) == 8
    for right in {each.right for each in MISTAKES.values()}:
        assert check(right().flatten()).verdict is Verdict.PROVED


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gets_the_correction_that_was_meant(name: str) -> None:
    program, offered = offered_for(name)
    assert [without_places(each.said) for each in offered] == [MISTAKES[name].meant] * len(offered)
    assert offered
    for each in offered:
        corrected = repaired(program, each.repair)
        assert corrected is not None
        assert (does(corrected) == does(MISTAKES[name].right().flatten())) == (name not in ELSEWHERE)
        assert re.search(r"broken/hopper/\w+\.py:\d+$", each.line)
        if sum(map(len, program.code)) < 60:  # the search, not the proof that the offer rests on
            assert explore(corrected, 20_000).refutations == ()


def test_at_least_85_percent_get_what_was_meant_and_none_another_one() -> None:
    meant = [
        name for name in MISTAKES if {without_places(c.said) for c in offered_for(name)[1]} == {MISTAKES[name].meant}
    ]
    other = [
        name for name in MISTAKES if {without_places(c.said) for c in offered_for(name)[1]} - {MISTAKES[name].meant}
    ]
    assert len(meant) >= 0.85 * len(MISTAKES)
    assert other == []
    assert "empty with a count of 128" not in str(MISTAKES), "a count that merely balances is never meant"


@pytest.mark.parametrize("name", MORE)
def test_a_mistake_in_other_kernels_gets_it_as_well(name: str) -> None:
    meant = MORE[name][1]
    assert {without_places(each.said) for each in offered_for(name)[1]} == {meant}


def test_the_other_kernels_are_right_without_a_slip() -> None:
    assert [check(right().flatten()).verdict for right in RIGHT] == [Verdict.PROVED] * 4
    assert len(MORE) == 18
