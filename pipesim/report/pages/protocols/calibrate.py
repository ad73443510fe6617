"""``pipesim calibrate``: the values of a profile with their intervals, how far off it is, and what to capture next."""

from collections import Counter
from collections.abc import Sequence

from pipesim.answers.views.calibrate import CalibrationReport
from pipesim.conform.fit.values import CalibratedValue, ValueState
from pipesim.report.text.layout import columns, field, wrap
from pipesim.report.text.words import NONE, count, listed, number

_FEW = 8  #: values that are named without being asked for
_LIMIT = "--time-limit SECONDS gives it more time, --recordings N fewer recordings"
_WORSE = "Keep the base profile for these, or give more recordings of different sizes"


def calibration_lines(report: CalibrationReport, width: int, *, verbose: bool = False) -> list[str]:
    """The report in lines of at most ``width`` cells; ``verbose``: with every value that is assumed."""
    lines = wrap(f"{report.profile}   {report.device}, on top of the profile {report.base}", width)
    if report.inputs:
        lines += ["", *field("fitted to", _inputs(report), width)]
    if report.ended:
        lines += ["", *wrap(f"{report.ended}: the values are the best so far. {_LIMIT}", width, "  ", "  ")]
    if report.residuals:
        lines += ["", *_residuals(report, width)]
    if worse := [each.quantity for each in report.residuals if each.median_after > each.median_before]:
        lines += ["", *wrap(f"warning: larger errors than before, {listed(worse)}. {_WORSE}", width, "  ", "  ")]
    known = [each for each in report.values if each.state is not ValueState.ASSUMED]
    if known:
        lines += ["", *_table(known, width, "estimate" if report.kernel else "base")]
    if report.kernel:
        lines += ["", *field("the rest", [f"is that of {report.base}, or an estimate from instructions"], width)]
    elif lost := [each for each in report.values if each.state is ValueState.ASSUMED]:
        lines += ["", *(_assumed_values(lost, width) if verbose else _groups(report, lost, width))]
    else:
        lines += ["", *field("assumed", ["nothing: every value is determined"], width)]
    if report.no_proposals:
        lines += ["", *wrap(f"captures that would determine more: unknown, {report.no_proposals}", width, "  ", "    ")]
    if report.proposals is not None:
        lines += ["", *_proposals(report, width, verbose=verbose)]
    if report.written:
        lines += ["", *wrap(f"wrote {report.written}", width)]
    return lines


def _inputs(report: CalibrationReport) -> list[str]:
    """How many recordings were fitted, and why others were not."""
    others = (
        (report.left_out, "held out"),
        (report.not_chosen, "not needed (--recordings 0 fits all)"),
        (report.repeated, "given twice, counted once"),
    )
    counted = [f"{count(number, 'recording')} {why}" for number, why in others if number]
    return [count(len(report.inputs), "recording"), *counted]


def _groups(report: CalibrationReport, lost: Sequence[CalibratedValue], width: int) -> list[str]:
    """How many values of each group are kept from the base profile."""
    names = [each.name for each in lost]
    groups = Counter(name.split("/")[0] + "/" if "/" in name else name.split(".")[0] + "." for name in names)
    parts = [f"{group} {number(size)}" for group, size in sorted(groups.items())]
    kept = f"{count(len(names), 'value')} of {report.base} that the recordings do not determine (-v lists them)"
    return [*field("assumed", [kept], width), *field("", parts, width)]


def _table(values: Sequence[CalibratedValue], width: int, before: str) -> list[str]:
    rows = [("value", before, "now", "± 95 %", "obtained")]
    rows += [
        (each.name, number(each.base), number(each.value), _half(each.half_width), each.state.value) for each in values
    ]
    return columns(rows, 1, width)


def _half(width: float | None) -> str:
    return NONE if width is None else number(round(width)) if width >= 10 else f"{width:.1f}"


def _assumed_values(lost: Sequence[CalibratedValue], width: int) -> list[str]:
    """What is kept from the base profile, and why."""
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


def _proposals(report: CalibrationReport, width: int, *, verbose: bool) -> list[str]:
    lines = ["  captures that would determine more:"] if report.proposals else ["  no capture would determine more"]
    for each in report.proposals or ():
        lines += [f"    {each.label}"]  # to be copied: not wrapped
        said = f"determines {listed(list(each.determines))}" if each.determines else "narrows what is left"
        lines += wrap(said, width, "      ")
    if report.never:
        few = verbose or len(report.never) <= _FEW
        never = listed(list(report.never)) if few else f"{count(len(report.never), 'value')} (-v lists them)"
        lines += wrap(f"no capture of these kernels determines {never}", width, "  ", "    ")
    return lines
