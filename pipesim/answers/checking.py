"""A check in steps: first the verdict, then what explains it and how far it holds, each step in its own time.

What a step has found when it is ended, by its time limit or by its caller, stays in the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, assert_never

from pipesim.answers.any_size import Families, build_by, require_trip_counts, trip_counts
from pipesim.answers.budget import Budget, BudgetSpentError, watch_builds
from pipesim.answers.counterexample import (
    FEW_STATES,
    MOST_TRIES,
    at_size,
    fails_so,
)
from pipesim.answers.every_cta.launches import OtherLaunches, Place
from pipesim.answers.every_size.claims import EverySize
from pipesim.answers.every_size.classes import AnyWord
from pipesim.answers.every_size.words import words_that_decide
from pipesim.answers.failures import CheckQuestion, Failures, FindingsOfCtas, Keyed
from pipesim.answers.global_memory.grid_memory import (
    INSIDE,
    ORDER,
    GridMemory,
    MeetingInside,
    is_on_global_memory,
    with_accesses,
    with_global_memory,
)
from pipesim.answers.global_memory.judge import judge, uses_global_memory
from pipesim.answers.progress import SILENT, Progress, Unit
from pipesim.answers.views.check import (
    CheckReport,
    CheckStep,
    Counterexample,
    CutBy,
    LeftOut,
    NearbyValues,
    ProvedRange,
    ProvedTogether,
)
from pipesim.answers.views.conclusion import VerdictScope, heading, scope_of
from pipesim.findings.catalog import looked_for
from pipesim.model.coverage import ON_GLOBAL, Assumed, Assumption, NotJudged, NotJudgedKind
from pipesim.model.finding import Advisory, Verdict
from pipesim.model.program import Program
from pipesim.model.words import TURNS
from pipesim.process.limits import Limit, LimitReachedError
from pipesim.process.watch import current
from pipesim.prove.any_size.family import EveryValue, SomeValues
from pipesim.prove.any_size.laps import is_same
from pipesim.prove.assumed import assumed_by
from pipesim.prove.check import Check, How, unknown
from pipesim.prove.check import check as prove
from pipesim.prove.counterexample.confirm import carry_over
from pipesim.prove.counterexample.leftovers import Leftover, leftovers
from pipesim.prove.counterexample.leftovers import advisories as left_over
from pipesim.prove.counterexample.words import doubt_line
from pipesim.targets import Target

if TYPE_CHECKING:
    from pipesim.ptx.emulation import Kernel

_EXPLAINED = (
    CheckStep.SMALLEST,
    CheckStep.SCHEDULE,
    CheckStep.CORRECTIONS,
    CheckStep.HIDDEN,
    CheckStep.OTHERS,
)
_ENDED = {Limit.TIME: How.OUT_OF_TIME, Limit.MEMORY: How.OUT_OF_MEMORY}
_NO_VERDICT = (*_ENDED.values(), How.STOPPED, How.SOME_CTAS, How.SOME_CONTENTS)
_CUT = {Limit.TIME: CutBy.TIME, Limit.MEMORY: CutBy.MEMORY}
_WORSE = (Verdict.PROVED, Verdict.UNKNOWN, Verdict.REFUTED)
_MOST_BESIDE = 3  #: kinds of CTAs beside the first refuted one whose own findings are explained
_WIDENED = (CheckStep.LEFTOVERS, CheckStep.SIZES)


class SteppedCheck:
    """The check of one program: :meth:`verdict`, then :meth:`details`; :meth:`report` at any time after the first."""

    def __init__(self, asked: CheckQuestion, budget: Budget | None = None, progress: Progress = SILENT) -> None:
        self._asked = asked
        self._budget = budget or Budget()
        self._progress = progress
        self._found: Check | None = None
        self._failures = Failures(asked, unknown(asked.program, How.STOPPED))
        self._left: tuple[Advisory, ...] = ()
        self._leftovers: tuple[Leftover, ...] = ()
        self._left_of: Program | None = None
        self._ranges: list[ProvedRange] = []
        self._nearby: tuple[NearbyValues, ...] = ()
        self._together: ProvedTogether | None = None
        self._due: list[CheckStep] = []  # steps that have not begun
        self._now: CheckStep | None = None
        self._units = (0, 0)
        self._operations = 0  # of the program that the next unit of work is about
        self._left_out: list[LeftOut] = []
        self._assumed: tuple[Assumed, ...] = ()
        self._others = OtherLaunches(asked.target)
        self._findings = FindingsOfCtas(self._others)
        self._beside: list[tuple[SteppedCheck, Place]] = []  # of other CTAs that have findings of their own
        self._size: Mapping[str, int] = {}  # settings of what is not proved, of another size than was asked for
        self._cut: Limit | None = None

    def verdict(self) -> CheckReport:
        """What is known for every schedule: the report as far as the verdict goes, without what is wrong."""
        asked = self._asked
        if asked.any_words and asked.target.kernel is None:
            require_trip_counts([each.name for each in asked.any_words], asked.target, asked.params, asked.program)
        every = EverySize(asked.target, asked.any_words if asked.target.kernel is not None else ())
        with self._progress.check_step(asked.program.name, CheckStep.VERDICT):
            by_laps = self._by_laps()
            found = None if by_laps is not None else self._beyond_the_limit()
            if found is None:
                found = self._in_every_order(by_laps or self._proof(self._asked.program))
                if asked.target.kernel is not None and self._cut is None:
                    found = self._in_other_launches(found)
        whole = self._cut is None and by_laps is None  # it was followed to its end
        if asked.target.kernel is not None and whole:
            found = self._with_sizes_nearby(asked.target.kernel.kernel, found)
        if found.verdict is Verdict.PROVED and asked.any_words and asked.target.kernel is None:
            found = self._at_any_trips(found)
        elif found.verdict is Verdict.PROVED and asked.any_words:
            found = self._at_every_size(found, every)
        if found.verdict is Verdict.UNKNOWN and found.how not in _NO_VERDICT:
            self._step(CheckStep.SMALLER)
        if asked.quick:
            self._leave_out(CutBy.NOT_ASKED)
        return self._build_report(())

    def _by_laps(self) -> Check | None:
        """The verdict on a kernel of which laps are left out, if it is proved; else the check is about as much of it as
        is followed.
        """
        asked = self._asked
        if not asked.program.laps:
            return None
        found = self._proof(asked.program)
        if found.verdict is Verdict.PROVED or self._cut is not None:
            self._asked = replace(asked, program=asked.program.with_laps)
            return found
        target = asked.target.followed
        self._asked = replace(asked, target=target, program=target.build(grid=asked.ctas))
        self._others = OtherLaunches(target)
        self._findings = FindingsOfCtas(self._others)
        return None

    def _with_sizes_nearby(self, kernel: Kernel, first: Check) -> Check:
        """The verdict where CTAs may meet in global memory. If it is the one before that, also for values nearby."""
        found = first if first.verdict is Verdict.REFUTED else self._on_global_memory(first)
        same = found.verdict is first.verdict is not Verdict.UNKNOWN and self._cut is None
        if same and not self._talk and not self._asked.any_words:
            from pipesim.answers.every_size.nearby import values_nearby  # of kernels alone

            self._nearby = values_nearby(kernel, self._others.looked_at)
        return found

    def _in_every_order(self, first: Check) -> Check:
        """The verdict on a description in each order of the atomics whose answers decide; the check continues about the
        first that is not proved.
        """
        asked, kind, found = self._asked, NotJudgedKind.WORD_ORDERS, first
        open_ = [str(asked.params.get(TURNS, 0))]
        if first.how is How.SOME_ORDERS and asked.target.program is None:
            for order in open_:
                if not order.isdecimal():
                    found = first
                    break
                params = {**asked.params, TURNS: int(order)} if int(order) or TURNS in asked.params else asked.params
                program = asked.program if order == open_[0] else asked.target.build(params, grid=asked.ctas)
                open_ += [each for each in program.coverage.names_of(kind) if each not in open_]
                program = replace(program, coverage=program.coverage.judging(kind))
                found = self._proof(program)
                if found.verdict is not Verdict.PROVED:
                    self._asked = replace(asked, params=params, program=program)
                    break
                self._assumed += (*program.coverage.assumed, *assumed_by(program, by_search=found.how is How.SEARCH))
            else:
                coverage = asked.program.coverage.judging(kind)
                self._asked = replace(asked, program=replace(asked.program, coverage=coverage))
        made = self._assumed if found.verdict is Verdict.PROVED else ()
        self.take(found)
        self._assumed = tuple(dict.fromkeys((*self._assumed, *made)))
        return found

    def _proof(self, program: Program) -> Check:
        """The verdict on a program; unknown where a limit is reached."""
        try:
            return prove(program, self._asked.max_states)
        except LimitReachedError as reached:
            current().resume()
            self._cut = reached.limit
            return unknown(program, _ENDED[reached.limit])

    def _beyond_the_limit(self) -> Check | None:
        """The verdict on a kernel that runs longer than is followed, if it is refuted at a smaller value of a word."""
        asked = self._asked
        if asked.target.kernel is None or not asked.target.kernel.limited or asked.any_words:
            return None
        for name, value in words_that_decide(asked.target.kernel.kernel).items():
            every = EverySize(asked.target, (AnyWord(name, 1, value),))
            found = self._at_every_size(unknown(asked.program, How.CUT), every)
            if found.verdict is Verdict.REFUTED:
                return found
            self._asked, self._ranges, self._assumed = asked, [], ()
        return None

    def _at_any_trips(self, proved: Check) -> Check:
        """The verdict on a description where trip counts that were named have other values, if it is refuted there."""
        asked = self._asked
        self._step(CheckStep.SIZES)
        self._due.remove(CheckStep.SIZES)
        wrong = {each.parameter: each.fails for each in self._ranges if each.refuted}
        for name, low, high, _ in asked.any_words:
            at = max(low, wrong.get(name, low))  # a value that is asked about and may fail
            if name in wrong and (high is None or at <= high):
                params = {**asked.params, name: at}
                program = asked.target.build(params, grid=asked.ctas)
                found = self._proof(program)
                if found.verdict is not Verdict.PROVED:
                    self._asked, self._ranges, self._together = replace(asked, params=params, program=program), [], None
                    self.take(found)
                    return found
        return proved

    def _at_every_size(self, proved: Check, every: EverySize) -> Check:
        """The verdict on the same kernel with other values of the words that may have any, if it is not proved.

        With that verdict the check continues about the kernel as it is then. A limit leaves it unknown.
        """
        asked = self._asked
        for program, settings in every:
            found = self._proof(program)
            if found.verdict is not Verdict.PROVED:
                target, self._size = every.target(settings), settings
                self._asked = replace(asked, target=target, program=target.build(grid=asked.ctas))
                self.take(found)
                return found
            self._assumed += (*program.coverage.assumed, *assumed_by(program, by_search=found.how is How.SEARCH))
        if not self._talk:
            self._ranges, self._together = list(every.ranges), every.together
        return proved

    @property
    def _talk(self) -> bool:
        """Whether CTAs wait for each other by words of global memory, which is looked at for the given values alone."""
        return bool(self._others.together.words or self._others.together.why_not)

    def _in_other_launches(self, first: Check) -> Check:
        """The verdict on the same kernel in all CTAs, and where other CTAs leave it fewer tiles.

        The check continues about the kernel as it is where it is refuted first, else where it is unknown first. If it
        is refuted elsewhere with other findings, these are checks of their own. A limit leaves unknown what no run
        refutes.
        """
        asked, others, worst, states = self._asked, self._others, first, 0
        others.begin(first.verdict)
        self._findings.add(asked.program, first.refutations)
        try:
            for target in others:
                program = target.build(grid=asked.ctas)
                proved = worst.verdict is Verdict.PROVED
                most = asked.max_states if proved else max(FEW_STATES, asked.max_states - states)
                found = prove(program, most)
                if program.laps and found.verdict is not Verdict.PROVED:
                    target = target.followed
                    program = target.build(grid=asked.ctas)
                    found = prove(program, most)
                states += found.states
                others.judge(found.verdict)
                there = replace(asked, target=target, program=program)
                new = self._findings.add(program, found.refutations)
                if _WORSE.index(found.verdict) > _WORSE.index(worst.verdict):
                    self._asked, worst = there, found
                    others.settle()
                    self.take(found)
                elif new:
                    self._add_beside(there, found)
                elif proved:
                    by_search = found.how is How.SEARCH
                    self._assumed += (*program.coverage.assumed, *assumed_by(program, by_search=by_search))
        except LimitReachedError as reached:
            current().resume()
            self._cut = reached.limit
            if worst.verdict is Verdict.PROVED:
                worst = unknown(asked.program, _ENDED[reached.limit])
                self.take(worst)
            self._left_out.append(LeftOut(CheckStep.CTAS, _CUT[reached.limit]))
        else:
            if others.left_out and worst.verdict is Verdict.PROVED:
                how = How.SOME_CONTENTS if others.contents else How.SOME_CTAS
                worst = replace(worst, verdict=Verdict.UNKNOWN, how=how)
                self.take(worst)
            elif others.left_out:
                self._left_out.append(LeftOut(CheckStep.CTAS, CutBy.WORK))
        return worst

    def _on_global_memory(self, first: Check) -> Check:
        """The verdict where CTAs may meet in global memory; what is said of it is part of the program's coverage."""
        asked = self._asked
        assert asked.target.kernel is not None
        kernel = asked.target.kernel.kernel
        if not uses_global_memory(kernel):
            return first
        try:
            judged = judge(kernel)
            for met in () if judged.races else judged.inside:
                wrong, judged = self._inside_a_cluster(met, judged)
                if wrong is not None:
                    return wrong
            program = with_global_memory(asked.program, kernel, judged)
        except LimitReachedError as reached:
            current().resume()
            self._cut = reached.limit
            self._left_out.append(LeftOut(CheckStep.CTAS, _CUT[reached.limit]))
            return first
        target = replace(asked.target, program=program, kernel=replace(asked.target.kernel, program=program))
        self._asked = replace(asked, program=program, target=target)
        if len(program.coverage.forbidden) > len(asked.program.coverage.forbidden):
            found = self._proof(program)
        elif first.verdict is Verdict.PROVED and Assumption.BUFFERS in program.strictness & _made(program):
            found = unknown(program, How.ASSUMES)
        else:
            found = first
        made = self._assumed if found.verdict is Verdict.PROVED else ()  # of other CTAs, and of CTAs together
        self.take(found)
        self._assumed = tuple(dict.fromkeys((*self._assumed, *made)))
        return found

    def _inside_a_cluster(self, met: MeetingInside, judged: GridMemory) -> tuple[Check | None, GridMemory]:
        """The verdict where warps of one cluster access the same bytes of global memory in any order, None elsewhere;
        and what is known then.

        With it the check continues about the program that has these accesses.
        """
        asked = self._asked
        assert asked.target.kernel is not None
        made = with_accesses(asked.target.kernel.kernel, met)
        program = with_global_memory(made.program, made.kernel, judged).with_strictness(asked.program.strictness)
        found = prove(program, FEW_STATES)
        wrong = tuple(each for each in found.refutations if is_on_global_memory(program, each))
        if not wrong or met.told:
            if found.verdict is not Verdict.PROVED or not met.everywhere:
                judged = judged.with_left_open(met.positions, INSIDE)
            return None, replace(judged, equal=judged.equal | (met.positions & made.equal_stores))
        made = replace(made, program=program)
        target = asked.target.with_settings({"cta": met.cta} if met.cta else {}, made)
        self._asked = replace(asked, target=replace(target, program=program, kernel=made), program=program)
        found = replace(found, verdict=Verdict.REFUTED, how=How.SCHEDULE, refutations=wrong)
        self.take(found)
        return found, judged

    def _add_beside(self, there: CheckQuestion, found: Check) -> None:
        """A check of other CTAs, which have a finding that those before do not have."""
        in_full = not there.quick and len(self._beside) < _MOST_BESIDE
        beside = SteppedCheck(replace(there, quick=not in_full), self._budget, self._progress)
        beside.take(found)
        self._beside.append((beside, self._others.place))
        if not there.quick and not in_full:
            self._left_out.append(LeftOut(CheckStep.CTAS, CutBy.WORK, _MOST_BESIDE))

    @property
    def has_verdict(self) -> bool:
        """True if there is something to report."""
        return self._found is not None

    @property
    def cut(self) -> Limit | None:
        """The limit of the whole work that was reached, so that nothing more is to be done."""
        return self._cut

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The steps that did not finish, each once."""
        return tuple(
            dict.fromkeys((*self._left_out, *(each for beside, _ in self._beside for each in beside.left_out)))
        )

    def details(self) -> None:
        """Carry out the steps that are left. A KeyboardInterrupt reaches the caller, who may ask for the report."""
        while self._due:
            self._step(self._due.pop(0))
        for beside, _ in self._beside[: 0 if self._asked.quick else _MOST_BESIDE]:
            if self._cut is None:
                beside.details()
                self._cut = beside.cut

    def interrupt(self) -> None:
        """Whoever drives the check has ended it: what is left of it is left out, and a verdict not reached unknown."""
        if self._found is None:
            self.take(unknown(self._asked.program, How.STOPPED))
        if self._now is not None:
            self._left_out.append(LeftOut(self._now, CutBy.INTERRUPTED, *self._units))
            self._now = None
        self._leave_out(CutBy.INTERRUPTED)
        for beside, _ in self._beside:
            beside.interrupt()

    def report(self) -> CheckReport:
        """All that is known now."""
        if self._others.about[0] >= 0:
            places = ((self, self._others.about), *self._beside)
            return self._build_report(self._findings.merged((check.shown(), place) for check, place in places))
        return self._build_report(replace(shown, settings=self._size) for _, shown in self.shown())

    def shown(self) -> Iterator[Keyed]:
        """The findings of the program itself."""
        return self._failures.shown(self._left_out)

    def _build_report(self, wrong: Iterable[Counterexample]) -> CheckReport:
        asked, found = self._asked, self._found
        assert found is not None, "there is a verdict"
        return CheckReport(
            heading=heading(asked.program),
            verdict=found.verdict,
            how=found.how,
            operations=found.operations,
            phases=found.phases,
            states=found.states,
            doubts=tuple(doubt_line(asked.program, doubt) for doubt in found.doubts),
            refutations=tuple(wrong),
            ranges=tuple(self._ranges),
            together=self._together,
            nearby=self._nearby,
            advisories=() if found.how in _NO_VERDICT else looked_for(asked.program) + self._left,
            also=self._failures.also,
            left_out=self.left_out,
            scope=self._scope(),
            kinds=() if self._size else self._others.kinds(),
            undecided=self._others.undecided or bool(asked.any_words and found.refutations) or self._some_values,
            open_word=self._others.open_word,
            cut=self._cut,
        )

    def _is_left_open(self, each: NotJudged) -> bool:
        """Whether it is also not judged where all CTAs of the grid are followed together."""
        talk, kernel = self._others.together, self._asked.target.kernel
        followed = talk.sizes[-1] if talk.sizes and not talk.not_judged else 0
        whole = kernel is not None and followed >= prod(kernel.kernel.launch.grid)
        return not (whole and each.kind in ON_GLOBAL and all(name.endswith(ORDER) for name in each.names))

    @property
    def _some_values(self) -> bool:
        """Whether every value of a word was asked for, and only some are proved."""
        found = {each.parameter: each for each in self._ranges}

        def is_answered(word: AnyWord) -> bool:
            shown = found.get(word.name)
            if shown is None:
                return False
            return shown.is_every or (word.high is not None and shown.least <= word.low <= word.high <= shown.last)

        proved = self._found is not None and self._found.verdict is Verdict.PROVED
        return proved and not all(map(is_answered, self._asked.any_words))

    # steps

    def _step(self, step: CheckStep) -> None:
        """Carry out a step, as far as there is time for it."""
        self._now, self._units = step, (0, 0)
        self._operations = sum(map(len, self._asked.program.code))
        self._budget.start()
        with self._progress.check_step(self._asked.program.name, step) as tell:

            def unit(done: int, of: int) -> None:
                self._units = done, of
                tell(done, of)
                self._budget.ask(self._operations)

            try:
                self._work(step)(unit)
            except BudgetSpentError as spent:
                self._left_out.append(LeftOut(step, spent.by, *self._units))
            except LimitReachedError as reached:  # that of the whole protocol: nothing more is done for it
                current().resume()
                self._cut = reached.limit
                self._left_out.append(LeftOut(step, _CUT[reached.limit], *self._units))
                self._leave_out(_CUT[reached.limit])
        self._now = None

    def take(self, found: Check) -> None:
        """What is known about every schedule, and what is to be done about it."""
        asked = self._asked
        self._found, self._failures = found, Failures(asked, found)
        if found.verdict is Verdict.PROVED:
            of, self._left_of = self._left_of, asked.program
            if of is None or of.cut != asked.program.cut or not is_same(of, asked.program):
                self._leftovers = leftovers(asked.program)
        self._assumed = self._assumed_by(asked.program, by_commit_order=found.by_commit_order)
        self._due = list(_EXPLAINED if found.refutations else _WIDENED if found.verdict is Verdict.PROVED else ())

    def _leave_out(self, why: CutBy) -> None:
        self._left_out += [LeftOut(step, why) for step in self._due]
        self._due = []

    def _work(self, step: CheckStep) -> Callable[[Unit], None]:
        match step:
            case CheckStep.VERDICT | CheckStep.CTAS | CheckStep.SMALLER:
                return self._by_smaller
            case CheckStep.SMALLEST:
                return self._failures.lower
            case CheckStep.SCHEDULE:
                return self._failures.shorten
            case CheckStep.CORRECTIONS:
                return self._failures.correct
            case CheckStep.HIDDEN:
                return self._failures.look_behind
            case CheckStep.OTHERS:
                return self._failures.look_for_others
            case CheckStep.LEFTOVERS:
                return self._look_for_leftovers
            case CheckStep.SIZES:
                return self._look_at_sizes
            case _:
                assert_never(step)

    def _by_smaller(self, unit: Unit) -> None:
        """A fault of a smaller size, if its schedule fails at this one as well; else what is known already."""
        asked, found = self._asked, self._found
        assert found is not None
        values = {**asked.target.defaults, **asked.params}
        names = trip_counts(asked.target, asked.params, asked.program)
        sizes = [(name, value) for name in names for value in range(min(values[name], MOST_TRIES))]
        for n, (name, value) in enumerate(sizes):
            unit(n, len(sizes))
            smaller = at_size(asked.target, {**asked.params, name: value}, FEW_STATES)
            if smaller is None or not fails_so(smaller[1], None):
                continue
            shown = [carry_over(asked.program, each.schedule) for each in smaller[1].refutations]
            wrong = tuple(each for each in shown if each is not None)
            if wrong:
                self.take(replace(found, verdict=Verdict.REFUTED, how=How.SCHEDULE, refutations=wrong))
                return

    def _look_for_leftovers(self, unit: Unit) -> None:
        unit(0, 1)
        assert self._found is not None
        self._left = left_over(self._asked.program, self._leftovers)

    def _look_at_sizes(self, unit: Unit) -> None:
        """The values of each trip count that are proved; making a program of another size is a unit of work."""
        asked, made = self._asked, 0
        if asked.target.kernel is not None or asked.program.words_cta >= 0:
            return  # a kernel's words are looked at with the verdict; of a description in which CTAs talk one size is

        def one_more(operations: int) -> None:
            nonlocal made
            self._operations = operations
            unit(made, 0)
            made += 1

        target = watch_builds(asked.target, one_more)
        by_commit_order = self._found is None or self._found.by_commit_order or self._found.how is How.SEARCH
        families = Families(target, asked.params, asked.program, by_commit_order=by_commit_order)
        shown: tuple[EveryValue | SomeValues, ...] = ()
        for most in range(1, asked.most_ranges + 1):  # one after the other: what is known when time is up stays
            shown = families.ranges(most)
            if len(shown) < most:
                break
            self._ranges.append(families.proved(shown[-1]))
            self._assume_for_sizes(target, shown[-1], families.by_commit_order)
        self._together = families.together(shown)

    def _assume_for_sizes(self, target: Target, shown: EveryValue | SomeValues, by_commit_order: set[str]) -> None:
        """A claim about every value may rest on an assumption that the size asked for does not need."""
        if not isinstance(shown, EveryValue) or Assumption.PATTERN in self._asked.program.strictness:
            return
        repeats = Assumed(Assumption.PATTERN, f"{shown.parameter}: sizes beyond {shown.checked:,}")
        more, made = [repeats], {each.kind for each in self._assumed}
        commits = shown.parameter in by_commit_order and Assumption.COMMITS not in made
        if Assumption.PROXIES not in made or commits:
            larger = build_by(target, self._asked.params, shown.parameter)(shown.checked)
            more += [] if larger is None else self._assumed_by(larger, by_commit_order=commits)
        self._assumed = tuple(dict.fromkeys((*self._assumed, *more)))

    def _assumed_by(self, program: Program, *, by_commit_order: bool) -> tuple[Assumed, ...]:
        found = self._found
        if found is None or found.verdict is not Verdict.PROVED:
            return ()
        left = self._leftovers if program is self._asked.program else None
        return assumed_by(program, by_search=found.how is How.SEARCH, left=left, by_commit_order=by_commit_order)

    def _scope(self) -> VerdictScope:
        proved = self._found is not None and self._found.verdict is Verdict.PROVED
        one_size = proved and not (self._ranges and all(each.is_every for each in self._ranges))
        every = proved and self._others.complete
        policies = self._others.checked_with
        scope = scope_of(self._asked.program, self._assumed, policies, one_size=one_size, every_cta=every)
        program = self._asked.program
        if program.words_cta >= 0 and self._asked.target.kernel is None:
            names = dict.fromkeys(each.name for n, each in enumerate(program.barriers) if program.is_word(n))
            return replace(scope, together=(program.words_cta,), words=tuple(names))
        if not proved:
            return scope
        talk = self._others.together
        judged = talk.loops if talk.sizes and not talk.why_not else set()
        others = self._ranges or self._others.contents or self._asked.any_words
        more = self._asked.target.kernel is not None and bool(others)
        sizes = " at the size of the launch file" if more else ""
        open_sizes = [NotJudged(NotJudgedKind.OTHER_SIZES, 0)] if more and (scope.on_global or self._talk) else []
        return replace(
            scope,
            contents={} if self._talk else self._others.contents,
            any_tiles=self._others.any_tiles,
            together=tuple(talk.sizes),
            words=tuple(talk.words),
            meet=talk.meet,
            on_global=tuple(f"{each}{sizes}" for each in scope.on_global),
            assuming=(*(each for each in scope.assuming if each.what not in judged), *talk.assumed),
            not_judged=(*filter(self._is_left_open, scope.not_judged), *talk.not_judged, *open_sizes),
        )


def _made(program: Program) -> frozenset[Assumption]:
    return frozenset(each.kind for each in program.coverage.assumed)
