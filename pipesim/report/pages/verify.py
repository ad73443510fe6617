"""``pipesim verify``: what was run, the simulations, one block a device, the verdict in one line."""

from __future__ import annotations

from pipesim.answers.views.trace import CompareReport, VerifyReport
from pipesim.report.findings.finding import advisory_lines, finding_lines
from pipesim.report.pages.check import beside_lines, proof_lines, wrong_lines
from pipesim.report.pages.hardware import hardware_lines
from pipesim.report.sentences.check import scope_lines
from pipesim.report.sentences.trace import compare_sentence
from pipesim.report.sentences.verify import verify_sentence
from pipesim.report.text.console import mark
from pipesim.report.text.layout import heading_lines, simulation_lines, wrap

BOTH_TIMELINES = 120  #: cells from which on every device gets its timeline


def compare_lines(report: CompareReport, width: int) -> list[str]:
    """The report on one trace in lines of at most ``width`` cells."""
    lines = [*heading_lines(report.heading, width), "", *hardware_lines(report.comparison, width, timeline=True)]
    return [*lines, "", *wrap(compare_sentence(report), width, f"{mark(report.conclusion.ok)} ")]


def verify_lines(report: VerifyReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    lines = [*heading_lines(report.heading, width), "", *proof_lines(report.proof, width)]
    for simulation in report.simulations:
        lines += simulation_lines(simulation, width)
    lines += advisory_lines(report.advisories, width)
    of_simulations = [finding for finding in report.findings if finding not in report.proof.findings]
    if of_simulations:
        lines += ["", *finding_lines(of_simulations, width)]
    lines += beside_lines(report.proof, width)
    for n, block in enumerate(report.hardware):
        lines += ["", *hardware_lines(block, width, timeline=n == 0 or width >= BOTH_TIMELINES)]
    verdict = scope_lines(verify_sentence(report), "; ", report.proof, width, f"{mark(report.conclusion.ok)} ")
    return [*lines, *wrong_lines(report.proof, width, verdict)]
