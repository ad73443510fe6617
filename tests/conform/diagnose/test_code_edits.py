"""Mistakes in a line of a role's code: each has a wrong kernel that is named, and the right one conforms."""

from typing import Any

import pytest

from pipesim.conform.agreement import Agreement, agreement_of
from pipesim.conform.diagnose.code_edits import (
    CodeEdit,
    CodeEditKind,
    Places,
    apply,
    code_edits,
    describe,
    in_place,
    includes,
    places_of,
)
from pipesim.conform.diagnose.diagnose import examine
from pipesim.conform.diagnose.examination import Diagnosis, Examination
from pipesim.conform.diagnose.outcomes import random_schedule
from pipesim.conform.replay.conformance import conform
from pipesim.conform.result import TraceVerdict
from pipesim.model.ending import Ending
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.sites import NO_SITES, optional_sites
from tests.conform.cases import recorded
from tests.support.lanes import slow_but
from tests.support.paths import EXAMPLES
from tests.support.present import present

SLOTS = "named barriers 2 and 3"


def relay(noinc: int = 1, tiles: int = 5) -> Program:
    return find(f"{EXAMPLES / 'relay.py'}:relay").build({"tiles": tiles, "noinc": noinc})


def always(program: Program, kind: CodeEditKind, role: str, value: int = 0, at: int = 0) -> CodeEdit:
    """The edit of this kind and role that is always made; ``at``: of which of its instructions."""
    found = [e for e in code_edits(program) if (e.kind, e.role, e.value, e.iteration) == (kind, role, value, -1)]
    return found[at]


#: Kind, role, value, which instruction, .noinc of the right kernel, how it ends, and what is said of it.
WRONG = [
    (
        CodeEditKind.NOINC_FORGOTTEN,
        "load",
        0,
        0,
        1,
        Ending.DEADLINE,
        "load's cp.async arrive on in_full without .noinc",
    ),
    (CodeEditKind.NOINC_ADDED, "load", 0, 0, 0, None, "load's cp.async arrive on in_full with .noinc, which is not"),
    (CodeEditKind.BAR_FORGOTTEN, "store", 0, 0, 1, Ending.DEADLINE, f"store does not arrive at {SLOTS}"),
    (CodeEditKind.BAR_FORGOTTEN, "store", 0, 1, 1, Ending.DEADLINE, f"store does not arrive at {SLOTS}"),
    (CodeEditKind.BAR_THREADS, "math", 192, 1, 1, Ending.DEADLINE, "math syncs on named barrier 1 with 160, 192,"),
    (CodeEditKind.BAR_THREADS, "math", 128, 0, 1, Ending.TRAP, f"math syncs on {SLOTS} with 32, 64, 96, 128,"),
    (CodeEditKind.BAR_NUMBER, "store", 2, 1, 1, Ending.DEADLINE, "store arrives at named barriers "),
    (CodeEditKind.SYNC_FOR_ARRIVE, "store", 0, 0, 1, Ending.DEADLINE, f"store syncs on {SLOTS} where it should only"),
]


def examined(program: Program, wrong: Program, seed: int, **how: Any) -> tuple[Ending, Examination, Diagnosis]:
    trace = recorded(program, wrong, random_schedule(wrong, seed), lag=seed, **how)
    found = conform(program, trace)
    assert found.verdict is TraceVerdict.DIFFERS
    seen = present(examine(program, trace, found))
    return trace.meta.status, seen, present(seen.diagnosis)


@pytest.mark.sampled(1, 2)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize("case", slow_but(WRONG[:1], WRONG), ids=lambda case: f"{case[0].value}-{case[3]}")
def test_each_mistake_is_named(case: tuple[Any, ...], seed: int) -> None:
    """The records beside the line say what was meant; what the others then do names the mistake."""
    kind, role, value, at, noinc, ending, claim = case
    program = relay(noinc)
    edit = always(program, kind, role, value, at)
    how = {"also": optional_sites(program), "as_meant": True}
    status, seen, diagnosis = examined(program, in_place(program, edit), seed, **how)
    assert ending is None or status is ending
    told = next(e for e in diagnosis.explanations if e.claim.startswith(claim))
    assert (told.agent, told.iteration) == (role, -1)
    assert "relay.py" in told.line
    assert seen.autopsy is None or not seen.autopsy.contradiction


@pytest.mark.slow
def test_a_forgotten_noinc_is_the_only_explanation() -> None:
    program = relay()
    edit = always(program, CodeEditKind.NOINC_FORGOTTEN, "load")
    for also in (NO_SITES, optional_sites(program)):
        _, seen, diagnosis = examined(program, in_place(program, edit), 3, also=also)
        claims = [e.claim for e in diagnosis.explanations]
        if also:
            assert claims == ["load's cp.async arrive on in_full without .noinc"]
        assert "load's cp.async arrive on in_full without .noinc" in claims
        assert present(seen.autopsy).contradiction == ""


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize("at", [0, 1])
def test_a_bar_that_is_not_there_leaves_no_record(at: int) -> None:
    program = relay()
    edit = always(program, CodeEditKind.BAR_FORGOTTEN, "store", at=at)
    _, _, diagnosis = examined(program, apply(program, edit), 4, also=optional_sites(program))
    assert [e.edit for e in diagnosis.explanations] == [edit]


@pytest.mark.slow
def test_one_pass_of_a_line_is_told_from_all() -> None:
    program = relay()
    one = next(e for e in code_edits(program) if e.kind is CodeEditKind.NOINC_FORGOTTEN and e.iteration == 3)
    _, _, diagnosis = examined(program, in_place(program, one), 5, also=optional_sites(program), as_meant=True)
    assert [e.edit for e in diagnosis.explanations] == [one]
    assert diagnosis.explanations[0].claim.endswith("without .noinc at pass 3 of that line")
    wider = always(program, CodeEditKind.NOINC_FORGOTTEN, "load")
    assert includes(wider, one)
    assert not includes(one, wider)


@pytest.mark.parametrize("noinc", [0, 1])
@pytest.mark.parametrize("recording", [True, False])
def test_the_right_kernel_conforms(noinc: int, recording: bool) -> None:
    program = relay(noinc)
    also = optional_sites(program) if recording else NO_SITES
    for seed in range(4):
        found = conform(program, recorded(program, program, random_schedule(program, seed), lag=seed, also=also))
        assert found.divergence is None
        assert found.verdict is TraceVerdict.AGREES


def changes(program: Program, other: Program) -> Places:
    """Where two programs of the same length differ."""
    pairs = enumerate(zip(program.code, other.code, strict=True))
    return {n: at for n, (a, b) in pairs if (at := tuple(pc for pc in range(len(a)) if a[pc] != b[pc]))}


@pytest.mark.slow
def test_an_edit_changes_its_line_in_every_warp_of_the_role_and_nothing_else() -> None:
    program = relay()
    for edit in code_edits(program):
        places = places_of(program, edit)
        assert changes(program, in_place(program, edit)) == dict(places)
        roles = {program.agents[agent].role for agent in places}
        assert edit.everyone or roles == {edit.role}
        assert describe(program, edit)
        if edit.kind is CodeEditKind.BAR_FORGOTTEN:
            shorter = apply(program, edit)
            assert all(len(shorter.code[a]) == len(program.code[a]) - len(pcs) for a, pcs in places.items())


def test_every_kind_applies_and_the_set_up_is_left_alone() -> None:
    multicast = find("cluster_multicast").build({"tiles": 1})
    found = [*code_edits(relay()), *code_edits(relay(noinc=0)), *code_edits(multicast)]
    assert {edit.kind for edit in found} == set(CodeEditKind)
    program = relay()
    for edit in code_edits(program):
        for agent, pcs in places_of(program, edit).items():
            ops = [program.code[agent][pc] for pc in pcs]
            on_zero = [op for op in ops if op[0] == Op.BAR_SYNC and operand(op, "threads") == 288]
            assert not on_zero
    assert code_edits(find("producer_consumer").build({"tiles": 3})) == ()


def test_a_number_that_nobody_uses_stands_for_all_of_them() -> None:
    program = relay()
    edits = [e for e in code_edits(program) if e.kind is CodeEditKind.BAR_NUMBER and e.role == "store"]
    said = {describe(program, e) for e in edits}
    assert "store arrives at named barriers 4 and 5, or others, instead of 2 and 3" in said
    assert "store arrives at named barriers 1 and 2 instead of 2 and 3" in said
    used = {number for _, number in program.named_barriers}
    for edit in edits:
        numbers = {n + edit.value for n in (2, 3)}
        assert numbers & used or edit.value == 2


@pytest.mark.parametrize("mask", [0, 0b01, 0b10])
def test_a_multicast_with_the_wrong_mask_is_named(mask: int) -> None:
    """The records of a copy do not name its CTAs: what the others then wait for does."""
    program = find("cluster_multicast").build({"tiles": 3})
    edit = always(program, CodeEditKind.CTA_MASK, "producer", mask)
    wrong = simulate(apply(program, edit), load_profile("h100"))
    assert wrong.outcome is Ending.DEADLOCK
    seen = present(agreement_of(program, wrong.trace).examination)
    assert seen.autopsy is not None
    (why,) = present(seen.diagnosis).explanations
    where = {0: "its own CTA only", 0b01: "CTA 0", 0b10: "CTA 1"}[mask]
    assert why.claim == f"producer's multicast on full goes to {where} instead of CTAs 0 and 1"
    assert (seen.autopsy.contradiction, seen.autopsy.deadlock) == ("", wrong.deadlock)
    right = simulate(program, load_profile("h100"))  # the twin
    assert agreement_of(program, right.trace).agreement is Agreement.CONFORMS


def test_of_a_large_cluster_the_masks_near_the_right_one_are_tried() -> None:
    program = find("cluster_multicast").build({"tiles": 1, "cluster": 8})
    masks = [edit.value for edit in code_edits(program) if edit.kind is CodeEditKind.CTA_MASK]
    assert masks == sorted({0, *(1 << n for n in range(8)), *(0xFF ^ 1 << n for n in range(8))})
    alone = find("cluster_multicast").build({"tiles": 1, "cluster": 1})
    assert not [edit for edit in code_edits(alone) if edit.kind is CodeEditKind.CTA_MASK]
