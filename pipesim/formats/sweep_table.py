"""A sweep as a table for other tools: CSV, one row for each configuration, usable or not."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from pipesim.answers.views.sweep import Configuration, SweepReport

COLUMNS = (
    "state", "why", "rank", "off_permille", "cycles", "period_millicycles", "iterations", "work_amount", "work_unit",
    "limited_by", "limited_role", "limited_group", "waits_permille", "smem_bytes", "registers", "threads",
)  # fmt: skip
_PREFIX = "sweep."  #: with a dot no parameter can have the name


def column_names(names: Iterable[str], parameters: Iterable[str]) -> list[str]:
    """The names of columns beside those of swept parameters; ``sweep.NAME`` where a parameter has the same name."""
    taken = set(parameters)
    return [f"{_PREFIX}{name}" if name in taken else name for name in names]


def sweep_csv(report: SweepReport) -> str:
    """All configurations in the order of the axes; what does not exist is empty."""
    ranks = {id(each.configuration): (n, each.off_permille) for n, each in enumerate(report.ranked, 1)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*report.axes, *column_names(COLUMNS, report.axes)])
    for each in report.configurations:
        writer.writerow([*each.params.values(), *_row(each, *ranks.get(id(each), ("", "")))])
    return text.getvalue()


def _row(each: Configuration, rank: int | str, off: int | str) -> list[object]:
    return [each.state.name.lower(), each.why, rank, off, *_times(each), *_resources(each)]


def _times(each: Configuration) -> tuple[object, ...]:
    times = each.times
    if times is None:
        return ("",) * 9
    limit = times.limited_by
    by = ("",) * 4 if limit is None else (limit.limit.name.lower(), limit.role, limit.group, limit.waits_permille)
    return (times.cycles, times.period_millicycles, times.iterations, times.work, times.unit.name.lower(), *by)


def _resources(each: Configuration) -> tuple[object, ...]:
    found = each.resources
    return ("",) * 3 if found is None else (found.smem_bytes, found.registers, found.threads)
