"""Tables over several protocols: ``pipesim list``, and the periods of many configurations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console

from pipesim.answers.views.rows import PeriodRow, ProtocolRow
from pipesim.report.text.console import paint, width_of
from pipesim.report.text.layout import columns, wrap, wrap_parts
from pipesim.report.text.words import count, cycles, number, plus_minus, signed_percent, size


def paint_list(console: Console, rows: Sequence[ProtocolRow]) -> None:
    """Write the list of protocols."""
    paint(console, list_lines(rows, width_of(console)))


def list_lines(rows: Sequence[ProtocolRow], width: int) -> list[str]:
    """Each protocol's name, summary, roles and barriers, and its parameters as they are written after ``-p``."""
    lines: list[str] = []
    for row in rows:
        lines += [*([""] if lines else []), *wrap(row.name, width), *wrap(row.summary, width, "  ")]
        roles = [count(warps, f"{name} warp") for name, warps in row.roles]
        roles += [f"in each of {row.ctas} CTAs"] if row.ctas > 1 else []
        barriers = [
            f"{name}[{size}]" + ("" if arrivals is None else f" count {number(arrivals)}")
            for name, size, arrivals in row.barriers
        ]
        lines += wrap_parts(roles, width, "  roles     ") if roles else []
        lines += wrap_parts(barriers, width, "  barriers  ") if barriers else []
        if row.params:
            lines += wrap(" ".join(f"{name}={value}" for name, value in row.params.items()), width, "  -p        ")
    return lines or ["no protocols"]


def paint_periods(console: Console, rows: Sequence[PeriodRow]) -> None:
    """Write the table of periods."""
    paint(console, period_lines(rows, width_of(console)))


def period_lines(rows: Sequence[PeriodRow], width: int) -> list[str]:
    """One table for each run of rows of one protocol and device; periods and work in cycles."""
    lines: list[str] = []
    for (name, device), group in groupby(rows, key=lambda r: (r.name, r.device)):
        head = ("stages", "tile", "warps", "work", "grid", "law", "simulated", "measured", "error", "noise")
        table = columns([head, *(_period(r) for r in group)], 0, width, gap=1)
        title = wrap_parts([name, device, "period in cycles; work in cycles a tile; law: the ring law's period"], width)
        lines += [*([""] if lines else []), *title, "", *table]
    return lines or ["no configurations"]


def _period(row: PeriodRow) -> tuple[str, ...]:
    shape = (number(row.stages), size(row.tile_bytes), number(row.warps), number(row.work), number(row.grid))
    periods = (cycles(row.ring_law), cycles(row.simulated), cycles(row.measured))
    return (*shape, *periods, signed_percent(row.error_permille), plus_minus(row.noise_permille))
