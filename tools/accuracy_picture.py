"""Measured against predicted times as SVG: drawn by ``tools/accuracy.py``, does nothing by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from pipesim.report.pictures.drawing import TEXT_STYLE, label, px, svg_file

_LEFT, _TOP, _SIZE, _RIGHT = 70, 40, 400, 230
_COLOURS = ("#1f5fae", "#b3261e", "#2d7a3e", "#8a5a14", "#6b3fa0", "#00798c", "#5b6673")
_STYLE = TEXT_STYLE + ".grid{stroke:#d5dbe2}.same{stroke:#5b6673}.tenth{stroke:#c3ccd6;stroke-dasharray:4 3}"


@dataclass(frozen=True)
class Point:
    """Cycles of one configuration, measured and simulated."""

    kernel: str
    measured: float
    simulated: float
    held_out: bool


def scatter(points: Sequence[Point]) -> str:
    """Both on scales of powers of ten; a filled mark is of a configuration that is held out."""
    shown = [p for p in points if p.measured > 0 and p.simulated > 0]
    values = [v for p in shown for v in (p.measured, p.simulated)] or [1.0, 10.0]
    low, high = floor(log10(min(values))), max(ceil(log10(max(values))), floor(log10(min(values))) + 1)

    def at(value: float) -> float:
        return _SIZE * (log10(value) - low) / (high - low)

    body = [label(_LEFT, 22, "Simulated against measured cycles: steady period, else the whole run", "title")]
    body += _frame(low, high)
    kernels = sorted({p.kernel for p in shown})
    colours = dict(zip(kernels, _COLOURS * (len(kernels) // len(_COLOURS) + 1), strict=False))
    for held_out in (False, True):
        for kernel in kernels:
            own = [p for p in shown if (p.kernel, p.held_out) == (kernel, held_out)]
            places = sorted({(_LEFT + at(p.measured), _TOP + _SIZE - at(p.simulated)) for p in own})
            body += _marks(places, colours[kernel], filled=held_out)
    body += _legend(colours)
    return svg_file("Simulated against measured times", _STYLE, "", body, _LEFT + _SIZE + _RIGHT, _TOP + _SIZE + 50)


def _marks(places: Sequence[tuple[float, float]], colour: str, *, filled: bool) -> Iterator[str]:
    """A small circle at each place, as one path: there are hundreds."""
    if places:
        circles = (f"M{px(x - 3.5)} {px(y)}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0" for x, y in places)
        yield f'<path fill="{colour if filled else "none"}" stroke="{colour}" d="{"".join(circles)}"/>'


def _frame(low: int, high: int) -> Iterator[str]:
    """The grid of the powers of ten, the line of equal times, and those of a tenth more and less."""
    step = _SIZE / (high - low)
    for power in range(low, high + 1):
        off = step * (power - low)
        x, y = _LEFT + off, _TOP + _SIZE - off
        yield _line("grid", x, _TOP, x, _TOP + _SIZE)
        yield _line("grid", _LEFT, y, _LEFT + _SIZE, y)
        yield label(x, _TOP + _SIZE + 18, f"{10**power:,}", middle_of=True)
        yield label(8, y + 4, f"{10**power:,}")
    yield label(_LEFT + _SIZE / 2, _TOP + _SIZE + 38, "measured", middle_of=True)
    yield label(8, _TOP - 8, "simulated")
    tenth = step * log10(1.1)
    yield _line("same", _LEFT, _TOP + _SIZE, _LEFT + _SIZE, _TOP)
    yield _line("tenth", _LEFT, _TOP + _SIZE - tenth, _LEFT + _SIZE - tenth, _TOP)
    yield _line("tenth", _LEFT + tenth, _TOP + _SIZE, _LEFT + _SIZE, _TOP + tenth)


def _legend(colours: dict[str, str]) -> Iterator[str]:
    x, y = _LEFT + _SIZE + 20, _TOP + 10
    for kernel, colour in colours.items():
        yield f'<circle cx="{px(x)}" cy="{px(y)}" r="3.5" fill="{colour}" stroke="{colour}"/>'
        yield label(x + 10, y + 4, kernel)
        y += 18
    for fill, text in (("#1c2530", "held out"), ("none", "fitted to")):
        y += 18
        yield f'<circle cx="{px(x)}" cy="{px(y)}" r="3.5" fill="{fill}" stroke="#1c2530"/>'
        yield label(x + 10, y + 4, text)
    yield label(x, y + 36, "dashed: 10 % more, less", "quiet")


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{px(x1)}" y1="{px(y1)}" x2="{px(x2)}" y2="{px(y2)}"/>'
