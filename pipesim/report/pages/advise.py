"""``pipesim advise``: what limits a protocol, and a table of changes with what each gains and costs."""

from __future__ import annotations

from pipesim.answers.views.advise import Advice, AdviseReport
from pipesim.answers.views.conclusion import Conclusion
from pipesim.answers.views.sweep import Metric
from pipesim.report.pages.run import bottleneck_words
from pipesim.report.sentences.advise import (
    advise_sentence,
    change_words,
    cost_words,
    metric_words,
    verdict_words,
)
from pipesim.report.sentences.sweep import limit_words
from pipesim.report.text.console import BAD, GOOD, UNSURE
from pipesim.report.text.layout import columns, field, heading_lines, wrap, wrap_parts
from pipesim.report.text.words import MINUS, NONE, cycles, percent, size

_METRIC = {Metric.PERIOD: "period", Metric.RUN: "run"}
_MARKS = {Conclusion.AGREES: GOOD, Conclusion.WRONG: BAD, Conclusion.UNKNOWN: UNSURE}


def advise_lines(report: AdviseReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    lines = [*heading_lines(report.heading, width), ""]
    said = [f"profile {report.profile} ({report.device})"]
    said += [metric_words(report)] if report.times is not None else []
    lines += field("simulation", [*said, f"{size(report.resources.smem_bytes)} of shared memory"], width)
    lines += field("proof", [verdict_words(report.verdict)], width)
    if report.times is not None:
        limits = [bottleneck_words(report.times.limited_by) or "not known: too few events"]
        if report.times.bound_by and report.metric is Metric.PERIOD:  # it bounds the period
            limits.append(f"bound by {report.times.bound_by}")
        lines += field("limited by", limits, width)
    if report.advice:
        lines += ["", *_table(report, width)]
    for each in report.advice:
        if each.gain_permille is None:
            lines += wrap(f"{change_words(each.change, report.percent)}: {_reason(each)}", width, "  ", "    ")
    return [*lines, "", *wrap(advise_sentence(report), width, f"{_MARKS.get(report.conclusion, UNSURE)} ")]


def _table(report: AdviseReport, width: int) -> list[str]:
    head = ("change", "limited by", _METRIC[report.metric], "gain", "memory", "proof")
    rows = [_row(each, report) for each in report.advice if each.gain_permille is not None]
    legend = [
        f"{MINUS}{report.percent} %: in {100 - report.percent} % of the time",
        "each change alone",
        "memory: of a CTA",
    ]
    lines = wrap_parts(legend, width, "  ")
    return [*columns([head, *rows], 2, width), *lines] if rows else []


def _row(each: Advice, report: AdviseReport) -> tuple[str, ...]:
    gain = each.gain_permille or 0
    return (
        change_words(each.change, report.percent),
        limit_words(each.times) or NONE,
        cycles(each.value) if each.metric is report.metric else f"{_METRIC[each.metric]} {cycles(each.value)}",
        percent(gain) if gain >= 0 else f"{MINUS}{percent(-gain)}",
        cost_words(each, report.resources),
        verdict_words(each.verdict),
    )


def _reason(each: Advice) -> str:
    if each.times is not None:
        return "it does another amount of work, so that its time cannot be compared"
    return f"{each.reached.value}: {each.why}" if each.why else each.reached.value
