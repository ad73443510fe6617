"""What a check knows so far, and about which program: its verdict may be about another size or CTA than was asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pipesim.answers.checking.failures import CheckQuestion, Failures, FindingsOfCtas
from pipesim.answers.every_cta.launches import OtherLaunches
from pipesim.answers.views.check import CheckStep, CutBy, LeftOut, NearbyValues, ProvedRange, ProvedTogether
from pipesim.model.coverage import Assumed
from pipesim.model.finding import Advisory, Verdict
from pipesim.model.program import Program
from pipesim.process.limits import Limit, LimitReachedError
from pipesim.process.watch import current
from pipesim.prove.any_size.laps import is_same
from pipesim.prove.assumed import assumed_by
from pipesim.prove.check import Check, How, unknown
from pipesim.prove.counterexample.leftovers import Leftover, leftovers

ENDED = {Limit.TIME: How.OUT_OF_TIME, Limit.MEMORY: How.OUT_OF_MEMORY}
NO_VERDICT = (*ENDED.values(), How.STOPPED, How.SOME_CTAS, How.SOME_CONTENTS)
_CUT = {Limit.TIME: CutBy.TIME, Limit.MEMORY: CutBy.MEMORY}
_EXPLAINED = (
    CheckStep.SMALLEST,
    CheckStep.SCHEDULE,
    CheckStep.CORRECTIONS,
    CheckStep.HIDDEN,
    CheckStep.OTHERS,
)
_WIDENED = (CheckStep.LEFTOVERS, CheckStep.SIZES)


@dataclass
class CheckState:
    """What is known. ``due``: the steps that have not begun; ``left_out``: those that did not finish."""

    asked: CheckQuestion
    found: Check | None = None
    leftovers: tuple[Leftover, ...] = ()
    left: tuple[Advisory, ...] = ()  #: what the leftovers are about
    ranges: list[ProvedRange] = field(default_factory=list)
    nearby: tuple[NearbyValues, ...] = ()
    together: ProvedTogether | None = None
    due: list[CheckStep] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    assumed: tuple[Assumed, ...] = ()
    size: Mapping[str, int] = field(default_factory=dict)  #: settings of what is not proved: others were asked for
    cut: Limit | None = None  #: the limit of the whole work that was reached

    def __post_init__(self) -> None:
        self.failures = Failures(self.asked, unknown(self.asked.program, How.STOPPED))
        self._left_of: Program | None = None
        self.look_elsewhere()

    def look_elsewhere(self) -> None:
        """The other CTAs and launches are those of the target that is asked about now."""
        self.others = OtherLaunches(self.asked.target)
        self.findings = FindingsOfCtas(self.others)

    def take(self, found: Check) -> None:
        """What is known about every schedule, and what is to be done about it."""
        asked = self.asked
        self.found, self.failures = found, Failures(asked, found)
        if found.verdict is Verdict.PROVED:
            of, self._left_of = self._left_of, asked.program
            if of is None or of.cut != asked.program.cut or not is_same(of, asked.program):
                self.leftovers = leftovers(asked.program)
        self.assumed = self.assumed_by(asked.program, by_commit_order=found.by_commit_order)
        self.due = list(_EXPLAINED if found.refutations else _WIDENED if found.verdict is Verdict.PROVED else ())

    def take_beside(self, found: Check) -> None:
        """The same, where what was assumed for other programs is assumed as well."""
        made = self.assumed if found.verdict is Verdict.PROVED else ()
        self.take(found)
        self.assume(made)

    def assume(self, more: Iterable[Assumed]) -> None:
        """What the verdict rests on as well."""
        self.assumed = tuple(dict.fromkeys((*self.assumed, *more)))

    def assume_for(self, program: Program, found: Check) -> None:
        """What the proof of another program rests on."""
        self.assumed += (*program.coverage.assumed, *assumed_by(program, by_search=found.how is How.SEARCH))

    def assumed_by(self, program: Program, *, by_commit_order: bool) -> tuple[Assumed, ...]:
        """What the proof rests on; nothing where there is none."""
        found = self.found
        if found is None or found.verdict is not Verdict.PROVED:
            return ()
        left = self.leftovers if program is self.asked.program else None
        return assumed_by(program, by_search=found.how is How.SEARCH, left=left, by_commit_order=by_commit_order)

    def reach(self, reached: LimitReachedError, step: CheckStep | None = None, done: int = 0, of: int = 0) -> None:
        """A limit of the whole work is reached: nothing more is done, and the step is left out."""
        current().resume()
        self.cut = reached.limit
        if step is not None:
            self.left_out.append(LeftOut(step, _CUT[reached.limit], done, of))

    def leave_out(self, why: CutBy | Limit) -> None:
        """The steps that are due."""
        self.left_out += [LeftOut(step, _CUT[why] if isinstance(why, Limit) else why) for step in self.due]
        self.due = []

    @property
    def talk(self) -> bool:
        """Whether CTAs wait for each other by words of global memory, which is looked at for the given values alone."""
        return bool(self.others.together.words or self.others.together.why_not)
