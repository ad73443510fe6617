"""What is wrong with a program: counterexamples at the smallest sizes that still go wrong, each schedule shortened."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace

from pipesim.answers.views.check import Counterexample
from pipesim.errors import PipesimError
from pipesim.explain.causes import with_causes
from pipesim.explain.faults import report_fault
from pipesim.explain.lap_counters import Laps
from pipesim.model.ending import Ending
from pipesim.model.finding import MEMORY_ORDER, OF_SCHEDULES, Deadlock, FaultKind, FaultReport, Verdict
from pipesim.model.program import Program
from pipesim.prove.check import Check
from pipesim.prove.check import check as prove
from pipesim.prove.counterexample.play import Play
from pipesim.prove.counterexample.replay_text import to_text
from pipesim.prove.counterexample.shorten import shorten
from pipesim.prove.counterexample.words import schedule_lines, standing
from pipesim.prove.refutation import Refutation
from pipesim.prove.repair.correction import corrections
from pipesim.prove.search.breadth_first import explore
from pipesim.targets import Target

MOST_TRIES = 12  #: values of one parameter
_FEW_STATES = 2_000
_SHORT = 400  #: operations of a program that is searched for other ways to go wrong
_MOST_MOVES = 30_000  #: made to shorten a schedule

_NO_MOVE_SHOWS = MEMORY_ORDER | OF_SCHEDULES  #: what a schedule's last move does not show: it is left as it is


def counterexamples(
    target: Target, params: dict[str, int], program: Program, found: Check, ctas: int | None
) -> tuple[tuple[Counterexample, ...], tuple[FaultKind | Ending, ...]]:
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
    wrong = tuple(_corrected(counterexample_of(small, each, lowered, command), small, each, program) for each in short)
    searched = explore(small, _FEW_STATES) if short and sum(map(len, small.code)) <= _SHORT else None
    others = searched.kinds - {refuted.kind for refuted in short} if searched is not None else ()
    return wrong, tuple(sorted(others, key=lambda kind: kind.value))


def _corrected(found: Counterexample, small: Program, refuted: Refutation, asked: Program) -> Counterexample:
    """With its likely corrections, where the finding has none of its own and a change of the program shows them."""
    has_one = isinstance(found.finding, FaultReport) and found.finding.correction
    if has_one or (refuted.kind in _NO_MOVE_SHOWS and refuted.kind is not FaultKind.READ_NOT_FENCED):
        return found
    return replace(found, corrections=corrections(small, refuted, asked))


def counterexample_of(
    program: Program, refuted: Refutation, lowered: Mapping[str, int] | None = None, command: str = ""
) -> Counterexample:
    """One way in which it fails, with all that a report says of it; ``lowered`` and ``command`` as there."""
    if refuted.deadlock is not None:
        refuted = replace(refuted, deadlock=_with_causes(program, refuted, refuted.deadlock))
    finding = report_fault(program, refuted.fault) if refuted.fault is not None else refuted.deadlock
    assert finding is not None
    return Counterexample(
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
    words += ["--ctas", str(ctas)] if ctas is not None else []
    return shlex.join([*words, *target.strictness.arguments()])


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
        for value in range(min(asked, MOST_TRIES)):
            smaller = refuted_at(target, sizes | {name: value}, kinds)
            if smaller is not None:
                sizes[name] = value
                program, found = smaller
                break
    return sizes, program, found


def refuted_at(
    target: Target, sizes: dict[str, int], kinds: set[FaultKind | Ending] | None
) -> tuple[Program, Check] | None:
    """The program of these sizes if it goes wrong, in one of these ways or (None) in any."""
    try:
        program = target.build(sizes)
    except PipesimError:
        return None  # this size does not exist
    found = prove(program, max_states=_FEW_STATES)
    same = found.verdict is Verdict.REFUTED and (kinds is None or kinds & {shown.kind for shown in found.refutations})
    return (program, found) if same else None
