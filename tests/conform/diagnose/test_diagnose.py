"""A kernel does something wrong: the edit that explains its trace is found, and no other is named in its place."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipesim.conform.diagnose.diagnose import diagnose
from pipesim.conform.diagnose.edits import Edit, EditKind, apply, edits
from pipesim.conform.diagnose.examination import Diagnosis
from pipesim.conform.diagnose.outcomes import random_schedule
from pipesim.conform.replay.conformance import conform
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind
from pipesim.model.program import Program
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.schema import CtaInfo, Trace
from tests.conform.cases import as_hardware, pc, recorded, run, simulated
from tests.support.lanes import long_but, slow_but
from tests.support.present import present

PRODUCER, CONSUMER = 0, 1
PROFILE = load_profile("h100")


def diagnosed(program: Program, trace: Trace) -> Diagnosis | None:
    return diagnose(program, trace, conform(program, trace))


def explained(program: Program, trace: Trace) -> Diagnosis:
    return present(diagnosed(program, trace))


def timed(program: Program, edit: Edit) -> Trace:
    made = f"{edit.kind.value}@{edit.iteration}"
    trace: Trace = as_hardware(program, simulate(apply(program, edit), PROFILE).trace, fault=made)
    return trace


def names(found: Diagnosis, edit: Edit) -> set[str]:
    """The kinds that explain, with how far off their agent and iteration are."""
    told = set()
    for explanation in found.explanations:
        assert isinstance(explanation.edit, Edit)
        agent, tile = explanation.edit.agent - edit.agent, explanation.edit.iteration - edit.iteration
        told.add(explanation.edit.kind.value + (f" {tile:+}" if tile else "") + (" of another" if agent else ""))
    return told


#: What is named for each kind beside itself, over all tiles: only where the records are the very same. A wait for the
#: wrong parity that is the last thing an agent records may be the first after a toggle that was forgotten.
CONFUSION = {
    ("wrong_parity", PRODUCER): {"phase_not_toggled -1"},
    ("wrong_parity", CONSUMER): {"phase_not_toggled -1"},
    ("phase_not_toggled", PRODUCER): {"wrong_parity +1"},
    ("phase_not_toggled", CONSUMER): {"wrong_parity +1"},
}
SHAPES = ((4, 11, 2, 1), (2, 5, 2, 32), (1, 6, 1, 1), (3, 8, 3, 1))


@pytest.mark.slow
@pytest.mark.parametrize("shape", long_but([(1, 6, 1, 1)], slow_but([(1, 6, 1, 1)], SHAPES)), ids=str)
def test_every_fault_at_every_tile_is_named(shape: tuple[int, ...]) -> None:
    program = pc(*shape)
    confused: dict[tuple[str, int], set[str]] = {}
    count: Counter[EditKind] = Counter()
    for edit in edits(program):
        if edit.agent > CONSUMER:
            continue
        found = explained(program, timed(program, edit))
        assert found.named
        assert found.manifest
        (mine,) = (e for e in found.explanations if e.edit == edit)
        assert mine.agent == program.agent_name(edit.agent)
        assert mine.line.rpartition(":")[0].endswith("producer_consumer.py")
        others = names(found, edit) - {edit.kind.value}
        if others:
            confused.setdefault((edit.kind.value, edit.agent), set()).update(others)
        count[edit.kind] += 1
    assert all(others <= CONFUSION[key] for key, others in confused.items())
    assert confused  # the twin: two that cannot be told apart are both named
    assert set(count) == set(EditKind) - ({EditKind.SWAPPED_STAGES} if shape[0] == 1 else set())


RANDOM_SHAPES = st.sampled_from([(4, 12, 2, 1), (1, 5, 1, 1), (2, 8, 2, 1), (2, 8, 1, 1), (2, 6, 2, 32), (3, 7, 3, 1)])


@pytest.mark.slow
@settings(max_examples=30, deadline=None, derandomize=True)
@given(shape=RANDOM_SHAPES, data=st.data(), seed=st.integers(0, 10**6), late=st.booleans())
def test_in_any_schedule(shape: tuple[int, ...], data: Any, seed: int, late: bool) -> None:
    """Not only in the one that a latency profile makes: agents far behind, bytes in pieces, stamps off."""
    program = pc(*shape)
    edit = data.draw(st.sampled_from(edits(program)))
    wrong = apply(program, edit)
    made = f"{edit.kind.value}@{edit.iteration}"
    trace = recorded(program, wrong, random_schedule(wrong, seed), lag=seed if late else None, fault=made)
    found = explained(program, trace)
    assert edit in [explanation.edit for explanation in found.explanations]
    allowed = CONFUSION.get((edit.kind.value, min(edit.agent, 1)), set())
    assert names(found, edit) - {edit.kind.value} <= allowed | _cut_off(trace)


def _cut_off(trace: Trace) -> set[str]:
    """A trap ends everybody anywhere: what an agent would have recorded next is not there to tell two edits apart."""
    return {"wrong_parity", "phase_not_toggled", "no_acquire"} if trace.meta.status == "trap" else set()


@settings(max_examples=12, deadline=None, derandomize=True)
@given(shape=RANDOM_SHAPES, seed=st.integers(0, 10**6), late=st.booleans())
def test_a_right_kernel_has_no_diagnosis(shape: tuple[int, ...], seed: int, late: bool) -> None:
    program = pc(*shape)
    trace = recorded(program, program, random_schedule(program, seed), lag=seed if late else None)
    assert diagnosed(program, trace) is None
    made = explained(program, Trace(replace(trace.meta, fault="missing_arrive@3"), trace.events))
    assert (made.explanations, made.manifest, made.named) == ((), False, False)


def test_what_an_explanation_says() -> None:
    program = pc()
    found = explained(program, timed(program, Edit(EditKind.MISSING_ARRIVE, CONSUMER, 7, "empty")))
    (told,) = found.explanations
    assert told.claim == "consumer/0 does not arrive on empty[3] for tile 7"
    assert (told.agent, told.barrier, told.iteration) == ("consumer/0", "empty[3]", 7)
    assert (told.hazards, told.trap) == ((), None)
    assert [(b.agent, b.barrier) for b in present(told.stuck).blocked] == [
        ("producer", "empty[3]"),
        ("consumer/0", "full[3]"),
        ("consumer/1", "full[3]"),
    ]
    assert found.tried == len(edits(program))


def test_a_trap_is_explained_by_a_trap_only() -> None:
    """One stage: the producer that does not wait announces bytes while the last ones are still outstanding."""
    program = pc(1, 6, 1, 1)
    trace = timed(program, Edit(EditKind.NO_ACQUIRE, PRODUCER, 2, "empty"))
    assert trace.meta.status == "trap"
    found = explained(program, trace)
    (told,) = found.explanations
    assert told.trap is not None
    assert told.trap.kind is FaultKind.OVER_ARRIVAL
    assert told.trap.agent == "producer"
    hung = explained(program, Trace(replace(trace.meta, status=Ending.DEADLINE), trace.events))
    assert (hung.explanations, hung.named) == ((), False)


def test_two_mistakes_are_no_single_edit() -> None:
    program = pc()
    both = apply(apply(program, Edit(EditKind.RELEASE_EARLY, 1, 3)), Edit(EditKind.RELEASE_EARLY, 2, 5))
    found = explained(program, as_hardware(program, simulate(both, PROFILE).trace))
    assert found.explanations == ()
    one = apply(program, Edit(EditKind.RELEASE_EARLY, 1, 3))
    twin = explained(program, as_hardware(program, simulate(one, PROFILE).trace))
    assert len(twin.explanations) == 1


def test_another_fault_than_was_said() -> None:
    program = pc()
    trace = timed(program, Edit(EditKind.RELEASE_EARLY, CONSUMER, 3))
    for said in ("missing_arrive@3", "release_early@4", "something else"):
        found = explained(program, Trace(replace(trace.meta, fault=said), trace.events))
        assert len(found.explanations) == 1
        assert not found.named


def test_a_protocol_that_hangs_needs_no_edit() -> None:
    case = simulated(stages=2, tiles=8, arrives=3, work=30)
    found = explained(case.program, as_hardware(case.program, case.trace))
    assert (found.explanations, found.tried, found.manifest) == ((), 0, True)


def test_nothing_is_concluded_from_a_part() -> None:
    program = pc()
    trace = timed(program, Edit(EditKind.RELEASE_EARLY, CONSUMER, 3))
    window = Trace(replace(trace.meta, window=(0, 16)), trace.events)
    lost = Trace(replace(trace.meta, ctas=(CtaInfo(0, 0, dropped=(0, 0, 1)),)), trace.events)
    assert [diagnosed(program, t) for t in (window, lost)] == [None, None]


def test_rings_that_try_first() -> None:
    """What is recorded depends on answers: the walk along the events decides, not the plain order."""
    program = simulated(stages=2, tiles=6, tries=True).program
    edit = Edit(EditKind.MISSING_ARRIVE, 1, 3, "empty" if any(b.name == "empty" for b in program.barriers) else "")
    found = explained(program, as_hardware(program, run(apply(program, edit)).trace))
    assert [(e.edit.kind, e.iteration) for e in found.explanations] == [(EditKind.MISSING_ARRIVE, 3)]
