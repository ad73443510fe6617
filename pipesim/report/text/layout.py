"""Lines that fit: wrapping, truncation in the middle, labelled fields and columns; and the first lines of a report.

Widths are terminal cells.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len, chop_cells

from pipesim.answers.views.conclusion import Heading
from pipesim.model.coverage import Coverage
from pipesim.report.text.words import NONE, count, cycles, parameters, seconds, warps, with_lines_together

if TYPE_CHECKING:
    from pipesim.answers.views.run import SimulationLine  # which a check does without

LABEL = 13  #: cells of a field's label
DOT = " · "
LEAST_NAME = 8  #: cells to which the names of a table's rows are cut at most


def pad(text: str, width: int) -> str:
    """``text``, filled with spaces on the right to ``width``."""
    return text + " " * (width - cell_len(text))


def pad_left(text: str, width: int) -> str:
    """``text``, filled with spaces on the left to ``width``."""
    return " " * (width - cell_len(text)) + text


def middle(text: str, width: int) -> str:
    """``text`` cut in the middle to ``width``: two thirds of what is left are the end, which says most in a path."""
    if cell_len(text) <= width:
        return text
    if width < 2:
        return "…"[:width]
    end = (width - 1) * 2 // 3
    head = chop_cells(text, width - 1 - end)[0] if width - 1 > end else ""
    tail = chop_cells(text[::-1], end)[0][::-1] if end else ""
    return f"{head}…{tail}"


def wrap(text: str, width: int, first: str = "", rest: str | None = None) -> list[str]:
    """``text`` in lines of at most ``width`` cells, the first after ``first``, the others after ``rest``.

    ``rest`` is ``first``'s width in spaces if not given. A word longer than a line is cut in the middle.
    """
    return _fill(text.split(), " ", width, first, rest)


def wrap_parts(parts: Sequence[str], width: int, first: str = "", rest: str | None = None) -> list[str]:
    """``parts`` joined by dots, broken between parts; a part that is longer than a line is wrapped as text."""
    rest = " " * cell_len(first) if rest is None else rest
    room = width - max(cell_len(first), cell_len(rest))
    whole: list[str] = []
    for part in parts:
        whole += [part] if cell_len(part) <= room else wrap(part, room)
    return _fill(whole, DOT, width, first, rest)


def _fill(words: Sequence[str], glue: str, width: int, first: str, rest: str | None) -> list[str]:
    rest = " " * cell_len(first) if rest is None else rest
    lines: list[str] = []
    line, empty = first, True
    for word in words:
        if not empty and cell_len(line) + cell_len(glue) + cell_len(word) > width:
            lines.append(line.rstrip())
            line, empty = rest, True
        word = middle(word, max(1, width - cell_len(line) - (0 if empty else cell_len(glue))))
        line += word if empty else glue + word
        empty = False
    lines.append(line.rstrip())
    return lines


def field(label: str, parts: Sequence[str], width: int) -> list[str]:
    """``  label      part · part``, continued under the first part."""
    return wrap_parts(parts, width, "  " + pad(label, LABEL))


def columns(
    rows: Sequence[Sequence[str]], left: int, width: int, gap: int = 2, *, repeated: int | None = None
) -> list[str]:
    """``rows`` as a table: the first ``left`` columns flush left, the others flush right.

    What does not fit ``width`` is taken from the first column if it is one of names, cut in the middle; columns that
    still do not fit follow below, the first ``repeated`` of them again (all on the left, unless said otherwise). A
    column that is wider than what is left for it is cut in the middle.
    """
    repeated = left if repeated is None else repeated
    widths = [max(cell_len(row[c]) for row in rows) for c in range(len(rows[0]))]
    over = 2 + sum(widths) + gap * (len(widths) - 1) - width
    if left and over > 0:
        widths[0] = min(widths[0], max(LEAST_NAME, widths[0] - over))
    room = max(1, width - 2 - sum(widths[:repeated]) - gap * repeated)
    widths[repeated:] = [min(room, each) for each in widths[repeated:]]
    lines: list[str] = []
    for some in _split_columns(widths, repeated, width - 2, gap):
        lines += [""] if lines else []
        for row in rows:
            cells = [
                pad(cell, widths[c]) if c < left else pad_left(cell, widths[c])
                for c, cell in ((c, middle(row[c], widths[c])) for c in some)
            ]
            lines.append(("  " + (" " * gap).join(cells)).rstrip())
    return lines


def _split_columns(widths: Sequence[int], repeated: int, room: int, gap: int) -> list[list[int]]:
    """The columns in as many tables as are needed; the first ``repeated`` of them begin every table."""
    names = list(range(repeated))
    tables = [list(names)]
    for column in range(repeated, len(widths)):
        wide = sum(widths[c] for c in (*tables[-1], column)) + gap * len(tables[-1])
        if wide > room and len(tables[-1]) > repeated:
            tables.append(list(names))
        tables[-1].append(column)
    return tables


def heading_lines(heading: Heading, width: int) -> list[str]:
    """``ring   stages 4 · tiles 64 · 16 KiB a tile · grid 1 CTA · 1 load warp → 2 mma warps``."""
    parts = parameters(heading.params, heading.roles)
    if "grid" not in heading.params:
        clusters = f" in clusters of {heading.cluster}" if heading.cluster > 1 else ""
        parts.append(f"grid {count(heading.grid, 'CTA')}{clusters}")
    name = heading.protocol
    if cell_len(name) > width // 3:
        above, first = wrap(name, width), "  "
    else:
        above, first = [], pad(name, cell_len(name) + 3)
    lines = [*above, *wrap_parts([*parts, *warps(heading.roles)], width, first)]
    lines += field("warps", heading.warps, width) if heading.warps else []
    return [*lines, *_coverage(heading.coverage, width)]


def simulation_lines(simulation: "SimulationLine", width: int) -> list[str]:
    """``simulation   profile h100 · finished · period 755 cycles · bound by consumer work``."""
    parts = [f"profile {simulation.profile} ({simulation.device})", simulation.outcome]
    if simulation.period_millicycles is not None:
        of = f" an iteration of {simulation.period_of}" if simulation.period_of else ""
        parts.append(f"period {cycles(simulation.period_millicycles)} cycles{of}")
    elif not simulation.steady:
        parts.append(f"period {NONE} (not steady)")
    elif simulation.no_period is not None:
        parts.append(f"no period: {simulation.no_period.value}")
    if simulation.bound_by:
        parts.append(f"bound by {simulation.bound_by}")
    elif simulation.no_bound is not None:
        parts.append(f"no bound: {simulation.no_bound.value}")
    if simulation.seconds is not None:
        parts.append(f"computed in {seconds(simulation.seconds)}")
    return field("simulation", parts, width)


def _coverage(coverage: Coverage, width: int) -> list[str]:
    """What was read of a kernel, and what was not; nothing for a program that describes all there is."""
    if not coverage.extracted:
        return []
    lines = [""]
    for label, sentences in (
        ("read", (" · ".join(coverage.extracted),) if coverage.extracted else ()),
        ("stopped", coverage.stopped),
        ("blocked", coverage.blocked),
        ("left out", coverage.left_out),
        ("unread", coverage.unread),
        ("perhaps", coverage.perhaps),
        ("inferred", coverage.inferred),
        ("no box", coverage.unsized),
        ("undefined", coverage.undefined),
        ("weakened", coverage.unordered),
    ):
        for sentence in with_lines_together(sentences):
            lines += field(label, [sentence], width)
    return lines
