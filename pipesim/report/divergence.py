"""A divergence in words: where trace and model part, both sides next to each other, and the protocol's line."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console

from pipesim.conform.result import Divergence, DivergenceKind, Moment
from pipesim.report.console import BAD, paint, width_of
from pipesim.report.finding import deadlock_lines, headline
from pipesim.report.layout import middle, pad, pad_left, wrap, wrap_parts
from pipesim.report.words import NONE, count, number, place

AGENT_WIDTH = 12
MODEL_WIDTH = 22  #: least width of the model's side


def paint_divergence(console: Console, divergence: Divergence) -> None:
    """Write one divergence."""
    paint(console, divergence_lines(divergence, width_of(console)))


def divergence_lines(divergence: Divergence, width: int) -> list[str]:
    """Headline, claim, barrier and phases, the moments side by side, who is stuck, and the line of the protocol."""
    lines = [*_headline(divergence, width), "", *wrap(divergence.claim, width, "  ")]
    lines += _barrier(divergence, width)
    lines += _moments(divergence, width)
    if divergence.kind is DivergenceKind.NOT_FINISHED:
        lines += _stuck(divergence, width)
    if divergence.line:
        lines += ["", *wrap(f"the protocol's operation: {place(divergence.line)}", width, "  ", "    ")]
    return lines


def _headline(d: Divergence, width: int) -> list[str]:
    parts = [d.kind.value]
    if d.kind is DivergenceKind.NOT_FINISHED:
        parts += [f"CTA {d.cta}"]
        parts += [f"last progress at cycle {number(d.cycle)}"] if d.cycle >= 0 else ["no event recorded"]
        return wrap_parts(parts, width, f"{BAD} ")
    after = d.event >= d.events
    parts.append(f"after all {count(d.events, 'event')}" if after else f"first at event {number(d.event)} of {number(d.events)}")
    parts += [f"iteration {number(d.iteration)}", f"CTA {d.cta}", f"agent {d.agent}"]
    if d.cycle >= 0:
        parts.append(f"cycle {number(d.cycle)}")
    return wrap_parts(parts, width, f"{BAD} ")


def _barrier(d: Divergence, width: int) -> list[str]:
    if not d.barrier:
        return []
    parts = [f"barrier {d.barrier}"]
    if d.phase_wanted >= 0:
        parts.append(f"needs phase {number(d.phase_wanted)} to be complete")
        parts.append(f"it is in phase {number(d.phase_now)}")
    if d.late_by > 0:
        parts.append(f"at least {count(d.late_by, 'cycle')} too early")
    return ["", *wrap_parts(parts, width, "  ")]


def _moments(d: Divergence, width: int) -> list[str]:
    """The events around the divergence: index, cycle, agent, what the hardware did, what the model has there."""
    moments = [m for m in d.moments if m.hardware or m.model]
    if not moments:
        return []
    agents = min(AGENT_WIDTH, max(len("agent"), *(cell_len(m.agent) for m in moments)))
    index = max(len("event"), *(len(number(m.index)) for m in moments))
    cycle = max(len("cycle"), *(len(_cycle(m)) for m in moments))
    room = width - (3 + index + 2 + cycle + 2 + agents + 2)
    hardware = min(max(len("hardware"), *(cell_len(m.hardware) for m in moments)), room - MODEL_WIDTH - 2)
    head = f"   {pad_left('event', index)}  {pad_left('cycle', cycle)}  {pad('agent', agents)}  {pad('hardware', hardware)}  model"
    lines = ["", head]
    for m in moments:
        here = m.index == d.event
        left = f" {'▸' if here else ' '} {pad_left(number(m.index), index)}  {pad_left(_cycle(m), cycle)}  {pad(middle(m.agent, agents), agents)}  "
        one, two = wrap(m.hardware or NONE, hardware), wrap(m.model, room - hardware - 2)
        for n in range(max(len(one), len(two))):
            side = [column[n] if n < len(column) else "" for column in (one, two)]
            lines.append(f"{left if n == 0 else ' ' * cell_len(left)}{pad(side[0], hardware)}  {side[1]}".rstrip())
    return lines


def _cycle(moment: Moment) -> str:
    return number(moment.cycle) if moment.cycle >= 0 else NONE


def _stuck(d: Divergence, width: int) -> list[str]:
    if d.stuck is None:
        return ["", *wrap("the model is not stuck where the records end: no wait of the protocol explains why the kernel stopped", width, "  ")]
    _, *parts = " ".join(line.strip() for line in headline(d.stuck, 10_000)).split(" · ")
    return ["", *wrap_parts(["the model, led by the records, is stuck at the same place", *parts], width, "  "), "", *deadlock_lines(d.stuck, width)]
