"""The tables and the sentence about time of two traces: figures with their noise, and ledgers that add up."""

from __future__ import annotations

from pipesim.conform.pair.result import PERIOD, Ledger, PairFigure, PairTiming, Segment
from pipesim.report.text.layout import columns, wrap_parts
from pipesim.report.text.words import (
    NONE,
    count,
    cycles,
    difference,
    megahertz,
    nanoseconds,
    number,
    percent,
    signed_number,
    signed_percent,
    tenths,
)

MOST_OTHERS = 6  #: rows of the agents that do not end last
_KINDS = ("", "total", "total", "total", "a tile")  # two lines of heads: what a column counts, then of which trace
_CHANGES = ("A", "B", "B − A", "B − A")
MOST_SAID = 3  #: segments that the sentence names; the others are its rest


def figure_lines(timing: PairTiming, width: int) -> list[str]:
    """A, B, the difference and the noise of both, then which differences are larger than the noise."""
    head = ("time, cycles", "A", "B", "B − A", "", "noise A", "noise B")
    lines = columns([head, *(_figure(f) for f in timing.figures)], 1, width)
    said = (("beyond the noise", True), ("within the noise", False), ("noise not measured", None))
    for words, beyond in said:
        names = [f.name for f in timing.figures if f.difference is not None and f.beyond_noise is beyond]
        lines += wrap_parts(names, width, f"  {words}: ") if names else []
    if timing.clocks_differ:
        rows = [("time, nanoseconds", "A", "B", "B − A", ""), *(_times(f, timing) for f in timing.figures)]
        clocks = [f"SM clocks: A {megahertz(timing.khz_a)}, B {megahertz(timing.khz_b)}"]
        lines += ["", *columns(rows, 1, width), *wrap_parts(clocks, width, "  ")]
    return lines


def _figure(f: PairFigure) -> tuple[str, ...]:
    """A period to a tenth of a cycle, the length of a run in whole cycles."""
    said = tenths if f.name.startswith("period") else cycles
    change = f.difference
    sign = "+" if change is not None and said(change) != said(0) and change > 0 else ""
    noise = (NONE if n is None else f"±{said(n)}" for n in (f.noise_a, f.noise_b))
    return (f.name, said(f.a), said(f.b), sign + said(change), signed_percent(f.permille), *noise)


def _times(f: PairFigure, timing: PairTiming) -> tuple[str, ...]:
    a, b = nanoseconds(f.a, timing.khz_a), nanoseconds(f.b, timing.khz_b)
    change = None if a is None or b is None else b - a
    return (f.name, tenths(a), tenths(b), difference(change), signed_percent(_permille(a, b)))


def _permille(a: int | None, b: int | None) -> int | None:
    return round(1000 * (b - a) / a) if a and b is not None else None


def ledger_lines(timing: PairTiming, width: int) -> list[str]:
    """The critical agent's segments with their sum, then the largest differences of the other agents."""
    critical = timing.ledgers[0]
    head = ("where time was gained or lost, cycles", *_CHANGES)
    rows = [_KINDS, head, *((f"{critical.agent} {s.what}", *_cells(s, critical)) for s in critical.segments)]
    rows.append((f"sum: {critical.agent}, first to last event", *_sum(critical)))
    lines = columns(rows, 1, width)
    parts = _ends_last(timing)
    if critical.steady_tiles:
        parts.append(f"a tile: the mean of {count(critical.steady_tiles, 'tile')} of the steady state")
    lines += wrap_parts(parts, width, "  ")
    if timing.unlike:
        lines += wrap_parts(["only one of the two includes the cost of recording its events"], width, "  ")
    others = [(abs(s.b - s.a), ledger, s) for ledger in timing.ledgers[1:] for s in ledger.segments if s.b != s.a]
    others.sort(key=lambda other: -other[0])
    if others:
        head = ("other agents, cycles", *_CHANGES)
        shown = [(f"{ledger.agent} {s.what}", *_cells(s, ledger)) for _, ledger, s in others[:MOST_OTHERS]]
        lines += ["", *columns([_KINDS, head, *shown], 1, width)]
    if len(others) > MOST_OTHERS:
        lines.append(f"  and {count(len(others) - MOST_OTHERS, 'smaller difference')}")
    return lines


def _ends_last(timing: PairTiming) -> list[str]:
    """Whose segments these are: of the agent that ends last, in both traces or in one of them."""
    one, two = timing.last
    if one == two:
        return [f"{one} ends last in CTA {timing.cta}"]
    return [f"in CTA {timing.cta} {one} ends last in A, {two} in B", f"the table is of {timing.ledgers[0].agent}"]


def _cells(s: Segment, of: Ledger) -> tuple[str, ...]:
    return (number(s.a), number(s.b), signed_number(s.b - s.a), _each(s.steady_b - s.steady_a, of))


def _sum(of: Ledger) -> tuple[str, ...]:
    return (number(of.a), number(of.b), signed_number(of.b - of.a), _each(of.steady_b - of.steady_a, of))


def _each(total: int, of: Ledger) -> str:
    """Cycles of the steady window as those of one tile."""
    return difference(_per_tile(total, of))


def _per_tile(total: int, of: Ledger) -> int | None:
    return round(1000 * total / of.steady_tiles) if of.steady_tiles else None


def time_words(timing: PairTiming) -> str:
    """The sentence: ``B is 3.2 % slower: +36.0 cycles a tile, of which ...``; "" where no figure can decide.

    With different SM clocks slower is meant in time, which may be fewer cycles.
    """
    figure = timing.decides
    if figure is None or figure.difference is None:
        return ""
    change = _change(figure.name, figure.difference)
    speed = _speed(figure, timing)
    if figure.beyond_noise is False:
        noise = tenths((figure.noise_a or 0) + (figure.noise_b or 0))
        words = f"B takes the same number of cycles within the noise: {change}, noise ±{noise}"
        if figure.difference == 0:
            words = "B takes the same number of cycles"
        words += f"; {speed}{_clocks(timing)}" * timing.clocks_differ
        return words + _recording(timing)
    words = f"{speed}: {change}{_clocks(timing)}"
    if figure.beyond_noise is None:
        words += ", noise not measured"
    return words if timing.unlike else words + _of_which(timing.ledgers[0], figure.difference) + _recording(timing)


def _change(name: str, difference_: int) -> str:
    if name.startswith("period"):
        return f"{difference(difference_)} cycles a tile"
    part = "the compared iterations" if name.startswith("compared") else "the whole run"
    return f"{signed_number(difference_ // 1000)} cycles over {part}"


def _speed(figure: PairFigure, timing: PairTiming) -> str:
    """``B is 3.2 % slower``, in time where the clocks differ, else in cycles."""
    a, b = figure.a, figure.b
    where = " in time" if timing.clocks_differ else ""
    if timing.clocks_differ:
        a, b = nanoseconds(a, timing.khz_a), nanoseconds(b, timing.khz_b)
    assert a is not None
    assert b is not None
    if a == b:
        return f"B is as fast{where}"
    permille = _permille(a, b)
    size = percent(abs(permille)) if permille else "less than 0.1 %"
    return f"B is {size} {'slower' if b > a else 'faster'}{where}"


def _clocks(timing: PairTiming) -> str:
    return f" at {megahertz(timing.khz_a)} in A, {megahertz(timing.khz_b)} in B" if timing.clocks_differ else ""


def _recording(timing: PairTiming) -> str:
    """What recording costs in each, where that changed; "" if not, or if nobody knows."""
    counted = timing.primary != PERIOD
    cost = timing.recording
    if cost is not None and cost.beyond_noise:
        told = f"; recording costs {tenths(cost.a)} cycles a tile in A, {tenths(cost.b)} in B"
        return f"{told}, {'' if counted else 'not '}included in these numbers"
    if cost is None and counted and timing.recorders_differ:
        return "; A and B were recorded in different ways; these numbers include the cost of recording"
    return ""


def _of_which(critical: Ledger, said: int) -> str:
    """The largest parts of the critical agent's change, and the rest, so that they add up.

    ``said`` is the change that the sentence began with: what the traces show is named too if it is another.
    """
    whole = critical.steady_b - critical.steady_a
    if not critical.steady_tiles:
        return ""
    parts = sorted(critical.segments, key=lambda s: -abs(s.steady_b - s.steady_a))[:MOST_SAID]
    told = [(s.what, s.steady_b - s.steady_a) for s in parts if s.steady_b != s.steady_a]
    rest = whole - sum(spent for _, spent in told)
    told += [("everything else", rest)] if rest else []
    if not told:
        return ""
    words = ", ".join(f"{what} {_each(spent, critical)}" for what, spent in told)
    if _per_tile(whole, critical) != said:
        return f"; in the traces, {critical.agent} takes {_each(whole, critical)} a tile, of which {words}"
    return f", of which {critical.agent} {words}"
