"""The tables of a comparison: steady state, where the time goes, and the cycles from each site to the next event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from rich.cells import cell_len

from pipesim.conform.result import Figure, SiteTiming, Timing
from pipesim.conform.steady import Bottleneck, LimitKind
from pipesim.conform.times import PERIOD
from pipesim.report.sentences.times import NOT_MEASURED
from pipesim.report.text.layout import columns, middle, pad, pad_left, wrap_parts
from pipesim.report.text.words import NONE, count, cycles, number, percent, plus_minus, signed_percent

Shares = Mapping[tuple[str, str], int]  #: (agent, what) → thousandths of the agent's time

MOST_AGENTS = 4  #: more agents are shown as roles, with the least and the greatest share in the role
WHAT_WIDTH = 28
AGENT_WIDTH = 14


def steady_lines(timing: Timing, width: int, side: str = "measured") -> list[str]:
    """Bound, simulated and measured figures with error and noise, then how well single events agree.

    ``side`` is what the trace's figures are called: measured, if it is not simulated itself.
    """
    head = ("steady state, cycles", "bound", "simulated", side, "error", "noise")
    lines = columns([head, *(_figure(f) for f in timing.figures)], 1, width)
    if timing.matched:
        bias = ("+" if timing.bias_cycles > 0 else "") + count(timing.bias_cycles, "cycle")
        parts = [
            f"{count(timing.matched, 'event')} found in both",
            f"{side} − simulated: median {bias}",
            f"95 % within {count(timing.spread_cycles, 'cycle')} of it",
        ]
        lines += wrap_parts(parts, width, "  ")
    return lines


def _figure(f: Figure) -> tuple[str, ...]:
    noise = round(1000 * f.noise / f.measured) if f.noise is not None and f.measured else None
    unmeasured = f.measured is None and f.name.startswith(PERIOD)
    values = (cycles(f.bound), cycles(f.simulated), NOT_MEASURED if unmeasured else cycles(f.measured))
    return (f.name, *values, signed_percent(f.error_permille), plus_minus(noise))


def site_lines(sites: Sequence[SiteTiming], width: int, side: str = "measured") -> list[str]:
    """Median and 95th percentile of the cycles from each site to the agent's next event, simulated and of the trace."""
    if not sites:
        return []
    head = ("from an event to the next, cycles", "simulated p50", "p95", f"{side} p50", "p95")
    return columns([head, *(_site(s) for s in sites)], 1, width)


def _site(s: SiteTiming) -> tuple[str, ...]:
    numbers = (s.simulated.p50, s.simulated.p95, s.measured.p50, s.measured.p95)
    return (f"{s.role} {s.kind.replace('_', ' ')} {s.barrier}".rstrip(), *map(number, numbers))


def share_lines(sources: Sequence[tuple[str, Shares]], width: int) -> list[str]:
    """Where each agent's time goes, one line for each activity and source ("simulated", "measured").

    With more than four agents the columns are roles, each with its least and greatest share.
    """
    keys = list(dict.fromkeys(key for _, shares in sources for key in shares))
    if not keys:
        return []
    agents = list(dict.fromkeys(agent for agent, _ in keys))
    groups = _groups(agents)
    whats = sorted(dict.fromkeys(what for _, what in keys), key=_rank)
    what_width = min(WHAT_WIDTH, max(len("where the time goes"), *(cell_len(what) for what in whats)))
    source_width = max(cell_len(source) for source, _ in sources)
    left = 2 + what_width + 2 + source_width
    lines: list[str] = []
    tables = _split_groups(groups, width - left)
    for some in tables:
        widths = [_column(group) for group in some]
        titles = "".join("  " + pad_left(middle(_title(g), w), w) for g, w in zip(some, widths, strict=True))
        lines += [("  " + pad("where the time goes", left - 2) + titles).rstrip()]
        for what in whats:
            if len(tables) > 1 and not any((a, what) in shares for _, shares in sources for g in some for a in g):
                continue  # no agent in this part of the table does that
            for n, (source, shares) in enumerate(sources):
                cells = "".join("  " + pad_left(_share(g, what, shares), w) for g, w in zip(some, widths, strict=True))
                label = pad(middle(what, what_width) if n == 0 else "", what_width)
                lines.append(f"  {label}  {pad(source, source_width)}{cells}".rstrip())
    return lines


def _rank(what: str) -> int:
    """Waiting first, then work, then whatever else there is."""
    return 0 if what.startswith("waiting") else 1 if what == "work" else 2


def _groups(agents: list[str]) -> list[tuple[str, ...]]:
    """Agents one by one, or by role if they are many."""
    if len(agents) <= MOST_AGENTS:
        return [(agent,) for agent in agents]
    roles: dict[str, list[str]] = {}
    for agent in agents:
        roles.setdefault(agent.partition("/")[0], []).append(agent)
    return [tuple(members) for members in roles.values()]


def _title(group: tuple[str, ...]) -> str:
    return group[0] if len(group) == 1 else f"{group[0].partition('/')[0]} ({len(group)})"


def _column(group: tuple[str, ...]) -> int:
    return max(8 if len(group) == 1 else 12, min(AGENT_WIDTH, cell_len(_title(group))))


def _split_groups(groups: list[tuple[str, ...]], room: int) -> list[list[tuple[str, ...]]]:
    """Groups of columns that fit beside each other; what does not fit follows below."""
    rows: list[list[tuple[str, ...]]] = [[]]
    used = 0
    for group in groups:
        if rows[-1] and used + 2 + _column(group) > room:
            rows.append([])
            used = 0
        rows[-1].append(group)
        used += 2 + _column(group)
    return rows


def _share(group: tuple[str, ...], what: str, shares: Shares) -> str:
    if not any((agent, what) in shares for agent in group):
        return NONE
    found = [shares.get((agent, what), 0) for agent in group]
    low, high = percent(min(found)), percent(max(found))
    return low if low == high else f"{low.removesuffix(' %')}–{high}"


def bottleneck_words(found: Bottleneck | None) -> str:
    """``consumer, which waits 3.1 % of the time``; "" where nothing is known."""
    if found is None:
        return ""
    match found.limit:
        case LimitKind.ROLE:
            return f"{found.role}, which waits {percent(found.waits_permille)} of the time"
        case LimitKind.LOADS:
            return f"loads into {found.group}: {found.role} waits {percent(found.waits_permille)} of the time"
        case LimitKind.SIGNALS:
            return f"signals: {found.role} waits {percent(found.waits_permille)} of the time, longest for {found.group}"
        case _:
            assert_never(found.limit)
