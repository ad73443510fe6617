"""Lines that fit: wrapping, truncation in the middle, labelled fields and columns. Widths are terminal cells."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, chop_cells

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
