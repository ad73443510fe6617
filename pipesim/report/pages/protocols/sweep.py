"""``pipesim sweep``: the best configurations, a plot over each parameter, what is not usable and why, the choice."""

from collections.abc import Sequence

from rich.cells import cell_len

from pipesim.answers.views.sweep import Configuration, Metric, Outcome, RankedConfiguration, SweepReport
from pipesim.report.sentences.sweep import (
    cell_words,
    column_words,
    limit_words,
    metric_words,
    name_of,
    proof_words,
    registers_words,
    smallest_sentence,
    sweep_sentence,
    why_metric,
)
from pipesim.report.text.console import mark
from pipesim.report.text.layout import LEAST_NAME, columns, field, pad, pad_left, wrap, wrap_parts
from pipesim.report.text.source import command_lines, shell_words
from pipesim.report.text.words import NONE, count, listed, number, parameter, percent, size

_GAP = 2  #: cells between the columns of the table
MOST_ROWS = 20  #: of the table: the best ones
MOST_NOT_USABLE = 40  #: that are listed
_MOST_VALUES = 6  #: of an axis that its heading lists one by one
_CHANGED = "the program is another one than when the results file was written"


def sweep_lines(report: SweepReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    lines = _head(report, width)
    if report.ranked:
        lines += ["", *_table(report, width)]
    for axis in report.axes:
        plot = _plot(report, axis, width)
        lines += ["", *plot] if plot else []
    unusable = _not_usable(report, width)
    lines += ["", *unusable] if unusable else []
    return [*lines, "", *_choice(report, width)]


def _head(report: SweepReport, width: int) -> list[str]:
    axes = [f"{name.replace('_', ' ')} {_values(values)}" for name, values in report.axes.items()]
    fixed = [parameter(name, value) for name, value in report.fixed.items()]
    fixed += [f"grid {count(report.ctas, 'CTA')}"] if report.ctas is not None else []
    parts = [*axes, *fixed, count(len(report.configurations), "configuration")]
    lines = wrap_parts(parts, width, f"{report.protocol}   ")
    lines += ["", *field("simulation", [f"profile {report.profile} ({report.device})", proof_words(report)], width)]
    chosen = why_metric(report)
    lines += field("ranked by", [metric_words(report), *([chosen] if chosen else [])], width)
    kept = [f"{number(report.reused)} read from the results file"] * bool(report.reused)
    kept += [f"{number(report.changed)} computed again: {_CHANGED}"] * bool(report.changed)
    lines += field("results", kept, width) if kept else []
    if report.interrupted:
        lines += field("ended", [f"{report.interrupted}: {_missing_answers(report)} not reached"], width)
    return lines


def _missing_answers(report: SweepReport) -> str:
    return count(sum(each.state is Outcome.NOT_REACHED for each in report.configurations), "configuration")


def _values(values: Sequence[int]) -> str:
    """``2 to 8`` of every whole number between, else each value, or the first, the last and how many."""
    if len(values) > 2 and list(values) == list(range(values[0], values[-1] + 1)):
        return f"{number(values[0])} to {number(values[-1])}"
    if len(values) <= _MOST_VALUES:
        return listed([number(value) for value in values])
    return f"{number(values[0])} … {number(values[-1])} ({number(len(values))} values)"


def _table(report: SweepReport, width: int) -> list[str]:
    """The best ones, and the smallest where it is not among them."""
    shown = list(report.ranked[:MOST_ROWS])
    if report.smallest is not None and report.smallest not in shown:
        shown.append(report.smallest)
    metric = column_words(report.metric, report.unit)
    head = (*(name.replace("_", " ") for name in report.axes), "limited by", metric, "off", "memory", "registers")
    rows = [head, *(_row(each, report) for each in shown)]
    registers = len({row[-1] for row in rows[1:]}) > 1  # the same everywhere they say nothing
    if not registers:
        rows = [row[:-1] for row in rows]
    ranks = ["rank", *(number(report.ranked.index(each) + 1) for each in shown)]
    lines = _laid_out(rows, ranks, len(report.axes) + 1, width)
    units = {Metric.PERIOD: "period: cycles an iteration", Metric.RUN: "run: cycles"}
    legend = [units[report.metric]] if report.metric in units else []
    legend += [
        "off: from the best",
        "memory and registers: of a CTA" if len(rows[0]) == len(head) else "memory: of a CTA",
    ]
    lines += wrap_parts(legend, width, "  ")
    left = len(report.ranked) - len(shown)
    if left > 0:
        lines += wrap(f"{count(left, 'more usable configuration')}: --csv FILE has all", width, "  ")
    return lines


def _laid_out(rows: Sequence[Sequence[str]], ranks: Sequence[str], left: int, width: int) -> list[str]:
    """The table, split where it is too wide: the parameters are repeated, or where these fill a line, the ranks.

    The first column of a table may be cut, as a name is: ranks stand there where that would cut a value.
    """
    widths = [max(cell_len(row[c]) for row in rows) for c in range(len(rows[0]))]
    if 2 + sum(widths) + _GAP * (len(widths) - 1) <= width:
        return columns(rows, left, width, _GAP)
    if widths[0] <= LEAST_NAME and 2 + sum(widths[:left]) + _GAP * left + max(widths[left:]) <= width:
        return columns(rows, left, width, _GAP)
    ranked = [(rank, *row) for rank, row in zip(ranks, rows, strict=True)]
    return columns(ranked, left + 1, width, _GAP, repeated=1)


def _row(each: RankedConfiguration, report: SweepReport) -> tuple[str, ...]:
    found = each.configuration
    memory = size(found.resources.smem_bytes) if found.resources is not None else NONE
    if found.resources is not None and memory.endswith("bytes"):
        memory = f"{found.resources.smem_bytes / 1024:,.1f} KiB"
    return (
        *(number(value) for value in found.params.values()),
        limit_words(found.times) or NONE,
        cell_words(each.value, report.metric, report.unit),
        NONE if each is report.ranked[0] or each.off_permille is None else f"+{percent(each.off_permille)}",
        memory,
        registers_words(found),
    )


def _plot(report: SweepReport, axis: str, width: int) -> list[str]:
    """The best that any configuration reaches at each value of one parameter."""
    best: dict[int, RankedConfiguration] = {}
    for each in report.ranked:
        best.setdefault(each.configuration.params[axis], each)
    if not best or len(report.axes[axis]) < 2:
        return []
    rows = [
        (number(value), best[value].value, cell_words(best[value].value, report.metric, report.unit))
        if value in best
        else (number(value), None, "none usable")
        for value in report.axes[axis]
    ]
    over = ", the best over the other parameters" if len(report.axes) > 1 else ""
    title = f"{column_words(report.metric, report.unit)} by {axis.replace('_', ' ')}{over}"
    return bar_lines(title, rows, width, number(report.ranked[0].configuration.params[axis]))


def _not_usable(report: SweepReport, width: int) -> list[str]:
    """Every configuration that is not usable, with its reason; their number where they are too many."""
    found = [each for each in report.configurations if not each.usable and each.state is not Outcome.NOT_REACHED]
    without = {id(each.configuration) for each in report.ranked}
    unranked = [each for each in report.configurations if each.usable and id(each) not in without]
    if not found and not unranked:
        return []
    counts = [f"{number(n)} {state.value}" for state in Outcome if (n := sum(each.state is state for each in found))]
    counts += [f"{number(len(unranked))} without a period"] * bool(unranked)
    lines = field("not usable", counts, width)
    for each in [*found, *unranked][:MOST_NOT_USABLE]:
        lines += wrap(f"{name_of(each.params)}: {_reason(each)}", width, "    ", "      ")
    left = len(found) + len(unranked) - MOST_NOT_USABLE
    if left > 0:
        lines += wrap(f"{count(left, 'more')}: --csv FILE has all".replace("mores", "more"), width, "    ")
    return lines


def _reason(each: Configuration) -> str:
    if each.usable:
        return "too few iterations for a steady state"
    if each.state in (Outcome.REFUSED, Outcome.FAILED):
        return each.why
    return f"{each.state.value}: {each.why}" if each.why else each.state.value


def _choice(report: SweepReport, width: int) -> list[str]:
    lines = wrap(sweep_sentence(report), width, f"{mark(report.conclusion.ok)} ")
    if not report.ranked:
        return lines
    said = smallest_sentence(report)
    lines += wrap(said, width, "  ") if said else []
    return [*lines, *command_lines("  again: ", shell_words(report.command), width)] if report.command else lines


_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEAST = 10  #: cells of the longest bar


def bar(value: int, most: int, cells: int) -> str:
    """``value`` of ``most`` as a bar of at most ``cells``; anything above 0 is seen."""
    eighths = 8 * cells * value // most if most > 0 else 0
    if value > 0 and not eighths:
        eighths = 1
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def bar_lines(title: str, rows: Sequence[tuple[str, int | None, str]], width: int, mark: str = "") -> list[str]:
    """A line for each (name, number or None, words of it) under a title; the row named ``mark`` has a ``▸``."""
    names = max(cell_len(name) for name, _, _ in rows)
    words = max(cell_len(text) for _, _, text in rows)
    most = max((value for _, value, _ in rows if value is not None), default=0)
    cells = max(_LEAST, width - names - words - 8)
    lines = wrap(title, width, "  ")
    for name, value, text in rows:
        drawn = "" if value is None else bar(value, most, cells)
        sign = "▸" if name == mark else " "
        lines.append(f"  {sign} {pad_left(name, names)}  {pad_left(text, words)} {pad(drawn, 0)}".rstrip())
    return lines
