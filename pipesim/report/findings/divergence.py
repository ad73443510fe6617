"""A divergence in words: where trace and model part, both sides next to each other, and the protocol's line."""

from itertools import zip_longest

from rich.cells import cell_len

from pipesim.conform.result import ComparedEvent, Divergence, DivergenceKind
from pipesim.report.findings.finding import deadlock_lines, who_waits
from pipesim.report.text.console import mark
from pipesim.report.text.layout import middle, pad, pad_left, wrap, wrap_parts
from pipesim.report.text.words import NONE, count, number, place

AGENT_WIDTH = 12
MODEL_WIDTH = 22  #: least width of the model's side


def divergence_lines(divergence: Divergence, width: int, side: str = "hardware", *, agrees: bool = False) -> list[str]:
    """Headline, claim, barrier and phases, the moments side by side, who is stuck, and the line of the protocol.

    ``side`` is what the trace's events are called beside the model's. ``agrees``: the model hangs as the run does.
    """
    # what a hang is, the verdict says: that the model also hangs is not a tick for a kernel that did not finish
    lines = [
        *_headline(divergence, width, "  " if agrees else f"{mark(False)} "),
        "",
        *wrap(divergence.claim, width, "  "),
    ]
    lines += _barrier(divergence, width)
    lines += _moments(divergence, width, side)
    if divergence.kind is DivergenceKind.NOT_FINISHED:
        lines += _stuck(divergence, width)
    if divergence.line:
        lines += ["", *wrap(f"the protocol's operation: {place(divergence.line)}", width, "  ", "    ")]
    return lines


def _headline(d: Divergence, width: int, sign: str) -> list[str]:
    parts = [d.kind.value]
    if d.kind is DivergenceKind.NOT_FINISHED:
        parts += [f"CTA {d.cta}"]
        parts += [f"last progress at cycle {number(d.cycle)}"] if d.cycle >= 0 else ["no event recorded"]
        return wrap_parts(parts, width, sign)
    if d.kind is DivergenceKind.BARRIER_WORD:  # of no agent, and at no time
        return wrap_parts([*parts, f"{d.barrier}, CTA {d.cta}"], width, sign)
    if d.event >= d.events:
        parts.append(f"after all {count(d.events, 'event')}")
    else:
        parts.append(f"first at event {number(d.event)} of {number(d.events)}")
    parts += [f"iteration {number(d.iteration)}", f"CTA {d.cta}", f"agent {d.agent}"]
    if d.cycle >= 0:
        parts.append(f"cycle {number(d.cycle)}")
    return wrap_parts(parts, width, sign)


def _barrier(d: Divergence, width: int) -> list[str]:
    if d.early is not None:
        where = f", {place(d.early.line)}" if d.early.line else ""
        released = f"released by {d.early.operation} of {d.early.agent}{where}"
        lines = ["", *wrap_parts([released, f"at least {count(d.late_by, 'cycle')} too early"], width, "  ")]
        return [*lines, *wrap(f"measured: {d.early.source}", width, "  ", "    ")]
    if d.phase_wanted < 0:  # the claim and the moments name the barrier
        return []
    parts = [
        f"the wait needs phase {number(d.phase_wanted)} of {d.barrier} to be complete",
        f"it is in phase {number(d.phase_now)}",
    ]
    if d.late_by > 0:
        parts.append(f"at least {count(d.late_by, 'cycle')} too early")
    return ["", *wrap_parts(parts, width, "  ")]


def _moments(d: Divergence, width: int, side: str) -> list[str]:
    """The events around the divergence, each with what the model has there; long texts take several lines."""
    moments = [m for m in d.moments if m.hardware or m.model]
    if not moments:
        return []
    heads = ("event", "cycle", "agent")
    fixed = [heads, *((number(m.index), _cycle(m), middle(m.agent, AGENT_WIDTH)) for m in moments)]
    widths = [max(cell_len(row[c]) for row in fixed) for c in range(3)]
    room = width - 3 - sum(widths) - 2 * 3
    hardware = min(max(len(side), *(cell_len(m.hardware) for m in moments)), room - MODEL_WIDTH - 2)
    lines = ["", "   " + _fixed_columns(heads, widths) + pad(side, hardware) + "  model"]
    for m, row in zip(moments, fixed[1:], strict=True):
        left = (" ▸ " if m.index == d.event else "   ") + _fixed_columns(row, widths)
        sides = (wrap(m.hardware or NONE, hardware), wrap(m.model, room - hardware - 2))
        for n, (one, two) in enumerate(zip_longest(*sides, fillvalue="")):
            lines.append(f"{left if n == 0 else ' ' * cell_len(left)}{pad(one, hardware)}  {two}".rstrip())
    return lines


def _fixed_columns(row: tuple[str, str, str], widths: list[int]) -> str:
    """Index and cycle flush right, the agent flush left, with the gap that follows."""
    return f"{pad_left(row[0], widths[0])}  {pad_left(row[1], widths[1])}  {pad(row[2], widths[2])}  "


def _cycle(moment: ComparedEvent) -> str:
    return number(moment.cycle) if moment.cycle >= 0 else NONE


def _stuck(d: Divergence, width: int) -> list[str]:
    if d.stuck is None:
        claim = (
            "the model is not blocked where the records end: no wait of the protocol explains why the kernel stopped"
        )
        return ["", *wrap(claim, width, "  ")]
    told = ["the model, replaying the records, blocks there too", *who_waits(d.stuck)]
    return ["", *wrap_parts(told, width, "  "), "", *deadlock_lines(d.stuck, width)]
