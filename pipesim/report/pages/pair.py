"""``pipesim diff A B``: what changed, whether the behaviour did, and where time was gained or lost."""

from __future__ import annotations

from dataclasses import replace

from pipesim.answers.views.trace import PairReport, PairSide
from pipesim.conform.pair.result import Behaviour, Difference, Setting
from pipesim.conform.result import TraceVerdict
from pipesim.model.ending import Ending
from pipesim.report.pages.hardware import conformance_words
from pipesim.report.pictures.timeline import Moment, timeline_lines
from pipesim.report.sentences.pair import not_compared_words, pair_sentence
from pipesim.report.sentences.pair_figures import figure_lines, ledger_lines
from pipesim.report.text.console import BAD, GOOD, UNSURE, mark
from pipesim.report.text.layout import LABEL, columns, field, middle, wrap, wrap_parts
from pipesim.report.text.words import NONE, count, megahertz, number
from pipesim.trace.schema import Trace

MOST_DIFFERENCES = 4  #: further agents that differ are only counted
MOST_SURPLUS = 8
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
        for table in (figure_lines(timing, width), ledger_lines(timing, width)):
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
    one, two = (_compared(side.trace, cta, behaviour.window) for side in (report.a, report.b))
    return timeline_lines(one, two, width, _moment(first, one, two), ("A", "B"))


def _compared(trace: Trace, cta: int, window: tuple[int, ...]) -> Trace:
    """The events of one CTA; of the iterations that both traces kept, if their windows differ."""
    events = trace.events
    there = events.cta == cta
    if not window:
        return Trace(trace.meta, events.select(there))
    there &= (events.iteration >= window[0]) & (events.iteration < window[1])
    return Trace(replace(trace.meta, window=window), events.select(there))


def _moment(first: Difference | None, a: Trace, b: Trace) -> Moment | None:
    """The first difference by the clock of B; one that only A has stands where A has it after its first event."""
    if first is None or not len(b.events):
        return None
    if first.cycle_b >= 0:
        return Moment(first.cta, first.cycle_b)
    return Moment(first.cta, int(b.events.cycle.min()) + first.cycle_a - int(a.events.cycle.min()))
