"""A finding in one line."""

from __future__ import annotations

from pipesim.answers.views.check import CheckReport
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
    shown = report.failing
    if not shown:
        return f"{verdict}: {name}: {check_sentence(report).removeprefix(verdict).lstrip(':, ')}"
    first, *others = shown
    sizes = f" (smallest: {', '.join(parameters(first.at, ()))})" if first.at else ""
    sizes = f" in CTA {number(first.kinds[0].cta)}" if first.kinds else sizes
    more = f"; and {number(len(others))} more" if others else ""
    return f"{verdict}: {name}: {in_short(first.finding)}{sizes}{more}"
