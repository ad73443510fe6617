"""``pipesim advise``: what limits a protocol, and a table of changes with what each gains and costs."""

from pipesim.answers.views.sweep import Advice, AdvisedChange, AdviseReport, ChangeKind, Metric, Resources
from pipesim.model.finding import Verdict
from pipesim.report.pages.protocols.run import bottleneck_words
from pipesim.report.sentences.sweep import limit_words
from pipesim.report.text.console import mark
from pipesim.report.text.layout import columns, field, heading_lines, wrap, wrap_parts
from pipesim.report.text.words import MINUS, NONE, count, cycles, percent, size

_LEAST_PERMILLE = 5  #: of the time: a gain below it is none


def change_words(change: AdvisedChange, by: int) -> str:
    """``stages=5``, ``consumer work −20 %, tiles`` (its loop); ``by``: the percentage by which times are shorter."""
    if change.parameter:
        return f"{change.parameter}={change.value}"
    return change.kind.value.format(role=change.role, where=f", {change.loop}" if change.loop else "", by=by)


def cost_words(each: Advice, before: Resources) -> str:
    """``+16.0 KiB``: how much more shared memory a CTA takes; "none"."""
    more = 0 if each.resources is None else each.resources.smem_bytes - before.smem_bytes
    if not more:
        return "none"
    amount = f"{abs(more) / 1024:,.1f} KiB" if abs(more) >= 1024 else count(abs(more), "byte")
    return f"{'+' if more > 0 else MINUS}{amount}"


def verdict_words(verdict: Verdict | None) -> str:
    """``proved``; "" where nothing was asked."""
    return "" if verdict is None else verdict.name.lower()


def metric_words(report: AdviseReport) -> str:
    """``period 1,105 cycles``."""
    return f"{report.metric.name.lower()} {cycles(report.value)} cycles"


def advise_sentence(report: AdviseReport) -> str:
    """The conclusion in one sentence."""
    if report.verdict is Verdict.REFUTED:
        return f"not correct: {report.why}; correct it first (pipesim check)"
    if report.times is None:
        return f"the simulated run does not finish: {report.why or 'too many operations'}"
    gains = [each for each in report.advice if each.gain_permille is not None]
    best = gains[0] if gains else None
    if best is None or (best.gain_permille or 0) < _LEAST_PERMILLE:
        return f"none of the changes gains {percent(_LEAST_PERMILLE)} or more"
    said = f"most is gained by {change_words(best.change, report.percent)}: {percent(best.gain_permille)}"
    return f"{said}; {_stages(gains)}" if _stages(gains) else said


def advise_members(value: AdviseReport | Advice) -> dict[str, object]:
    """What JSON says about advice beside its data."""
    if isinstance(value, Advice):
        return {"limit": limit_words(value.times)}
    return {"said": advise_sentence(value), "ok": value.conclusion.ok}


def _stages(gains: list[Advice]) -> str:
    """What more stages bring, which is what a person asks first."""
    more = [each for each in gains if each.change.kind is ChangeKind.MORE_STAGES]
    useful = [each for each in more if (each.gain_permille or 0) >= _LEAST_PERMILLE]
    if useful and useful[0] is gains[0]:
        return ""
    if useful:
        return f"{change_words(useful[0].change, 0)} gains {percent(useful[0].gain_permille)}"
    return "more stages gain nothing" if more else ""


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
    return [*lines, "", *wrap(advise_sentence(report), width, f"{mark(report.conclusion.ok)} ")]


def _table(report: AdviseReport, width: int) -> list[str]:
    head = ("change", "limited by", report.metric.name.lower(), "gain", "memory", "proof")
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
        cycles(each.value) if each.metric is report.metric else f"{each.metric.name.lower()} {cycles(each.value)}",
        percent(gain) if gain >= 0 else f"{MINUS}{percent(-gain)}",
        cost_words(each, report.resources),
        verdict_words(each.verdict),
    )


def _reason(each: Advice) -> str:
    if each.times is not None:
        return "it does another amount of work, so that its time cannot be compared"
    return f"{each.reached.value}: {each.why}" if each.why else each.reached.value
