"""A sweep as an SVG picture: the metric over one parameter, a line for each value of the others."""

from collections.abc import Mapping, Sequence

from pipesim.answers.views.sweep import Configuration, RankedConfiguration, SweepReport
from pipesim.report.pictures.drawing import CELL, LINE, MARGIN, TEXT_STYLE, label, px, svg_file
from pipesim.report.sentences.sweep import cell_words, column_words, name_of, sweep_sentence
from pipesim.report.text.words import number

_COLOURS = ("#1f5fae", "#b3261e", "#2d7a3e", "#8a5a14", "#6b3fa0", "#0f7c8a", "#a0426b", "#5b6673")
_WIDTH, _HEIGHT = 720, 300  #: of the plot itself
_LEFT, _TOP = 90, 84
_TICKS = 5
_MOST_LINES = len(_COLOURS)
_STYLE = TEXT_STYLE + (
    ".axis{stroke:#1c2530}.grid{stroke:#e3e8ee}.series{fill:none;stroke-width:2}.invalid{stroke:#9aa5b1;stroke-width:1.5}"
    ".best{fill:none;stroke:#1c2530;stroke-width:2}"
)
_Point = tuple[float, float]


def sweep_svg(report: SweepReport) -> str:
    """The file, the same text every time; "" if no configuration is usable."""
    if not report.ranked:
        return ""
    axis = max(report.axes, key=lambda name: len(report.axes[name]))
    values = report.axes[axis]
    series = _series(report, axis)
    top = max(each.value for each in report.ranked)
    at = {value: _LEFT + (n + 0.5) * _WIDTH / len(values) for n, value in enumerate(values)}
    body = [
        label(MARGIN, MARGIN + LINE, report.protocol, "title"),
        label(MARGIN, MARGIN + 2 * LINE, f"{sweep_sentence(report)} · profile {report.profile} · simulated", "quiet"),
    ]
    body += _frame(report, axis, values, at, top)
    bottom = _TOP + _HEIGHT + 3 * LINE
    for n, (name, members) in enumerate(series.items()):
        colour = _COLOURS[n % len(_COLOURS)]
        body += _draw_points([(at[each.configuration.params[axis]], _y(each.value, top)) for each in members], colour)
        if name:
            body.append(f'<rect x="{_LEFT}" y="{px(bottom + n * LINE - 9)}" width="10" height="10" fill="{colour}"/>')
            body.append(label(_LEFT + 16, bottom + n * LINE, name))
    body += _invalid(report, axis, at)
    best = report.ranked[0]
    x, y = at[best.configuration.params[axis]], _y(best.value, top)
    body.append(f'<circle class="best" cx="{px(x)}" cy="{px(y)}" r="7"/>')
    height = bottom + LINE * len(series) + MARGIN
    longest = max([_LEFT + _WIDTH, *(_LEFT + 16 + CELL * len(name) for name in series)])
    return svg_file(f"sweep of {report.protocol}", _STYLE, "", body, longest + MARGIN, height)


def _series(report: SweepReport, axis: str) -> dict[str, list[RankedConfiguration]]:
    """The lines, by the values of the other parameters; with too many of them one line, the best at each value."""
    order = {value: n for n, value in enumerate(report.axes[axis])}
    by_name: dict[str, list[RankedConfiguration]] = {}
    for each in sorted(report.ranked, key=lambda r: _others(r.configuration.params, report, axis)):
        by_name.setdefault(name_of(_without(each.configuration.params, axis)), []).append(each)
    if len(by_name) > _MOST_LINES:
        best: dict[int, RankedConfiguration] = {}
        for each in report.ranked:
            best.setdefault(each.configuration.params[axis], each)
        by_name = {"the best over the other parameters": list(best.values())}
    return {
        name: sorted(members, key=lambda r: order[r.configuration.params[axis]]) for name, members in by_name.items()
    }


def _others(params: Mapping[str, int], report: SweepReport, axis: str) -> tuple[int, ...]:
    return tuple(report.axes[name].index(value) for name, value in params.items() if name != axis)


def _without(params: Mapping[str, int], axis: str) -> dict[str, int]:
    return {name: value for name, value in params.items() if name != axis}


def _frame(report: SweepReport, axis: str, values: Sequence[int], at: Mapping[int, float], top: int) -> list[str]:
    """The axes with their numbers."""
    right, foot = _LEFT + _WIDTH, _TOP + _HEIGHT
    body = []
    for n in range(_TICKS + 1):
        value = top * n // _TICKS
        y = _y(value, top)
        body.append(f'<line class="grid" x1="{_LEFT}" y1="{px(y)}" x2="{right}" y2="{px(y)}"/>')
        words = cell_words(value, report.metric, report.unit)
        body.append(label(_LEFT - 8 - CELL * len(words), y + 4, words, "quiet"))
    body.append(f'<path class="axis" fill="none" d="M{_LEFT} {_TOP}V{foot}H{right}"/>')
    step = max(1, -(-len(values) * 40 // _WIDTH))  # room for a number of about five digits
    body += [label(at[value], foot + LINE, number(value), "quiet", middle_of=True) for value in values[::step]]
    body.append(label(_LEFT + _WIDTH / 2, foot + 2 * LINE, axis.replace("_", " "), middle_of=True))
    body.append(label(MARGIN, _TOP - 12, column_words(report.metric, report.unit), "quiet"))
    return body


def _draw_points(points: Sequence[_Point], colour: str) -> list[str]:
    path = "L".join(f"{px(x)} {px(y)}" for x, y in points)
    line = f'<path class="series" stroke="{colour}" d="M{path}"/>'
    return [line, *(f'<circle cx="{px(x)}" cy="{px(y)}" r="3.5" fill="{colour}"/>' for x, y in points)]


def _invalid(report: SweepReport, axis: str, at: Mapping[int, float]) -> list[str]:
    """A grey cross for each value of the axis at which configurations are not usable, with their number."""
    found: dict[int, list[Configuration]] = {}
    for each in report.configurations:
        if not each.usable:
            found.setdefault(each.params[axis], []).append(each)
    body = []
    y = _TOP + _HEIGHT - 8
    for value, members in found.items():
        x = at[value]
        body.append(f'<path class="invalid" d="M{px(x - 4)} {px(y - 4)}l8 8m0 -8l-8 8"/>')
        body.append(label(x + 7, y + 4, number(len(members)), "quiet"))
    words = "× and a number: configurations that are not usable"
    return [*body, label(MARGIN, _TOP + _HEIGHT + 2 * LINE, words, "quiet")] if found else []


def _y(value: int, top: int) -> float:
    return _TOP + _HEIGHT - _HEIGHT * value / max(top, 1)
