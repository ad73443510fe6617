"""``pipesim diff A B``: what changed, whether the behaviour did, and where time was gained or lost."""

from dataclasses import replace

from pipesim.answers.views.trace import PairReport, PairSide
from pipesim.conform.pair.result import Behaviour, Difference, Ledger, PairFigure, PairTiming, Segment, Setting
from pipesim.conform.result import TraceVerdict
from pipesim.model.ending import Ending
from pipesim.report.pages.protocols.verify import conformance_words
from pipesim.report.pictures.timeline import Moment, timeline_lines
from pipesim.report.sentences.pair import cycles_a_tile, not_compared_words, pair_sentence, permille_of
from pipesim.report.text.console import BAD, GOOD, UNSURE, mark
from pipesim.report.text.layout import LABEL, columns, field, middle, wrap, wrap_parts
from pipesim.report.text.words import (
    NONE,
    count,
    cycles,
    difference,
    megahertz,
    nanoseconds,
    number,
    signed_number,
    signed_percent,
    tenths,
)
from pipesim.trace.schema import Trace

MOST_DIFFERENCES = 4  #: further agents that differ are only counted
MOST_SURPLUS = 8
MOST_OTHERS = 6  #: rows of the agents that do not end last
_KINDS = ("", "total", "total", "total", "a tile")  # two lines of heads: what a column counts, then of which trace
_CHANGES = ("A", "B", "B − A", "B − A")
AGENTS_EVENTS = "compared in each agent's own order"


def pair_lines(report: PairReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    lines = [*wrap_parts(["two traces, A and B"], width, f"{middle(report.protocol, width // 2)}   "), ""]
    for side in (report.a, report.b):
        lines += _side(side, width)
    behaviour, timing = report.pair.behaviour, report.pair.timing
    lines += ["", *_settings(report.pair.settings, width), *_behaviour(behaviour, width)]
    if behaviour.differences:
        lines += ["", *_difference(behaviour.differences[0], width), *_others(behaviour, width)]
    if timing is not None:
        for table in (_figure_lines(timing, width), _ledger_lines(timing, width)):
            lines += ["", *table] if table else []
    drawn = _timeline(report, width)
    lines += ["", *drawn] if drawn else []
    return [*lines, "", *wrap(pair_sentence(report), width, f"{mark(report.conclusion.ok)} ")]


def _side(side: PairSide, width: int) -> list[str]:
    meta = side.trace.meta
    device = f"simulation of {meta.device.name}" if meta.source == "simulation" else meta.device.name
    runs = sum(run.traced for run in meta.runs)
    parts = [device, *([count(runs, "run")] if runs else [])]
    parts += [f"SM clock {megahertz(meta.device.sm_khz)}"] * bool(meta.device.sm_khz)
    parts += [meta.status] * (meta.status != Ending.FINISHED)
    found = side.conformance
    stands = conformance_words(found, side.agreement) if found is not None else not_compared_words(side)
    source = middle(side.source, width - LABEL - 2)
    return [*field(side.label, [source], width), *field("", parts, width), *field("", [stands], width)]


def _settings(settings: tuple[Setting, ...], width: int) -> list[str]:
    if not settings:
        return field("changed", ["none: same configuration, device and kernel"], width)
    return field("changed", [f"{s.what}: {s.a or NONE} → {s.b or NONE}" for s in settings], width)


def _behaviour(found: Behaviour, width: int) -> list[str]:
    """Whether the behaviour is the same, how the runs ended, what was lost, and what was not compared."""
    where = f"{count(found.matched, 'event')} of {count(len(found.ctas), 'CTA')} found in both"
    match found.verdict:
        case TraceVerdict.AGREES:
            parts = [f"{GOOD} the same", where, AGENTS_EVENTS]
        case TraceVerdict.DIFFERS:
            parts = [f"{BAD} not the same", where]
        case TraceVerdict.UNKNOWN:
            parts = [f"{UNSURE} unknown", where, f"{AGENTS_EVENTS} as far as they go"]
    parts += [f"{s.what}: {s.a} in A, {s.b} in B" for s in found.outcomes]
    lost = [f"{count(n, 'record')} of {side} lost" for side, n in (("A", found.lost_a), ("B", found.lost_b)) if n]
    lines = field("behaviour", [*parts, *lost], width)
    for note in found.notes:
        lines += field("", wrap_parts([note], width - LABEL - 2), width)
    return lines


def _difference(d: Difference, width: int) -> list[str]:
    """The first difference: headline, and both sequences of the agent beside each other."""
    parts = [d.kind.value, f"agent {d.agent}", f"iteration {number(d.iteration)}", f"CTA {d.cta}"]
    times = [f"cycle {number(c)} in {side}" for side, c in (("A", d.cycle_a), ("B", d.cycle_b)) if c >= 0]
    rows = [("", "iteration", "A", "B")]
    for n, place in enumerate(d.around):
        rows.append(("▸" if n == d.at else "", number(place.iteration), place.a or NONE, place.b or NONE))
    turns = max(len(row[1]) for row in rows)
    aligned = [(f"{row[0]:1} {row[1]:>{turns}}", row[2], row[3]) for row in rows]
    room = (width - 2 - turns - 2 - 4) // 2
    cut = [(head, middle(a, room), middle(b, room)) for head, a, b in aligned]
    return [*wrap_parts([*parts, *times], width, f"{BAD} "), "", *columns(cut, 3, width)]


def _others(found: Behaviour, width: int) -> list[str]:
    """The first difference of each other agent, and what one trace only has."""
    others = found.differences[1:]
    parts = [f"{d.agent}, CTA {d.cta}, iteration {number(d.iteration)}: {d.kind.value}" for d in others]
    if len(parts) > MOST_DIFFERENCES:
        parts[MOST_DIFFERENCES:] = [f"{count(len(parts) - MOST_DIFFERENCES, 'further agent')}"]
    lines = ["", *wrap_parts(parts, width, "  also: ")] if parts else []
    if found.surplus:
        shown = found.surplus[:MOST_SURPLUS]
        rows = [("events in one trace only", "A", "B")]
        rows += [(f"{s.agent} {s.what}", number(s.only_a), number(s.only_b)) for s in shown]
        lines += ["", *columns(rows, 1, width)]
        if len(found.surplus) > len(shown):
            lines.append(f"  and {count(len(found.surplus) - len(shown), 'more place')}")
    return lines


def _timeline(report: PairReport, width: int) -> list[str]:
    """A above B, of the CTA that both have: around the first difference, else from the first iteration in both."""
    behaviour = report.pair.behaviour
    first = behaviour.differences[0] if behaviour.differences else None
    cta = first.cta if first else behaviour.ctas[0]
    one, two = (_compared_events(side.trace, cta, behaviour.window) for side in (report.a, report.b))
    return timeline_lines(one, two, width, _moment(first, one, two), ("A", "B"))


def _compared_events(trace: Trace, cta: int, window: tuple[int, ...]) -> Trace:
    """The events of one CTA; of the iterations that both traces kept, if their windows differ."""
    events = trace.events
    there = events.cta == cta
    if not window:
        return Trace(trace.meta, events.select(there))
    there &= (events.iteration >= window[0]) & (events.iteration < window[1])
    return Trace(replace(trace.meta, window=window), events.select(there))


def _moment(first: Difference | None, a: Trace, b: Trace) -> Moment | None:
    """The first difference by the clock of B; one that only A has is placed where A has it after its first event."""
    if first is None or not len(b.events):
        return None
    if first.cycle_b >= 0:
        return Moment(first.cta, first.cycle_b)
    return Moment(first.cta, int(b.events.cycle.min()) + first.cycle_a - int(a.events.cycle.min()))


# Figures with their noise, and ledgers that add up


def _figure_lines(timing: PairTiming, width: int) -> list[str]:
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
    return (f.name, tenths(a), tenths(b), difference(change), signed_percent(permille_of(a, b)))


def _ledger_lines(timing: PairTiming, width: int) -> list[str]:
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
    return (number(s.a), number(s.b), signed_number(s.b - s.a), cycles_a_tile(s.steady_b - s.steady_a, of))


def _sum(of: Ledger) -> tuple[str, ...]:
    return (number(of.a), number(of.b), signed_number(of.b - of.a), cycles_a_tile(of.steady_b - of.steady_a, of))
