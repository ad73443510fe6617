"""``pipesim run``: one simulated schedule, its length, where the time goes, its timeline, and what failed."""

from __future__ import annotations

from pipesim.answers.views.run import RunReport
from pipesim.model.ending import Ending
from pipesim.report.findings.finding import advisory_lines, budget_lines, fault_lines, finding_lines
from pipesim.report.pages.figures import bottleneck_words, share_lines
from pipesim.report.pictures.timeline import timeline_lines
from pipesim.report.text.console import BAD, GOOD, UNSURE
from pipesim.report.text.layout import field, heading_lines, simulation_lines, wrap
from pipesim.report.text.words import count, percent


def run_lines(report: RunReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    lines = [*heading_lines(report.heading, width), "", *simulation_lines(report.simulation, width)]
    events, steps = count(len(report.trace.events), "event"), count(report.steps, "operation")
    lines += field("length", [count(report.cycles, "cycle"), f"{steps} executed", f"{events} recorded"], width)
    if report.limited_by is not None:
        lines += field("limited by", [bottleneck_words(report.limited_by)], width)
    if report.engines:
        busy = [f"{engine} busy {percent(share)} of the run" for engine, share in report.engines.items()]
        lines += field("engines", busy, width)
    lines += advisory_lines(report.advisories, width)
    blocks = [share_lines([("simulated", report.shares)], width)]
    blocks.append(timeline_lines(report.trace, None, width))
    if report.deadlock is not None:
        blocks.append(finding_lines([report.deadlock], width))
    if report.faults:
        blocks.append(fault_lines(report.faults, width))
    for block in blocks:
        lines += ["", *block] if block else []
    return [*lines, "", *_verdict(report, width)]


def _verdict(report: RunReport, width: int) -> list[str]:
    """One schedule shows that something can happen, never that nothing else can: the line says so."""
    match report.simulation.outcome:
        case Ending.FINISHED if not report.faults:
            return wrap("finished: no deadlock and no fault in this schedule", width, f"{GOOD} ")
        case Ending.DEADLOCK:
            return wrap("the simulated schedule ends in a deadlock", width, f"{BAD} ")
        case Ending.UNKNOWN if not report.heading.coverage.complete:
            return wrap(f"unknown: {report.heading.protocol} was not followed to its end", width, f"{UNSURE} ")
        case Ending.UNKNOWN:
            return budget_lines(report.steps, width, report.simulation.cut)
        case _:
            return wrap(f"the simulated schedule breaks a rule: {count(len(report.faults), 'fault')}", width, f"{BAD} ")
