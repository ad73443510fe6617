"""The words of a sweep: its metric, its values, what limits a configuration, how a command line names it."""

from collections.abc import Mapping

from pipesim.answers.views.sweep import (
    NOT_KNOWN,
    Comparable,
    Configuration,
    Metric,
    Outcome,
    RankedConfiguration,
    SweepReport,
    Times,
    WorkUnit,
)
from pipesim.conform.result import LimitKind
from pipesim.report.text.words import count, cycles, number, percent, tenths

#: Where a metric compares things that are not alike.
_UNLIKE = {
    Metric.PERIOD: {Comparable.OTHER_ITERATIONS, Comparable.OTHER_WORK, Comparable.NO_WORK},
    Metric.RUN: {Comparable.OTHER_WORK, Comparable.NO_WORK},
    Metric.THROUGHPUT: set[Comparable](),
}


def metric_words(report: SweepReport) -> str:
    """``throughput: share of the matrix engine's time, over the whole run; higher is better``."""
    return report.metric.value.format(what=report.unit.value if report.unit is not None else "work in a cycle")


def why_metric(report: SweepReport) -> str:
    """Why a metric was chosen that was not given; for one that was, why it compares unlike things, else ""."""
    if not report.ranked:
        return ""
    if report.chosen:
        return f"chosen: {report.comparable.value}"
    return f"not comparable: {report.comparable.value}" if report.comparable in _UNLIKE[report.metric] else ""


def proof_words(report: SweepReport) -> str:
    """Which configurations are proved."""
    if not report.proved:
        return "not proved: --no-proof"
    usable = sum(each.usable for each in report.configurations)
    if not usable:
        return "none proved for every schedule"
    return f"each {'' if usable == len(report.configurations) else 'usable one '}proved for every schedule"


def value_words(value: int, metric: Metric, unit: WorkUnit | None) -> str:
    """A value of the metric with its unit: ``1,105 cycles``, ``80.5 %``, ``21.3 bytes a cycle``."""
    if metric is not Metric.THROUGHPUT:
        return f"{cycles(value)} cycles"
    return percent(value) if unit is WorkUnit.MATRIX else f"{tenths(value)} bytes a cycle"


def column_words(metric: Metric, unit: WorkUnit | None) -> str:
    """The head of the column of the metric."""
    if metric is not Metric.THROUGHPUT:
        return metric.name.lower()
    return "matrix engine" if unit is WorkUnit.MATRIX else "bytes a cycle"


def cell_words(value: int, metric: Metric, unit: WorkUnit | None) -> str:
    """A value under that head."""
    return value_words(value, metric, unit).removesuffix(" cycles").removesuffix(" bytes a cycle")


def name_of(params: Mapping[str, int]) -> str:
    """``stages=2 block_n=256``."""
    return " ".join(f"{name}={value}" for name, value in params.items())


def limit_words(times: Times | None) -> str:
    """What limits a configuration, for a cell of a table: ``consumer: matrix engine``, ``loads into full``."""
    found = None if times is None else times.limited_by
    if times is None or found is None:
        return ""
    engine = ": matrix engine" if times.at_matrix and found.limit is LimitKind.ROLE else ""
    return found.limit.value.format(role=found.role, group=found.group) + engine


def registers_words(configuration: Configuration) -> str:
    """Registers of a CTA, or a dash where they are not stated."""
    resources = configuration.resources
    return number(resources.registers or None) if resources is not None else number(None)


def sweep_sentence(report: SweepReport) -> str:
    """The conclusion in one sentence."""
    every = count(len(report.configurations), "configuration")
    if not report.ranked:
        return f"none of {every} is usable"
    best = _describe(report.ranked[0], report)
    wrong = sum(each.state in (Outcome.REFUTED, Outcome.UNFINISHED) for each in report.configurations)
    unknown = sum(each.state in NOT_KNOWN for each in report.configurations)
    lacking = [
        f"{number(found)} of {every} {'is' if found == 1 else 'are'} {what}"
        for found, what in ((wrong, "not correct"), (unknown, "not known"))
        if found
    ]
    return f"{', '.join(lacking)}; best of the usable: {best}" if lacking else f"best: {best}"


def smallest_sentence(report: SweepReport) -> str:
    """The smallest that is nearly as good, in one sentence; "" of none."""
    found = report.smallest
    if found is None:
        return ""
    within = f"smallest within {percent(report.within_permille).replace('.0 %', ' %')} of the best"
    if found is report.ranked[0]:
        return f"{within}: the same"
    return f"{within}: {_describe(found, report)}"


def sweep_members(value: SweepReport | Configuration) -> dict[str, object]:
    """What JSON says about a sweep, or of a configuration, beside its data."""
    if isinstance(value, Configuration):
        return {"limit": limit_words(value.times)}
    return {"said": sweep_sentence(value), "ok": value.conclusion.ok}


def _describe(each: RankedConfiguration, report: SweepReport) -> str:
    value = value_words(each.value, report.metric, report.unit)
    return f"{name_of(each.configuration.params)}, {value}"
