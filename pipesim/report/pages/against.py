"""``pipesim check NEW --against OLD``: new findings in full, the others in a line each, and what is done otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from pipesim.answers.views.against import AgainstReport
from pipesim.answers.views.check import CheckReport, Counterexample
from pipesim.report.findings.finding import finding_lines
from pipesim.report.findings.in_short import in_short
from pipesim.report.pages.check import shown_lines
from pipesim.report.sentences.against import against_sentence, change_sentence
from pipesim.report.sentences.check import how_words, left_out_words
from pipesim.report.text.console import mark
from pipesim.report.text.layout import field, heading_lines, wrap
from pipesim.report.text.words import count, listed, place


def against_lines(report: AgainstReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    lines = heading_lines(report.new.heading, width)
    lines += ["", *_version("old", report.old, width), *_version("new", report.new, width)]
    changes = report.synchronisation.changes
    if changes:
        lines += ["", "  differences in the synchronisation"]
        lines += [line for each in changes for line in wrap(change_sentence(each), width, "    ", "      ")]
    if report.synchronisation.unread:
        roles = listed(report.synchronisation.unread)
        said = f"not read to the end in both, so that only their beginnings are compared: {roles}"
        lines += ["", *wrap(said, width, "  ", "    ")]
    for label, findings in (("gone", report.gone_findings), ("unchanged", report.unchanged_findings)):
        lines += ["", *_listed_findings(label, findings, width)] if findings else []
    for left in dict.fromkeys(tuple(left_out_words(each)) for each in (report.old, report.new)):
        lines += ["", *field("left out", left, width)] if left else []
    for shown in report.new_findings:
        block = finding_lines([shown.finding], width) if report.new.quick else shown_lines(shown, width)[1:]
        lines += ["", "  new", "", *block]
    return [*lines, "", *wrap(against_sentence(report), width, f"{mark(report.conclusion.ok)} ")]


def _version(label: str, report: CheckReport, width: int) -> list[str]:
    parts = [report.heading.protocol, report.verdict.value, count(report.operations, "operation"), how_words(report)]
    return field(label, parts, width)


def _listed_findings(label: str, findings: Sequence[Counterexample], width: int) -> list[str]:
    lines: list[str] = []
    for shown in findings:
        at = f" ({place(shown.place)})" if shown.place else ""
        lines += field(label, [f"{in_short(shown.finding)}{at}"], width)
    return lines
