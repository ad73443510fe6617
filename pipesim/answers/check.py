"""A protocol checked for every schedule, as a report: the verdict, and what is wrong at the smallest sizes that show
it.

Between the proof, which sees flat programs only, and those who ask: the command line and pytest.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from pipesim.answers.any_size import Families, trip_counts
from pipesim.answers.heading import heading
from pipesim.answers.view import CheckReport, Range, Shown, WalkReport
from pipesim.errors import PipesimError
from pipesim.explain.causes import with_causes
from pipesim.explain.faults import report_fault
from pipesim.explain.lap_counters import Laps
from pipesim.model.finding import MEMORY_ORDER, OF_SCHEDULES, Advisory, Deadlock, FaultKind, FaultReport, Verdict
from pipesim.model.program import Program
from pipesim.prove.any_size.family import EveryValue, SomeValues
from pipesim.prove.check import Check, How, check
from pipesim.prove.counterexample.activity import doings
from pipesim.prove.counterexample.confirm import carried, refutation
from pipesim.prove.counterexample.play import Play
from pipesim.prove.counterexample.replay_text import to_text, walk
from pipesim.prove.counterexample.shorten import shorten
from pipesim.prove.counterexample.words import doubt_line, schedule_lines, standing
from pipesim.prove.memory_order.faults import memory_fault_of
from pipesim.prove.memory_order.may_fail import advisories
from pipesim.prove.refutation import End, Refutation
from pipesim.prove.repair.correction import corrections
from pipesim.prove.search.breadth_first import explore
from pipesim.prove.search.leftovers import advisories as left_over
from pipesim.prove.search.leftovers import leftovers
from pipesim.targets import Target

EVERY_RANGE = 1 << 10
_MOST_TRIES = 12  #: values of one parameter
_FEW_STATES = 2_000
_SHORT = 400  #: operations of a program that is searched for other ways to fail
_MOST_LEFT = 20_000  #: operations of a program that is run once more for what it leaves
_MOST_MOVES = 30_000  #: made to shorten a schedule

_NO_MOVE_SHOWS = MEMORY_ORDER | OF_SCHEDULES  #: what a schedule's last move does not show: it is left as it is


def judge(
    target: Target,
    params: Mapping[str, int],
    program: Program,
    max_states: int,
    ctas: int | None = None,
    most_ranges: int = EVERY_RANGE,
) -> CheckReport:
    """The verdict on ``program``, which ``target`` makes of these parameters; ``ctas`` as a command line gave it.

    ``most_ranges``: trip counts of which every value is looked at; the others keep their values.
    """
    families = Families(target, params, program)
    found = check(program, max_states)
    if found.verdict is Verdict.UNKNOWN:
        found = _by_smaller(target, dict(params), program, found)
    shown = families.ranges(most_ranges) if found.verdict is Verdict.PROVED else ()
    ranges = tuple(_range(target, params, each) for each in shown)
    wrong, also = _shown(target, dict(params), program, found, ctas)
    return CheckReport(
        heading(program), found.verdict, found.how.value, found.operations, found.phases, found.states,
        tuple(doubt_line(program, doubt) for doubt in found.doubts), wrong,
        _said(program, found, ranges), ranges, _advisories(program, found), also,
    )  # fmt: skip


def _advisories(program: Program, found: Check) -> tuple[Advisory, ...]:
    """What breaks no rule and may not be meant: arrives without a scope, and what is left at the end."""
    left = leftovers(program) if found.verdict is Verdict.PROVED and found.operations <= _MOST_LEFT else ()
    return advisories(program) + left_over(program, left)


def _by_smaller(target: Target, params: dict[str, int], program: Program, found: Check) -> Check:
    """A fault of a smaller size, if its schedule goes wrong at this one, too; else what is known already."""
    for name in trip_counts(target, params, program):
        asked = params.get(name, target.defaults[name])
        for value in range(min(asked, _MOST_TRIES)):
            smaller = _refuted(target, params | {name: value}, None)
            if smaller is not None:
                shown = [carried(program, each.schedule) for each in smaller[1].refutations]
                wrong = tuple(each for each in shown if each is not None)
                if wrong:
                    return replace(found, verdict=Verdict.REFUTED, how=How.SCHEDULE, refutations=wrong)
    return found


def replay(program: Program, text: str) -> CheckReport:
    """The verdict on one schedule. ParameterError for a move that is not possible in its state."""
    play = walk(program, text)
    found = _wrong(program, play)
    shown = (shown_of(program, found),) if found is not None else ()
    verdict = Verdict.UNKNOWN if found is None else Verdict.REFUTED
    said = f"{program.name} fails in this schedule" if found is not None else "no finding at the end of this schedule"
    operations = sum(map(len, program.code))
    how = f"one schedule of {len(play.moves):,} moves"
    return CheckReport(heading(program), verdict, how, operations, 0, 0, (), shown, said)


def walked(program: Program, text: str) -> WalkReport:
    """One schedule as a timeline. ParameterError for a move that is not possible in its state."""
    play = walk(program, text)
    moves, spans = len(play.moves), doings(program, tuple(play.moves))
    found = _wrong(program, play)
    names = tuple(program.agent_name(agent) for agent in range(len(program.agents)))
    if found is None:
        waits = "every agent has finished" if play.ended else "not every agent has finished"
        return WalkReport(heading(program), moves, names, spans, (), f"no finding at the end of this schedule: {waits}")
    said = "a deadlock" if found.deadlock is not None else "a fault"
    findings = (shown_of(program, found).finding,)
    return WalkReport(heading(program), moves, names, spans, findings, f"the schedule ends in {said}")


def _wrong(program: Program, play: Play) -> Refutation | None:
    """The finding at the end of a play, including the memory order of its last access."""
    found = refutation(play)
    if found is None and (unordered := memory_fault_of(program, play.moves)) is not None:
        return Refutation(End.FAULT, tuple(play.moves), unordered)
    return found


def _shown(
    target: Target, params: dict[str, int], program: Program, found: Check, ctas: int | None
) -> tuple[tuple[Shown, ...], tuple[str, ...]]:
    """The findings at the smallest sizes that still show them, and the other ways in which schedules there end."""
    sizes, small, seen = params, program, found
    if found.refutations and target.program is None:
        sizes, small, seen = _smallest(target, params, program, found)
    lowered = {name: value for name, value in sizes.items() if params.get(name) != value}
    short = [
        refuted if refuted.kind in _NO_MOVE_SHOWS else shorten(small, refuted, _MOST_MOVES)
        for refuted in seen.refutations
    ]
    command = _command(target, sizes, ctas)
    wrong = tuple(_corrected(shown_of(small, each, lowered, command), small, each, program) for each in short)
    searched = explore(small, _FEW_STATES) if short and sum(map(len, small.code)) <= _SHORT else None
    others = searched.kinds - {refuted.kind for refuted in short} if searched is not None else ()
    return wrong, tuple(sorted(kind.value for kind in others))


def _corrected(shown: Shown, small: Program, refuted: Refutation, asked: Program) -> Shown:
    """With its likely corrections, where the finding has none of its own and a change of the program shows them."""
    has_one = isinstance(shown.finding, FaultReport) and shown.finding.correction
    if has_one or refuted.kind in _NO_MOVE_SHOWS:
        return shown
    return replace(shown, corrections=corrections(small, refuted, asked))


def shown_of(
    program: Program, refuted: Refutation, lowered: Mapping[str, int] | None = None, command: str = ""
) -> Shown:
    """One way in which it fails, with all that a report says of it; ``lowered`` and ``command`` as there."""
    if refuted.deadlock is not None:
        refuted = replace(refuted, deadlock=_with_causes(program, refuted, refuted.deadlock))
    finding = report_fault(program, refuted.fault) if refuted.fault is not None else refuted.deadlock
    assert finding is not None
    return Shown(
        finding,
        schedule_lines(program, refuted),
        lowered or {},
        to_text(refuted.schedule),
        command,
        standing(program, refuted),
        cause=refuted.why.name if refuted.why is not None else "",
    )


def _command(target: Target, sizes: Mapping[str, int], ctas: int | None) -> str:
    """The protocol and its parameters as a command line takes them, "" for one that has no name there."""
    if not target.spelling:
        return ""
    words = [target.spelling, *(word for name, value in sizes.items() for word in ("-p", f"{name}={value}"))]
    return shlex.join(words + (["--ctas", str(ctas)] if ctas is not None else []))


def _with_causes(program: Program, refuted: Refutation, deadlock: Deadlock) -> Deadlock:
    """The deadlock with its causes: a phase that an agent asks for and has missed, a count that is never reached."""
    laps = Laps(program)
    play = Play(program, refuted.schedule, [laps])
    play.ask_all()
    return with_causes(program, play.state, deadlock, laps.disagreements)


def _smallest(
    target: Target, params: dict[str, int], program: Program, found: Check
) -> tuple[dict[str, int], Program, Check]:
    """What the loops of ``program`` are named after, made as small as it can be; as it was if nothing smaller fails.

    Only sizes that go wrong in one of the same ways count. A flat program has no parameters to lower.
    """
    kinds = {shown.kind for shown in found.refutations}
    sizes = dict(params)
    names = [n for n in dict.fromkeys(program.loops) if n in target.defaults]
    for name in names:
        asked = sizes.get(name, target.defaults[name])
        for value in range(min(asked, _MOST_TRIES)):
            smaller = _refuted(target, sizes | {name: value}, kinds)
            if smaller is not None:
                sizes[name] = value
                program, found = smaller
                break
    return sizes, program, found


def _refuted(target: Target, sizes: dict[str, int], kinds: set[FaultKind | End] | None) -> tuple[Program, Check] | None:
    """The program of these sizes if it goes wrong, in one of these ways or (None) in any."""
    try:
        program = target.build(sizes)
    except PipesimError:
        return None  # this size does not exist
    found = check(program, max_states=_FEW_STATES)
    same = found.verdict is Verdict.REFUTED and (kinds is None or kinds & {shown.kind for shown in found.refutations})
    return (program, found) if same else None


def _range(target: Target, params: Mapping[str, int], shown: EveryValue | SomeValues) -> Range:
    match shown:
        case EveryValue(parameter, least, first, lap, checked):
            return Range(parameter, least, checked, first, lap)
        case SomeValues(parameter, least, checked, fails, why):
            wrong = fails >= 0 and _refuted(target, {**params, parameter: fails}, None) is not None
            return Range(parameter, least, checked, fails=fails, why="it fails" if wrong else why.value)
        case _:
            assert_never(shown)


def _said(program: Program, found: Check, ranges: tuple[Range, ...]) -> str:
    """The verdict in one line; it says for which sizes."""
    match found.verdict:
        case Verdict.PROVED:
            free = [each.parameter for each in ranges if each.lap]
            sizes = (
                f"for any number of {' or of '.join(free)}, "
                "assuming the roles keep repeating the pattern seen in the checked sizes"
                if free
                else "at these parameters"
            )
            return f"proved: no schedule of {program.name} deadlocks or breaks a rule, {sizes}"
        case Verdict.REFUTED:
            return f"refuted: {program.name} fails in the schedule above"
        case Verdict.UNKNOWN:
            return "unknown: neither proved nor refuted when the search reached its limit"
