"""Every kind has an example that has it, and the corrected example has it no more."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pipesim.answers.check import check
from pipesim.answers.views.check import CheckReport
from pipesim.kinds.topic import Operations, PtxBody, Topic, WarningKind
from pipesim.kinds.topics import TOPICS
from pipesim.model.ending import Ending
from pipesim.model.finding import Deadlock, FaultKind, Finding, Verdict
from pipesim.model.program import Program
from pipesim.model.strictness import Strictness
from pipesim.targets import Target, target_of
from tests.support.small_programs import build
from tests.support.small_ptx import SET_UP, program_of

#: Of each warning words of the note that it is.
NOTES = {
    WarningKind.UNREAD_DATA: "that no agent reads",
    WarningKind.TRANSFER_IN_FLIGHT: "may still be in flight",
    WarningKind.COMMIT_AFTER_EXIT: "a commit of",
    WarningKind.CP_ASYNC_AFTER_EXIT: "a cp.async arrive of",
    WarningKind.UNSCOPED_ARRIVE: "without a scope",
    WarningKind.REGISTER_REQUESTS: "registers a thread",
    WarningKind.CP_ASYNC_COUNT: "without .noinc",
}
FINDINGS = [topic for topic in TOPICS.values() if not topic.warns]
WARNINGS = [topic for topic in TOPICS.values() if topic.warns]


def checked(topic: Topic, *, right: bool) -> CheckReport:
    rules = Strictness(**{switch.removeprefix("--strict-").replace("-", "_"): True for switch in topic.switches})
    target = _target(topic, right=right)
    return check(target.judging(rules), {"right": int(right)} if target.program is None else {})


def _target(topic: Topic, *, right: bool) -> Target:
    match topic.example:
        case Operations() as example:
            return target_of(_operations(example.right if right else example.wrong))
        case PtxBody() as example:
            body = SET_UP.format(first=64, count=1) + (example.right if right else example.wrong)
            return target_of(program_of(body))
        case function:
            return target_of(function)


def _operations(codes: tuple[str, ...]) -> Program:
    return build(*codes, smem_bytes=64)


def kinds_of(findings: tuple[Finding, ...]) -> set[FaultKind | Ending]:
    return {Ending.DEADLOCK if isinstance(each, Deadlock) else each.kind for each in findings}


@pytest.mark.parametrize("topic", FINDINGS, ids=lambda topic: topic.name)
def test_the_example_of_a_finding_has_just_this_one_and_is_corrected(topic: Topic) -> None:
    wrong, right = checked(topic, right=False), checked(topic, right=True)
    assert (wrong.verdict, kinds_of(wrong.findings)) == (Verdict.REFUTED, {topic.kind})
    assert (right.verdict, right.findings) == (Verdict.PROVED, ())


@pytest.mark.parametrize("topic", [each for each in FINDINGS if each.switches], ids=lambda topic: topic.name)
def test_without_its_switch_it_is_no_finding(topic: Topic) -> None:
    assert check(_target(topic, right=False), {}).verdict is Verdict.PROVED


@pytest.mark.parametrize("topic", WARNINGS, ids=lambda topic: topic.name)
def test_the_example_of_a_warning_is_proved_with_it_and_corrected_without(topic: Topic) -> None:
    assert isinstance(topic.kind, WarningKind)
    wrong, right = checked(topic, right=False), checked(topic, right=True)
    assert (wrong.verdict, right.verdict) == (Verdict.PROVED, Verdict.PROVED)
    (kind,) = {note.kind for note in wrong.advisories if NOTES[topic.kind] in note.claim}
    assert kind == topic.kind.name.lower(), "the report says where to read on"
    assert not any(NOTES[topic.kind] in note.claim for note in right.advisories)


def test_every_kind_of_fault_and_of_warning_is_explained() -> None:
    explained = {topic.kind for topic in TOPICS.values()}
    assert explained == {*FaultKind, *WarningKind, Ending.DEADLOCK}
    assert set(NOTES) == set(WarningKind)


@pytest.mark.parametrize("topic", TOPICS.values(), ids=lambda topic: topic.name)
def test_an_example_is_small_and_named_after_its_kind(topic: Topic) -> None:
    if isinstance(topic.example, Operations | PtxBody):
        return
    function: Callable[..., object] = topic.example
    assert function.__name__ == topic.name
    assert sum(map(len, target_of(topic.example).build().code)) <= 60
