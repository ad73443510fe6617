"""A check in steps: first the verdict, then what explains it and how far it holds, each step in its own time.

What a step has found when it is ended, by its time limit or by its caller, stays in the report.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import assert_never

from pipesim.answers.any_size import Families, build_by, require_trip_counts
from pipesim.answers.budget import Budget, BudgetSpentError
from pipesim.answers.checking.failures import CheckQuestion, Keyed
from pipesim.answers.checking.state import CheckState, report_of
from pipesim.answers.checking.verdict import (
    at_every_size,
    beyond_the_limit,
    by_laps,
    by_words_inside,
    in_every_order,
    in_other_launches,
    proof_of,
    with_any_data,
    with_each_number_of_tiles,
    with_sizes_nearby,
)
from pipesim.answers.every_cta.launches import Place
from pipesim.answers.every_size.claims import EverySize
from pipesim.answers.progress import SILENT, Progress, Unit
from pipesim.answers.views.check import CheckReport, CheckStep, Counterexample, CutBy, LeftOut
from pipesim.model.coverage import Assumed, Assumption
from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.process.limits import Limit, LimitReachedError
from pipesim.prove.any_size.family import ProvedRange
from pipesim.prove.check import Check, How, unknown
from pipesim.prove.counterexample.leftovers import advisories as left_over
from pipesim.ptx.launch.settings import is_open_word
from pipesim.targets import Target

_MOST_BESIDE = 3  #: kinds of CTAs beside the first refuted one whose own findings are explained


def _least_values(asked: CheckQuestion) -> dict[str, int]:
    """Of the words that may have any value the least one, where the kernel's launch has none for them."""
    if asked.target.kernel is None:
        return {}
    kernel = asked.target.kernel.kernel
    return {each.name: each.low for each in asked.any_words if is_open_word(kernel.launch, kernel.entry, each.name)}


def _with_values(asked: CheckQuestion, given: Mapping[str, int]) -> CheckQuestion:
    """The question about a kernel whose words have these values."""
    target = asked.target.with_settings(given)
    return replace(asked, target=target, program=target.build(grid=asked.ctas)) if given else asked


class SteppedCheck:
    """The check of one program: :meth:`verdict`, then :meth:`details`; :meth:`report` at any time after the first."""

    def __init__(self, asked: CheckQuestion, budget: Budget | None = None, progress: Progress = SILENT) -> None:
        self._given = _least_values(asked)
        self._known = CheckState(_with_values(asked, self._given))
        self._budget = budget or Budget()
        self._progress = progress
        self._beside: list[tuple[SteppedCheck, Place]] = []  # of other CTAs that have findings of their own
        self._now: CheckStep | None = None
        self._decided = False  # whether all that the verdict takes was looked at
        self._units = (0, 0)
        self._operations = 0  # of the program that the next unit of work is about

    def verdict(self) -> CheckReport:
        """What is known for every schedule: the report as far as the verdict goes, without what is wrong."""
        known, asked = self._known, self._known.asked
        if asked.any_words and asked.target.kernel is None:
            require_trip_counts([each.name for each in asked.any_words], asked.target, asked.params, asked.program)
        of_kernel = asked.any_words and asked.target.kernel is not None
        every = EverySize(asked.target, asked.any_words) if of_kernel else None
        with self._progress.check_step(asked.program.name, CheckStep.VERDICT):
            first = by_laps(known)
            found = None if first is not None else beyond_the_limit(known)
            if found is None:
                found = by_words_inside(known, first or proof_of(known, known.asked.program))
                found = with_any_data(known, in_every_order(known, found))
                if asked.target.kernel is not None and known.cut is None:
                    found = in_other_launches(known, found, self._add_beside)
        whole = known.cut is None and first is None  # it was followed to its end
        if asked.target.kernel is not None and whole:
            found = with_sizes_nearby(known, asked.target.kernel.kernel, found)
        if found.verdict is Verdict.PROVED and every is not None:
            found = at_every_size(known, found, every)
        elif found.verdict is Verdict.PROVED and asked.any_words:
            found = self._at_any_trips(found)
        elif found.verdict is Verdict.PROVED and asked.target.kernel is not None:
            found = with_each_number_of_tiles(known, found)
        talk = known.others.together
        if found.verdict is Verdict.PROVED and (talk.may_hang or talk.may_race):
            found = unknown(known.asked.program, How.OPEN_WORDS if talk.may_hang else How.OPEN_DATA)
            known.take(found)
        self._decided = True
        if asked.quick:
            self._known.leave_out(CutBy.NOT_ASKED)
        return report_of(known, (), self.left_out)

    def _at_any_trips(self, proved: Check) -> Check:
        """The verdict on a description where trip counts that were named have other values, if it is refuted there."""
        known, asked = self._known, self._known.asked
        self._step(CheckStep.SIZES)
        known.due.remove(CheckStep.SIZES)
        wrong = {each.parameter: each.fails for each in known.ranges if each.refuted}
        for name, low, high, _ in asked.any_words:
            at = max(low, wrong.get(name, low))  # a value that is asked about and may fail
            if name in wrong and (high is None or at <= high):
                params = {**asked.params, name: at}
                program = asked.target.build(params, grid=asked.ctas)
                found = proof_of(known, program)
                if found.verdict is not Verdict.PROVED:
                    known.asked, known.ranges, known.together = replace(asked, params=params, program=program), [], None
                    known.take(found)
                    return found
        return proved

    def _add_beside(self, there: CheckQuestion, found: Check) -> None:
        """A check of other CTAs, which have a finding that those before do not have."""
        in_full = not there.quick and len(self._beside) < _MOST_BESIDE
        beside = SteppedCheck(replace(there, quick=not in_full), self._budget, self._progress)
        beside._known.take(found)
        beside._decided = True
        self._beside.append((beside, self._known.others.place))
        if not there.quick and not in_full:
            self._known.left_out.append(LeftOut(CheckStep.CTAS, CutBy.WORK, _MOST_BESIDE))

    @property
    def has_verdict(self) -> bool:
        """True if there is something to report: all was looked at, or what is refuted is known."""
        found = self._known.found
        return found is not None and (self._decided or found.verdict is Verdict.REFUTED)

    @property
    def program(self) -> Program:
        """The program that it is about: after the verdict the one with what was followed for it."""
        return self._known.asked.program

    @property
    def cut(self) -> Limit | None:
        """The limit of the whole work that was reached, so that nothing more is to be done."""
        return self._known.cut

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The steps that did not finish, each once."""
        return tuple(
            dict.fromkeys((*self._known.left_out, *(each for beside, _ in self._beside for each in beside.left_out)))
        )

    def details(self) -> None:
        """Carry out the steps that are left. A KeyboardInterrupt reaches the caller, who may ask for the report."""
        while self._known.due:
            self._step(self._known.due.pop(0))
        for beside, _ in self._beside[: 0 if self._known.asked.quick else _MOST_BESIDE]:
            if self._known.cut is None:
                beside.details()
                self._known.cut = beside.cut

    def beside(self) -> CheckReport:
        """All that is known, with findings at other lines that need no other change, which a waiver must not hide."""
        self._known.failures.look_beside(lambda _, __: None)
        return self.report()

    def interrupt(self) -> None:
        """Whoever drives the check has ended it: what is left of it is left out, and a verdict not reached unknown."""
        if not self.has_verdict:
            self._known.take(unknown(self._known.asked.program, How.STOPPED))
        if self._now is not None:
            self._known.left_out.append(LeftOut(self._now, CutBy.INTERRUPTED, *self._units))
            self._now = None
        self._known.leave_out(CutBy.INTERRUPTED)
        for beside, _ in self._beside:
            beside.interrupt()

    def report(self) -> CheckReport:
        """All that is known now."""
        known = self._known
        if known.others.about[0] >= 0:
            places = ((self, known.others.about), *self._beside)
            wrong: Iterator[Counterexample] = known.findings.merged((check.shown(), place) for check, place in places)
        else:
            wrong = (replace(shown, settings=known.size) for _, shown in self.shown())
        found = (replace(each, settings={**self._given, **each.settings}) for each in wrong)
        return report_of(known, found, self.left_out)

    def shown(self) -> Iterator[Keyed]:
        """The findings of the program itself."""
        return self._known.failures.shown(self._known.left_out)

    def _step(self, step: CheckStep) -> None:
        """Carry out a step, as far as there is time for it."""
        self._now, self._units = step, (0, 0)
        self._operations = sum(map(len, self._known.asked.program.code))
        self._budget.start()
        with self._progress.check_step(self._known.asked.program.name, step) as tell:

            def unit(done: int, of: int) -> None:
                self._units = done, of
                tell(done, of)
                self._budget.ask(self._operations)

            try:
                self._work(step)(unit)
            except BudgetSpentError as spent:
                self._known.left_out.append(LeftOut(step, spent.by, *self._units))
            except LimitReachedError as reached:  # that of the whole protocol: nothing more is done for it
                self._known.reach(reached, step, *self._units)
                self._known.leave_out(reached.limit)
        self._now = None

    def _work(self, step: CheckStep) -> Callable[[Unit], None]:
        match step:
            case CheckStep.VERDICT | CheckStep.CTAS:
                raise AssertionError(step)  # no work of their own
            case CheckStep.SMALLEST:
                return self._known.failures.lower
            case CheckStep.SCHEDULE:
                return self._known.failures.shorten
            case CheckStep.CORRECTIONS:
                return self._known.failures.correct
            case CheckStep.HIDDEN:
                return self._known.failures.look_behind
            case CheckStep.OTHERS:
                return self._known.failures.look_for_others
            case CheckStep.LEFTOVERS:
                return self._look_for_leftovers
            case CheckStep.SIZES:
                return self._look_at_sizes
            case _:
                assert_never(step)

    def _look_for_leftovers(self, unit: Unit) -> None:
        unit(0, 1)
        assert self._known.found is not None
        self._known.left = left_over(self._known.asked.program, self._known.leftovers)

    def _look_at_sizes(self, unit: Unit) -> None:
        """The values of each trip count that are proved; making a program of another size is a unit of work."""
        asked, made = self._known.asked, 0
        if asked.target.kernel is not None or asked.program.words_cta >= 0:
            return  # a kernel's words are looked at with the verdict; of a description in which CTAs talk one size is

        def one_more(operations: int) -> None:
            nonlocal made
            self._operations = operations
            unit(made, 0)
            made += 1

        target = replace(asked.target, watch=one_more)
        found = self._known.found
        by_commit_order = found is None or found.by_commit_order or found.how is How.SEARCH
        families = Families(target, asked.params, asked.program, by_commit_order=by_commit_order)
        shown: tuple[ProvedRange, ...] = ()
        for most in range(1, asked.most_ranges + 1):  # one after the other: what is known when time is up stays
            shown = families.ranges(most)
            if len(shown) < most:
                break
            self._known.ranges.append(families.proved(shown[-1]))
            self._assume_for_sizes(target, shown[-1], families.by_commit_order)
        self._known.together = families.together(shown)

    def _assume_for_sizes(self, target: Target, shown: ProvedRange, by_commit_order: set[str]) -> None:
        """A claim about every value may rest on an assumption that the size asked for does not need."""
        if not shown.lap or Assumption.PATTERN in self._known.asked.program.strictness:
            return
        repeats = Assumed(Assumption.PATTERN, f"{shown.parameter}: sizes beyond {shown.checked:,}")
        more, made = [repeats], {each.kind for each in self._known.assumed}
        commits = shown.parameter in by_commit_order and Assumption.COMMITS not in made
        if Assumption.PROXIES not in made or commits:
            larger = build_by(target, self._known.asked.params, shown.parameter)(shown.checked)
            more += [] if larger is None else self._known.assumed_by(larger, by_commit_order=commits)
        self._known.assume(more)
