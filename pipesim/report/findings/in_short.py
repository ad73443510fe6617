"""A finding in one line, and the author's line that it points at."""

from __future__ import annotations

from pipesim.answers.views.check import CheckReport, Counterexample
from pipesim.model.finding import Deadlock, Finding
from pipesim.report.findings.finding import who_waits
from pipesim.report.sentences.check import check_sentence
from pipesim.report.text.words import number, parameters


def in_short(finding: Finding) -> str:
    """A finding in a few words: ``deadlock: 2 of 2 agents wait indefinitely``, or the rule that is broken."""
    if isinstance(finding, Deadlock):
        return f"deadlock: {who_waits(finding)[0]}"
    return finding.kind.value


def in_one_line(report: CheckReport) -> str:
    """A verdict and what is wrong: ``refuted: ring: deadlock: 2 of 2 agents wait indefinitely (smallest: tiles 3)``."""
    verdict, name = report.verdict.value, report.heading.protocol
    if not report.refutations:
        return f"{verdict}: {name}: {check_sentence(report).removeprefix(verdict).lstrip(':, ')}"
    first, *others = report.refutations
    sizes = f" (smallest: {', '.join(parameters(first.at, ()))})" if first.at else ""
    more = f"; and {number(len(others))} more" if others else ""
    return f"{verdict}: {name}: {in_short(first.finding)}{sizes}{more}"


def place_of(shown: Counterexample) -> str:
    """The author's line of a finding: of its fault, or of the wait that no agent can end."""
    if not isinstance(shown.finding, Deadlock):
        return shown.finding.line
    waits = sorted(
        shown.finding.blocked, key=lambda b: (b.missed < 0 and not b.lapped_by, any(s.next_line for s in b.suppliers))
    )
    return next((blocked.line for blocked in waits if blocked.line), "")
