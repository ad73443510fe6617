"""A protocol for every schedule: the verdict, and what is wrong at the smallest sizes that show it.

Between the proof, which sees flat programs only, and those who ask: the command line, Python and pytest.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from pipesim.answers.budget import Budget
from pipesim.answers.checking.counterexample import counterexample_of
from pipesim.answers.checking.failures import EVERY_RANGE, CheckQuestion
from pipesim.answers.checking.stepped import SteppedCheck
from pipesim.answers.every_size.classes import AnyWord
from pipesim.answers.progress import SILENT, Progress
from pipesim.answers.views.check import AgainstReport, CheckReport, Counterexample, WalkReport
from pipesim.answers.views.conclusion import heading
from pipesim.errors import ParameterError
from pipesim.explain.sync_changes import sync_changes
from pipesim.findings.waivers import Identity
from pipesim.model.ending import Ending
from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.prove.check import MOST_STATES, with_usual
from pipesim.prove.counterexample.activity import activity
from pipesim.prove.counterexample.confirm import refutation, shown_by_code
from pipesim.prove.counterexample.play import Play, play_schedule
from pipesim.prove.dependent_launch import launch_refutations
from pipesim.prove.memory_order.may_fail import memory_faults_of
from pipesim.prove.refutation import Refutation
from pipesim.targets import Target


def against(old: CheckReport, new: CheckReport, old_program: Program, new_program: Program) -> AgainstReport:
    """``new`` beside ``old``, each checked by itself.

    A finding is the same in both if its kind, role, barriers and tiles and the text of its line are: a version may have
    another name. Of those that are equal in all of this the first belongs to the first.
    """
    left = list(enumerate(_identities(old.refutations)))
    appeared: list[int] = []
    unchanged: list[tuple[int, int]] = []
    for n, mine in enumerate(_identities(new.refutations)):
        found = next((each for each in left if each[1] == mine), None)
        if found is None:
            appeared.append(n)
        else:
            left.remove(found)
            unchanged.append((n, found[0]))
    gone = tuple(n for n, _ in left)
    return AgainstReport(old, new, tuple(appeared), gone, tuple(unchanged), sync_changes(old_program, new_program))


def _identities(findings: Sequence[Counterexample]) -> list[Identity]:
    found = []
    for shown in findings:
        assert shown.identity is not None, "the triage has looked it up"
        found.append(replace(shown.identity, function="", nth=0))
    return found


def check(
    target: Target,
    params: Mapping[str, int],
    *,
    max_states: int = MOST_STATES,
    ctas: int | None = None,
    most_ranges: int = EVERY_RANGE,
    program: Program | None = None,
    quick: bool = False,
    budget: Budget | None = None,
    progress: Progress = SILENT,
    any_words: tuple[AnyWord, ...] = (),
    beside: bool = False,
) -> CheckReport:
    """The verdict for every schedule on the program that ``target`` makes of these parameters and CTAs of the launch.

    ``max_states`` are searched where one run does not decide. ``most_ranges``: trip counts of which every value is
    looked at; the others keep their values. ``program``: the target's, where it has been made already. ``quick``: the
    verdict alone. ``budget``: the time of each step after it. ``beside``: as of :meth:`SteppedCheck.beside`. Raises as
    ``Target.build`` does.
    """
    program = target.build(params, grid=ctas) if program is None else program
    asked = CheckQuestion(target, params, program, ctas, max_states, most_ranges, quick, any_words)
    checking = SteppedCheck(asked, budget, progress)
    checking.verdict()
    checking.details()
    return checking.beside() if beside else checking.report()


def program_of_schedule(target: Target, program: Program, text: str, ctas: int | None = None) -> Program:
    """The program in which a schedule shows a finding: as it was read; else that with which the check of a kernel
    continues, where accesses to global memory are operations; else as it was read.
    """

    def is_shown(by: Program) -> bool:
        with suppress(ParameterError):
            return _wrong(by, play_schedule(by, text)) is not None
        return False

    if target.kernel is None or is_shown(program):
        return program
    checking = SteppedCheck(CheckQuestion(target, {}, program, ctas, quick=True))
    checking.verdict()
    return checking.program if is_shown(checking.program) else program


def replay(program: Program, text: str) -> CheckReport:
    """The verdict on one schedule. ParameterError for a move that is not possible in its state."""
    play = play_schedule(program, text)
    found = _wrong(program, play)
    return CheckReport(
        heading=heading(program),
        verdict=Verdict.UNKNOWN if found is None else Verdict.REFUTED,
        how=None,
        operations=sum(map(len, program.code)),
        phases=0,
        states=0,
        doubts=(),
        refutations=tuple(counterexample_of(program, each) for each in with_usual(program, filter(None, (found,)))),
        replayed=len(play.moves),
    )


def replay_report(program: Program, text: str) -> WalkReport:
    """One schedule as a timeline. ParameterError for a move that is not possible in its state."""
    play = play_schedule(program, text)
    moves, spans = len(play.moves), activity(program, tuple(play.moves))
    found = _wrong(program, play)
    names = tuple(program.agent_name(agent) for agent in range(len(program.agents)))
    findings = (counterexample_of(program, found).finding,) if found is not None else ()
    return WalkReport(heading(program), moves, names, spans, findings, play.ended)


def _wrong(program: Program, play: Play) -> Refutation | None:
    """The finding at the end of a play, including the memory order of its last access, and lanes that meet there."""
    found = refutation(play)
    if found is None and (unordered := memory_faults_of(program, play.moves)):
        return Refutation(Ending.FAULT, tuple(play.moves), unordered[-1])
    if found is None:
        shown = *shown_by_code(program), *launch_refutations(program)
        return next((each for each in shown if each.schedule == tuple(play.moves)), None)
    return found
