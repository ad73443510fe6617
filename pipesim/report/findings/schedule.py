"""A schedule beside its finding: lanes side by side, time downwards; unrelated steps folded; how to see it again.

A lane is an agent. Where those are too many for the width it is a role, with the agent's number before each step, and
where there are too many roles as well, the steps are a list.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import PurePath

from rich.cells import cell_len

from pipesim.answers.views.check import CheckStep, Counterexample
from pipesim.model.finding import Deadlock
from pipesim.prove.counterexample.play import from_text
from pipesim.prove.counterexample.words import Line, Part
from pipesim.report.findings.finding import index_of, role_of
from pipesim.report.text.console import BAD
from pipesim.report.text.layout import DOT, middle, pad, pad_left, wrap
from pipesim.report.text.source import command_lines, shell_words
from pipesim.report.text.words import count, number

MOST_STEPS = 16  #: shown of a schedule; all of them are in the JSON
MOST_FOCUS = 10  #: of these on what the failure is about, where all are too many
LEAST_LANE = 18  #: cells; with less the steps are a list
MOST_REPLAY = 600  #: characters of a schedule's line that are printed; a longer one is in the JSON
_GAP, _PLACE = 2, 18
_PARTS = {Part.SETUP: "of the setup", Part.PAST: "between", Part.FOCUS: "between"}


@dataclass(frozen=True)
class Fold:
    """Steps that are left out, one after the other."""

    steps: tuple[Line, ...]

    @property
    def text(self) -> str:
        """``8 steps of the setup``; ``12 unrelated steps of mma/0 and load hidden``."""
        parts = dict.fromkeys(_PARTS.get(step.part, "") for step in self.steps)
        said = []
        for part in parts:
            mine = [step for step in self.steps if _PARTS.get(step.part, "") == part]
            agents = list(dict.fromkeys(step.agent for step in mine))
            whose = " and ".join(agents) if len(agents) < 3 else f"{len(agents)} agents"
            hidden = f"{count(len(mine), 'unrelated step')} of {whose} hidden"
            said.append(f"{count(len(mine), 'step')} {part}" if part else hidden)
        return ", ".join(said)


@dataclass(frozen=True)
class ScheduleRows:
    """What is shown of a schedule, in lines as in a picture: ``agents`` are those that move or have an end to show.

    ``wrong``: the number of the step that breaks a rule, -1 where none does.
    """

    rows: Sequence[Line | Fold]
    agents: Sequence[str]
    wrong: int

    @property
    def steps(self) -> list[Line]:
        """The steps that are not folded."""
        return [row for row in self.rows if isinstance(row, Line)]


def schedule_rows(shown: Counterexample) -> ScheduleRows:
    """The rows of a counterexample."""
    rows = select_steps(shown.schedule)
    moving = dict.fromkeys(row.agent for row in rows if isinstance(row, Line))
    agents = [agent for agent, stands in shown.standing.items() if stands or agent in moving]
    agents += [agent for agent in moving if agent not in agents]
    wrong = shown.schedule[-1].number if shown.schedule and not isinstance(shown.finding, Deadlock) else -1
    return ScheduleRows(rows, agents, wrong)


def in_lane(agent: str, lane: str, said: str) -> str:
    """What an agent does, in a lane: after its number where the lane is its role's."""
    return said if lane == agent else f"/{index_of(agent)} {said}"


def step_words(step: Line) -> str:
    """What a step does, and what follows from it."""
    return step.short + (f"{DOT}{step.note}" if step.note else "")


def schedule_block(shown: Counterexample, width: int) -> list[str]:
    """The schedule in lines of at most ``width`` cells."""
    found = schedule_rows(shown)
    rows, steps, agents, last = found.rows, found.steps, found.agents, found.wrong
    places = min(_PLACE, max((cell_len(place_name(step)) for step in steps), default=0))
    wide = max(len("move"), *(len(number(step.number)) for step in steps)) if steps else len("move")
    room = width - 2 - wide - _GAP - (places + _GAP if places else 0)
    lanes = _lanes(agents, room)
    longer = ", not shortened" if CheckStep.SCHEDULE in shown.unfinished else ""
    lines = [*wrap(f"the schedule, {count(len(from_text(shown.replay)), 'move')}{longer}", width, "  "), ""]
    if not lanes:
        return lines + _list(rows, shown, last, wide, width)
    lane = room // len(set(lanes.values())) - _GAP
    titles = list(dict.fromkeys(lanes.values()))
    lines.append(
        ("  " + pad_left("move", wide) + "".join(" " * _GAP + pad(middle(t, lane), lane) for t in titles)).rstrip()
    )
    for row in rows:
        if isinstance(row, Fold):
            lines += wrap(row.text, width, "  " + pad_left("…", wide) + " " * _GAP)
            continue
        text = _mark(row, last) + in_lane(row.agent, lanes[row.agent], step_words(row))
        cells = {lanes[row.agent]: wrap(text, lane, "", "  ")}
        lines += _across(pad_left(number(row.number), wide), titles, cells, lane, place_name(row))
    ends: dict[str, list[str]] = {}
    for agent in agents:
        if stands := shown.standing.get(agent):
            ends.setdefault(lanes[agent], []).extend(wrap(in_lane(agent, lanes[agent], stands), lane, "", "  "))
    return lines + (_across(" " * wide, titles, ends, lane, "") if ends else [])


def again_lines(shown: Counterexample, width: int, nth: int = 0) -> list[str]:
    """The commands that show the same again: what they need to be copied into a shell. ``nth``: of the findings."""
    if not (shown.command and shown.replay):  # what CTAs do to global memory may have none
        return []
    words = shell_words(shown.command)
    if len(shown.replay) > MOST_REPLAY:
        file = "found.json" + (f":{nth}" if nth else "")
        lines = command_lines("  again: ", ["pipesim", "check", *words, "--json > found.json"], width)
        return lines + command_lines("   then: ", ["pipesim", "check", *words, f"--replay @{file}"], width)
    lines = command_lines("  again: ", ["pipesim", "check", *words, f"--replay '{shown.replay}'"], width)
    if "--entry" in words:  # which check alone has
        return lines
    if len(shown.replay) > width:
        said = f"as a timeline: `pipesim run {shown.command} --schedule` with the same line"
        return lines + wrap(said, width, "  ", "    ")
    return lines + command_lines("  as a timeline: ", ["pipesim", "run", *words, f"--schedule '{shown.replay}'"], width)


def select_steps(schedule: Sequence[Line]) -> list[Line | Fold]:
    """The steps to show, the others folded: the failure's past; of a long one the last and those on its barriers."""
    whole = _visible_steps(schedule)
    kept = [step for step in whole if step.part in (Part.FOCUS, Part.PAST)]
    if len(kept) > MOST_STEPS:
        focus = [step for step in kept if step.part is Part.FOCUS][-MOST_FOCUS:]
        latest = kept[-(MOST_STEPS - len(focus)) :]
        kept = sorted({*focus, *latest}, key=lambda step: step.number)
    numbers = {step.number for step in kept}
    rows: list[Line | Fold] = []
    for shown, group in groupby(whole, key=lambda step: step.number in numbers):
        some = tuple(group)
        rows += some if shown else (Fold(some),)
    return rows


def _visible_steps(schedule: Sequence[Line]) -> list[Line]:
    """The schedule without steps that no other agent notices, and nor begins of accesses that end immediately."""
    schedule = [step for step in schedule if step.part is not Part.PRIVATE]
    ends_at_once = {
        one.number for one, two in pairwise(schedule) if one.agent == two.agent and one.what == f"{two.what} begins"
    }
    return [step for step in schedule if step.number not in ends_at_once]


def _lanes(agents: Sequence[str], room: int) -> Mapping[str, str]:
    """The title of each agent's lane; {} if neither agents nor roles fit."""
    for titles in ({agent: agent for agent in agents}, {agent: role_lane(agent) for agent in agents}):
        lanes = len(set(titles.values()))
        if lanes and room // lanes - _GAP >= LEAST_LANE:
            return titles
    return {}


def _list(rows: Sequence[Line | Fold], shown: Counterexample, last: int, wide: int, width: int) -> list[str]:
    """One step below the other, each with its agent; the numbers are ``wide``."""
    agents = [row.agent for row in rows if isinstance(row, Line)]
    agents += [agent for agent, stands in shown.standing.items() if stands]
    names = min(20, max(map(cell_len, ["agent", *agents])))
    lines = [f"  {pad_left('move', wide)}  {pad('agent', names)}  does"]
    for row in rows:
        if isinstance(row, Fold):
            lines += wrap(row.text, width, f"  {pad_left('…', wide)}  ")
            continue
        place = f" ({place_name(row)})" if place_name(row) else ""
        first = f"  {pad_left(number(row.number), wide)}  {pad(middle(row.agent, names), names)}  "
        lines += wrap(f"{_mark(row, last)}{step_words(row)}{place}", width, first, " " * (cell_len(first) + 2))
    for agent, stands in shown.standing.items():
        if stands:
            first = f"  {' ' * wide}  {pad(middle(agent, names), names)}  "
            lines += wrap(stands, width, first)
    return lines


def _across(step: str, titles: Sequence[str], cells: Mapping[str, list[str]], lane: int, place: str) -> list[str]:
    """One row of the lanes, as many lines as its longest cell needs."""
    lines = []
    for n in range(max(map(len, cells.values()))):
        line = "  " + (step if n == 0 else " " * cell_len(step))
        for title in titles:
            cell = cells.get(title, [])
            line += " " * _GAP + pad(cell[n] if n < len(cell) else "", lane)
        lines.append((line + (" " * _GAP + middle(place, _PLACE) if n == 0 and place else "")).rstrip())
    return lines


def _mark(step: Line, last: int) -> str:
    return f"{BAD} " if step.number == last else ""


def place_name(step: Line) -> str:
    """``ring.py:20``: the author's line without its folders."""
    return PurePath(step.line).name


def role_lane(agent: str) -> str:
    """The role of an agent's name, with its CTA: ``mma@0`` of ``mma/1@0``."""
    role, cta = role_of(agent)
    return f"{role}@{cta}" if cta else role
