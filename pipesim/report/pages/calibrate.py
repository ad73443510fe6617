"""``pipesim calibrate``: the values of a profile with their intervals, how far off it is, and what to capture next."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from pipesim.answers.views.calibrate import CalibratedValue, CalibrationReport, ValueState
from pipesim.report.text.console import paint, width_of
from pipesim.report.text.layout import columns, field, wrap
from pipesim.report.text.words import NONE, count, listed, number


def paint_calibration(console: Console, report: CalibrationReport) -> None:
    """Write the report."""
    paint(console, calibration_lines(report, width_of(console)))


def calibration_lines(report: CalibrationReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    lines = wrap(f"{report.profile}   {report.device}, on top of the profile {report.base}", width)
    held = f"{count(report.left_out, 'recording')} held out" if report.left_out else ""
    if report.inputs:
        lines += [
            "",
            *field("fitted to", [part for part in (count(len(report.inputs), "recording"), held) if part], width),
        ]
    known = [each for each in report.values if each.state is not ValueState.ASSUMED]
    if known:
        lines += ["", *_table(known, width, "estimate" if report.kernel else "base")]
    if report.kernel:
        lines += ["", *field("the rest", [f"is that of {report.base}, or an estimate from instructions"], width)]
    else:
        lines += ["", *_assumed(report.values, width)]
    if report.residuals:
        lines += ["", *_residuals(report, width)]
    if report.proposals is not None:
        lines += ["", *_proposals(report, width)]
    if report.written:
        lines += ["", *wrap(f"wrote {report.written}", width)]
    return lines


def _table(values: Sequence[CalibratedValue], width: int, before: str) -> list[str]:
    rows = [("value", before, "now", "± 95 %", "obtained")]
    rows += [
        (each.name, number(each.base), number(each.value), _half(each.half_width), each.state.value) for each in values
    ]
    return columns(rows, 1, width)


def _half(width: float | None) -> str:
    return NONE if width is None else number(round(width)) if width >= 10 else f"{width:.1f}"


def _assumed(values: Sequence[CalibratedValue], width: int) -> list[str]:
    """What is kept from the base profile, and why."""
    lost = [each for each in values if each.state is ValueState.ASSUMED]
    if not lost:
        return field("assumed", ["nothing: every value is determined"], width)
    unused = [each.name for each in lost if each.half_width is None]
    wide = [each for each in lost if each.half_width is not None]
    lines = []
    if unused:
        lines += wrap(f"assumed, nothing that was recorded depends on: {listed(unused)}", width, "  ", "    ")
    for each in wide:
        mixed = f", only together with {listed(list(each.with_others))}" if each.with_others else ""
        lines += wrap(f"assumed, not determined: {each.name} ± {_half(each.half_width)}{mixed}", width, "  ", "    ")
    return lines


def _residuals(report: CalibrationReport, width: int) -> list[str]:
    rows = [("error of", "number", "median before", "worst", "median after", "worst")]
    rows += [
        (
            each.quantity, number(each.count), _percent(each.median_before), _percent(each.worst_before),
            _percent(each.median_after), _percent(each.worst_after),
        )
        for each in report.residuals
    ]  # fmt: skip
    return columns(rows, 1, width)


def _percent(permille: int) -> str:
    return f"{permille / 10:.1f} %"


def _proposals(report: CalibrationReport, width: int) -> list[str]:
    lines = ["  captures that would determine more:"] if report.proposals else ["  no capture would determine more"]
    for each in report.proposals or ():
        lines += [f"    {each.label}"]  # to be copied: not wrapped
        said = f"determines {listed(list(each.determines))}" if each.determines else "narrows what is left"
        lines += wrap(said, width, "      ")
    if report.never:
        lines += wrap(f"no capture of these kernels determines {listed(list(report.never))}", width, "  ", "    ")
    return lines
