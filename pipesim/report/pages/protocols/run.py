"""``pipesim run``: one simulated schedule, its length, where the time goes, its timeline, what failed; ``--schedule``.

The table of where the time goes is also that of a comparison.
"""

from collections.abc import Mapping, Sequence
from typing import assert_never

from rich.cells import cell_len

from pipesim.answers.views.check import WalkReport
from pipesim.answers.views.run import RunReport
from pipesim.conform.result import Bottleneck, LimitKind
from pipesim.model.ending import Ending
from pipesim.model.finding import Deadlock
from pipesim.prove.counterexample.activity import FOREVER, Activity, Span
from pipesim.report.findings.finding import advisory_lines, budget_lines, fault_lines, finding_lines
from pipesim.report.pictures.timeline import picture_lines, timeline_lines
from pipesim.report.sentences.check import walk_sentence
from pipesim.report.text.console import BAD, GOOD, UNSURE, mark
from pipesim.report.text.layout import field, heading_lines, middle, pad, pad_left, simulation_lines, wrap
from pipesim.report.text.words import NONE, count, percent
from pipesim.trace.activity import FOREVER as OPEN
from pipesim.trace.activity import Picture, SliceKind, Track, wait_kind


def walk_lines(report: WalkReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    lines = [*heading_lines(report.heading, width), "", *field("schedule", [count(report.moves, "move")], width)]
    groups = list(dict.fromkeys((span.barrier, span.awaited) for span in report.spans if span.barrier))
    drawn = picture_lines(_picture(report), groups, width)
    lines += ["", *drawn] if drawn else []
    for finding in report.findings:
        lines += ["", *finding_lines([finding], width)]
    return [*lines, "", *wrap(walk_sentence(report), width, f"{mark(report.conclusion.ok)} ")]


def _picture(report: WalkReport) -> Picture:
    tracks = []
    for number, agent in enumerate(report.agents):
        spans = [
            (span.first, OPEN if span.end == FOREVER else span.end, _kind(span))
            for span in report.spans
            if span.agent == number
        ]
        tracks.append(Track(agent, tuple(spans)))
    stuck = any(isinstance(finding, Deadlock) for finding in report.findings)
    return Picture("schedule", -1, tuple(tracks), 0, report.moves, report.moves, stuck, part=False, unit="move")


def _kind(span: Span) -> SliceKind:
    if span.activity is Activity.WAITS:
        return wait_kind(span.awaited)
    return SliceKind.WORK if span.activity is Activity.WORKS else SliceKind.ISSUE


Shares = Mapping[tuple[str, str], int]  #: (agent, what) → thousandths of the agent's time

MOST_AGENTS = 4  #: more agents are shown as roles, with the least and the greatest share in the role
WHAT_WIDTH = 28
AGENT_WIDTH = 14


def run_lines(report: RunReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    lines = [*heading_lines(report.heading, width), "", *simulation_lines(report.simulation, width)]
    events, steps = count(len(report.trace.events), "event"), count(report.steps, "operation")
    lines += field("length", [count(report.cycles, "cycle"), f"{steps} executed", f"{events} recorded"], width)
    if report.limited_by is not None:
        lines += field("limited by", [bottleneck_words(report.limited_by)], width)
    if report.engines:
        busy = [f"{engine} busy {percent(share)} of the run" for engine, share in report.engines.items()]
        lines += field("engines", busy, width)
    if report.advisories:
        lines += advisory_lines(report.advisories, width)
    blocks = [share_lines([("simulated", report.shares)], width)]
    blocks.append(timeline_lines(report.trace, None, width))
    if report.deadlock is not None:
        blocks.append(finding_lines([report.deadlock], width))
    if report.faults:
        blocks.append(fault_lines(report.faults, width))
    for block in blocks:
        lines += ["", *block] if block else []
    return [*lines, "", *_verdict(report, width)]


def _verdict(report: RunReport, width: int) -> list[str]:
    """One schedule shows that something can happen, never that nothing else can: the line says so."""
    match report.simulation.outcome:
        case Ending.FINISHED if not report.faults:
            return wrap("finished: no deadlock and no fault in this schedule", width, f"{GOOD} ")
        case Ending.DEADLOCK:
            return wrap("the simulated schedule ends in a deadlock", width, f"{BAD} ")
        case Ending.UNKNOWN if not report.heading.coverage.complete:
            return wrap(f"unknown: {report.heading.protocol} was not followed to its end", width, f"{UNSURE} ")
        case Ending.UNKNOWN:
            return budget_lines(report.steps, width, report.simulation.cut)
        case _:
            return wrap(f"the simulated schedule breaks a rule: {count(len(report.faults), 'fault')}", width, f"{BAD} ")


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
