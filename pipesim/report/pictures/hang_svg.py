"""A deadlock as SVG: who waits for which barrier, what it lacks, and which waiting agents could send that."""

from pipesim.model.finding import BlockedAgent, Deadlock
from pipesim.report.findings.brief import in_short
from pipesim.report.pictures.drawing import LINE, MARGIN, TEXT_STYLE, arrowhead, box, label, px, svg_file
from pipesim.report.text.layout import middle, wrap
from pipesim.report.text.words import place

MOST_WAITS = 24  #: that are drawn
_CELL = 7.3
_AGENT, _BARRIER = 22, 40  #: cells of a box
_PAD, _GAP, _BETWEEN = 8, 18, 150

_STYLE = TEXT_STYLE + (
    ".agent{fill:#e8eef7;stroke:#33557f}.barrier{fill:#fdeceb;stroke:#b3261e}.wrong{fill:#b3261e;font-weight:bold}"
    ".waits{fill:none;stroke:#b3261e;stroke-width:1.4}"
    ".owes{fill:none;stroke:#1f5fae;stroke-width:1.4;stroke-dasharray:5 4}"
)


def hang_svg(deadlock: Deadlock) -> str:
    """The SVG file: agents on the left, the barriers that they wait for on the right."""
    shown = deadlock.blocked[:MOST_WAITS]
    agent_width, barrier_width = _AGENT * _CELL + 2 * _PAD, _BARRIER * _CELL + 2 * _PAD
    right = MARGIN + agent_width + _BETWEEN
    width = right + barrier_width + MARGIN
    top = float(MARGIN + LINE)
    body = [label(MARGIN, top, in_short(deadlock), "wrong")]
    top += LINE + 8
    middles: dict[str, float] = {}
    barriers: dict[str, float] = {}
    arrows: list[str] = []
    for each in shown:
        lines = [line for said in _lacks(each) for line in wrap(said, _BARRIER)]
        height = LINE * (len(lines) + 1) + 8
        y = top + height / 2
        middles[each.agent] = y
        body.append(box("agent", MARGIN, y - LINE - 4, agent_width, 2 * LINE + 8, radius=5))
        body.append(label(MARGIN + _PAD, y - 3, middle(each.agent, _AGENT), "name"))
        body.append(label(MARGIN + _PAD, y + LINE - 3, middle(place(each.line), _AGENT), "quiet"))
        known = barriers.get(each.barrier)
        if known is None:
            barriers[each.barrier] = known = y
            body.append(box("barrier", right, top, barrier_width, height, radius=5))
            body.append(label(right + _PAD, top + LINE, middle(each.barrier, _BARRIER), "name"))
            body += [label(right + _PAD, top + LINE * (n + 2), line) for n, line in enumerate(lines)]
        arrows.append(_path("waits", MARGIN + agent_width, y, right, known))
        top += max(height, 2 * LINE + 16) + _GAP
    for each in shown:
        for agent in dict.fromkeys(supplier.agent for supplier in each.suppliers if supplier.waits_for):
            if agent in middles:
                y = middles[agent] + 10
                arrows.append(_path("owes", right, barriers[each.barrier] + 10, MARGIN + agent_width, y))
    left_out = len(deadlock.blocked) - len(shown)
    words = [f"and {left_out:,} more agents that wait"] if left_out else []
    words += [
        f"finished: {', '.join(deadlock.finished) or 'none'}",
        "solid: waits for · dashed: needs this agent, which waits",
    ]
    for said in words:
        for line in wrap(said, int((width - 2 * MARGIN) / _CELL)):
            body.append(label(MARGIN, top + LINE, line, "quiet"))
            top += LINE
    defs = arrowhead("waits", "#b3261e") + arrowhead("owes", "#1f5fae")
    return svg_file(in_short(deadlock), _STYLE, defs, [*body, *arrows], width, top + LINE + MARGIN)


def _lacks(each: BlockedAgent) -> list[str]:
    """What the barrier has and lacks."""
    said = [f"waits for phase {each.phase_wanted}, now in {each.phase_now}"] if each.parity >= 0 else []
    if each.arrivals_missing:
        said.append(f"{each.count - each.arrivals_missing} of {each.count} arrivals")
    if each.bytes_missing:
        more = each.bytes_missing > 0
        said.append(f"{each.bytes_missing:,} bytes missing" if more else "bytes that no agent expects")
    if each.missed < 0 and each.lapped_by:
        said.append(f"lapped by {', '.join(each.lapped_by)}")
    if each.missed >= 0:
        said.append(f"phase {each.missed} was complete before it looked")
    return said


def _path(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    bend = (x2 - x1) / 2
    curve = f"M{px(x1)} {px(y1)}C{px(x1 + bend)} {px(y1)} {px(x2 - bend)} {px(y2)} {px(x2)} {px(y2)}"
    return f'<path class="{kind}" d="{curve}" marker-end="url(#{kind})"/>'
