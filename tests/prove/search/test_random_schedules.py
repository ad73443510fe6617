"""Schedules made at random show what a search within its limit does not, and nothing of a program that is right."""

import pytest

from pipesim.model.coverage import Assumption, Strictness
from pipesim.model.finding import FaultKind
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.protocols.blackwell.attention_sm100 import attention_sm100
from pipesim.prove.check import How, check
from pipesim.prove.counterexample.confirm import refutation
from pipesim.prove.counterexample.play import Play
from pipesim.prove.memory_order.may_fail import memory_faults_of
from pipesim.prove.search.random_schedules import random_refutation
from tests.support.program_edits import Edit, the_same, without
from tests.support.random_programs.contested import contested


def attention(edit: Edit, *strict: Assumption) -> Program:
    return edit(attention_sm100(kv_blocks=2, kv_stages=3).flatten()).with_strictness(Strictness(strict))


WITHOUT = without("softmax0", Op.WAIT, "C0_cons[0]")


@pytest.mark.slow
def test_commits_in_another_order_overwrite_factors_that_are_not_read() -> None:
    wrong = attention(WITHOUT, Assumption.COMMITS)
    found = random_refutation(wrong, 5_000, one_memory=False)
    assert found is not None
    assert found.kind is FaultKind.WRONG_ITEM
    assert refutation(Play(wrong, found.schedule)) == found


@pytest.mark.parametrize("right", [attention(the_same, Assumption.COMMITS), attention(WITHOUT)])
def test_nothing_is_shown_where_the_wait_is_there_or_the_commits_are_in_order(right: Program) -> None:
    assert random_refutation(right, 600, one_memory=False) is None


def test_faults_of_memory_order_end_the_schedule_that_shows_them() -> None:
    wrong = contested(1)
    found = random_refutation(wrong, 1_000, one_memory=False)
    assert found is not None
    assert found.fault == memory_faults_of(wrong, found.schedule)[0]
    assert random_refutation(wrong, 1_000, one_memory=True) is None


@pytest.mark.slow
def test_what_the_search_leaves_unknown_is_refuted() -> None:
    wrong = attention(WITHOUT, Assumption.COMMITS)
    assert check(wrong, max_states=1_000).how is How.NOTHING
    assert [each.kind for each in check(wrong, max_states=7_200).refutations] == [FaultKind.WRONG_ITEM]
