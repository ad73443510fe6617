"""Bars of numbers in a terminal, in eighths of a cell."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from pipesim.report.text.layout import pad, pad_left, wrap

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
