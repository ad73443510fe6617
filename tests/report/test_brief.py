"""The brief of a check: at most 2 kB whatever the names, and the sentence that says what is wrong."""

import json
from dataclasses import replace

import pytest

from pipesim.answers.views.check import CheckReport, Counterexample
from pipesim.formats.documents import as_json
from pipesim.model.finding import BlockedAgent, Deadlock, FaultKind, FaultReport, Finding, Supplier, Verdict
from pipesim.prove.check import How
from pipesim.report.findings.brief import brief_of
from pipesim.report.findings.finding import claim_of
from pipesim.report.pages.document import in_words
from tests.support.report_examples import DEADLOCK, HEADING, MISSING_LAST


def report(finding: Finding, name: str = "ring", replay: str = "0*3.1") -> CheckReport:
    shown = Counterexample(finding, (), {}, replay, f"{name}.py:{name}")
    return CheckReport(replace(HEADING, protocol=name), Verdict.REFUTED, How.SCHEDULE, 9, 1, 0, (), (shown,))


LAPPED = BlockedAgent("idle", "full[0]", 0, 2, 2, 1, 1, 0, "a.py:9", missed=0, lapped_by=("mma",), counted=False)


SENTENCES = [
    (
        MISSING_LAST,
        (
            "load waits for phase 3 of empty[0] (parity 1, now in phase 3): it has 1 of 2 arrivals; mma/0 could send "
            "it, but its last arrival on empty[0] was for tile 2 (kernels/attention/backward/pipeline.py:141); no "
            "further one follows"
        ),
    ),
    (
        Deadlock((replace(DEADLOCK.blocked[1], given=1),), ()),
        (
            "load waits for phase 1 of empty[0] (parity 1, now in phase 1): it has 1 of 2 arrivals; the program makes "
            "1 arrival per phase, but the count is 2"
        ),
    ),
    (
        DEADLOCK,
        (
            "mma/1 waits for phase 1 of full[0] (parity 1, now in phase 1): it has 0 of 1 arrivals; 16,384 bytes "
            "missing; load would send the arrival and bytes next (my_gemm.py:31), but waits for empty[0]"
        ),
    ),
    (
        Deadlock((LAPPED,), ("mma",)),
        (
            "idle was lapped on full[0]: it asks for phase 0, but mma had completed phases 0 and 1 before it looked. "
            "It now waits for phase 2; no other agent waits for idle: in its loop it arrives on "
            "nothing that they wait for"
        ),
    ),
    (Deadlock((), ("load",)), "deadlock: 0 of 1 agent wait indefinitely"),
    (FaultReport(FaultKind.RACE, "mma: two", "mma", "read", "a.py:3"), "mma: two"),
]


@pytest.mark.parametrize(("finding", "said"), SENTENCES)
def test_a_finding_in_a_sentence(finding: Finding, said: str) -> None:
    assert (claim_of(finding), brief_of(report(finding)).claim) == (said, said)


@pytest.mark.parametrize(
    ("name", "replay", "kept"), [("ring", "0*3.1", True), ("é" * 900, "1", False), ("r", "0." * 2000, False)]
)
def test_it_has_at_most_2_kb_of_json_and_a_command_that_is_whole_or_not_there(
    name: str, replay: str, kept: bool
) -> None:
    supplier = Supplier(name, "arrival", "", f"{name}.py:1", 3, "")
    wait = replace(
        LAPPED, agent=name, barrier=name, line=f"{name}.py:3", missed=-1, lapped_by=(), suppliers=(supplier,)
    )
    asked = report(Deadlock((wait,), ()), name, replay)
    written = as_json({"report": asked}, in_words)
    made = json.loads(written)["report"]["brief"]
    assert len(json.dumps({"report": {"brief": made}}, indent=2)) <= 2000
    assert made["replay"] == (f"pipesim check {name}.py:{name} --replay '{replay}'" if kept else "")
    assert all(made[each] for each in ("verdict", "said", "kind", "basis", "claim", "places"))
