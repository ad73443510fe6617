"""``pipesim list``: a line for each protocol, and all about one."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from pipesim.answers.views.rows import ProtocolRow
from pipesim.report.text.layout import pad, wrap, wrap_parts
from pipesim.report.text.words import count, number


def list_lines(rows: Sequence[tuple[str, str]], width: int) -> list[str]:
    """A line for each protocol, its summary as far as it goes; then where to find the rest."""
    if not rows:
        return ["no protocols"]
    names = max(cell_len(name) for name, _ in rows)
    lines = [f"  {pad(name, names)}  {_begin(summary, width - names - 4)}".rstrip() for name, summary in rows]
    return [*lines, "", *wrap("pipesim list NAME says all about one, pipesim show NAME draws it", width)]


def _begin(summary: str, width: int) -> str:
    """As many words of a summary as there is room for, without the stop of a whole one."""
    if cell_len(summary) <= width:
        return summary.removesuffix(".")
    return wrap(summary, width - 2)[0].rstrip(",;:") + " …"


def protocol_lines(row: ProtocolRow, width: int) -> list[str]:
    """A protocol's name, summary, roles and barriers, its parameters as they are written after ``-p``, its traces."""
    roles = [count(warps, f"{name} warp") for name, warps in row.roles]
    roles += [f"in each of {row.ctas} CTAs"] if row.ctas > 1 else []
    barriers = [
        f"{name}[{size}]" + ("" if arrivals is None else f" count {number(arrivals)}")
        for name, size, arrivals in row.barriers
    ]
    lines = [*wrap(row.name, width), *wrap(row.summary, width, "  ")]
    lines += wrap_parts(roles, width, "  roles     ") if roles else []
    lines += wrap_parts(barriers, width, "  barriers  ") if barriers else []
    if row.params:
        lines += wrap(" ".join(f"{name}={value}" for name, value in row.params.items()), width, "  -p        ")
    recorded = [
        f"{trace.device}: {number(trace.recordings)}" + ("" if trace.usual else ", none of them with these parameters")
        for trace in row.traces
    ]
    return lines + wrap_parts(recorded or ["none"], width, "  traces    ")
