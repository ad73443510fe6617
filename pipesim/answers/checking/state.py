"""What a check knows so far, and its report. Its verdict may be about another size or CTA than was asked for."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from math import prod

from pipesim.answers.checking.failures import CheckQuestion, Failures, FindingsOfCtas
from pipesim.answers.every_cta.launches import OtherLaunches
from pipesim.answers.every_size.classes import AnyWord
from pipesim.answers.global_memory.grid_memory import ORDER
from pipesim.answers.views.check import (
    CheckReport,
    CheckStep,
    Counterexample,
    CutBy,
    LeftOut,
    NearbyValues,
    ProvedTogether,
)
from pipesim.answers.views.conclusion import Basis, VerdictScope, heading, scope_of
from pipesim.findings.catalog import KINDS
from pipesim.model.coverage import ON_GLOBAL, Assumed, Coverage, NotJudged, NotJudgedKind
from pipesim.model.finding import Advisory, Deadlock, Verdict
from pipesim.model.program import Program
from pipesim.process.limits import Limit, LimitReachedError
from pipesim.process.watch import current
from pipesim.prove.any_size.family import ProvedRange, Stop
from pipesim.prove.any_size.laps import is_same
from pipesim.prove.assumed import assumed_by
from pipesim.prove.check import Check, How, unknown
from pipesim.prove.counterexample.leftovers import Leftover, leftovers
from pipesim.prove.counterexample.words import doubt_line

ENDED = {Limit.TIME: How.OUT_OF_TIME, Limit.MEMORY: How.OUT_OF_MEMORY}
NO_VERDICT = (*ENDED.values(), How.STOPPED, How.SOME_CTAS, How.SOME_CONTENTS)
_CUT = {Limit.TIME: CutBy.TIME, Limit.MEMORY: CutBy.MEMORY}
_EXPLAINED = (CheckStep.SMALLEST, CheckStep.SCHEDULE, CheckStep.CORRECTIONS, CheckStep.HIDDEN, CheckStep.OTHERS)
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
    data_laps: dict[str, None] = field(default_factory=dict)  #: places where data decides in what others do
    weakened: bool = False  #: the kernel has words by which its warps may talk, and what they order is not known

    def __post_init__(self) -> None:
        self.failures = Failures(self.asked, unknown(self.asked.program, How.STOPPED))
        self._left_of: Program | None = None
        self._rests: tuple[object, tuple[Assumed, ...]] = None, ()  # what the proof of a program rests on
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
        laps = (each for each in program.coverage.not_judged if each.kind is NotJudgedKind.DATA_LAPS)
        self.data_laps |= {name: None for each in laps for name in each.names}

    def assumed_by(self, program: Program, *, by_commit_order: bool) -> tuple[Assumed, ...]:
        """What the proof rests on; nothing where there is none."""
        found = self.found
        if found is None or found.verdict is not Verdict.PROVED:
            return ()
        by_search, events = found.how is How.SEARCH, program.coverage.dependent
        plain = program.with_coverage(Coverage(dependent=events)), program.cut, by_search, by_commit_order
        if plain != self._rests[0]:  # what is said of global memory changes nothing
            left = self.leftovers if program is self.asked.program else None
            made = assumed_by(program, by_search=by_search, left=left, by_commit_order=by_commit_order)
            self._rests = plain, made
        return self._rests[1]

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


def report_of(state: CheckState, wrong: Iterable[Counterexample], left_out: tuple[LeftOut, ...]) -> CheckReport:
    """All that is known now, with these findings and steps left out."""
    asked, found = state.asked, state.found
    assert found is not None, "there is a verdict"
    return CheckReport(
        heading=heading(asked.program),
        verdict=found.verdict,
        how=found.how,
        operations=found.operations,
        phases=found.phases,
        states=found.states,
        doubts=tuple(doubt_line(asked.program, doubt) for doubt in found.doubts),
        refutations=causes_first(tuple(wrong)),
        ranges=tuple(state.ranges),
        together=state.together,
        nearby=state.nearby,
        advisories=() if found.how in NO_VERDICT else looked_for(asked.program) + state.left,
        also=state.failures.also,
        left_out=left_out,
        scope=_scope(state),
        kinds=() if state.size else state.others.kinds(),
        undecided=state.others.undecided or bool(asked.any_words and found.refutations) or _some_values(state),
        open_word=state.others.open_word,
        cut=state.cut,
    )


def causes_first(wrong: tuple[Counterexample, ...]) -> tuple[Counterexample, ...]:
    """With each hang that is only possible after all that is certain, which may be its cause."""
    certain = [n for n, each in enumerate(wrong) if each.basis is Basis.CERTAIN and each.after is None]
    last = max(certain, default=-1)

    def place(n: int) -> tuple[int, bool]:
        hang = isinstance(wrong[n].finding, Deadlock) and n not in certain
        return (max(n, last), True) if hang else (n, False)

    return tuple(wrong[n] for n in sorted(range(len(wrong)), key=place))


def _not_judged(state: CheckState, own: tuple[NotJudged, ...]) -> Iterator[NotJudged]:
    """What is not judged in the program itself, with where data decides in the others."""
    mine = (each.names for each in own if each.kind is NotJudgedKind.DATA_LAPS)
    laps = dict.fromkeys(chain(*mine)) | state.data_laps
    yield from (e for e in own if e.kind is not NotJudgedKind.DATA_LAPS and _is_left_open(state, e))
    if laps:
        yield NotJudged(NotJudgedKind.DATA_LAPS, len(laps), tuple(laps))


def _is_left_open(state: CheckState, each: NotJudged) -> bool:
    """Whether it is also not judged where all CTAs of the grid are followed together."""
    talk, kernel = state.others.together, state.asked.target.kernel
    followed = talk.sizes[-1] if talk.sizes and not talk.not_judged else 0
    whole = kernel is not None and followed >= prod(kernel.kernel.launch.grid)
    return not (whole and each.kind in ON_GLOBAL and all(name.endswith(ORDER) for name in each.names))


def _some_values(state: CheckState) -> bool:
    """Whether every value of a word was asked for, and only some are proved."""
    found = {each.parameter: each for each in state.ranges}

    def is_answered(word: AnyWord) -> bool:
        shown = found.get(word.name)
        if shown is None:
            return False
        return shown.is_every or (word.high is not None and shown.least <= word.low <= word.high <= shown.last)

    proved = state.found is not None and state.found.verdict is Verdict.PROVED
    return proved and not all(map(is_answered, state.asked.any_words))


def _scope(state: CheckState) -> VerdictScope:
    proved = state.found is not None and state.found.verdict is Verdict.PROVED
    open_talk = state.found is not None and state.found.how in (How.OPEN_WORDS, How.OPEN_DATA)
    every_size = state.ranges and (state.asked.target.kernel is None or state.asked.any_words)  # else one of tiles
    one_size = proved and not (every_size and all(each.is_every for each in state.ranges))
    every = (proved or open_talk) and state.others.complete
    policies = state.others.checked_with
    scope = scope_of(state.asked.program, state.assumed, policies, one_size=one_size, every_cta=every)
    program = state.asked.program
    if program.words_cta >= 0 and state.asked.target.kernel is None:
        names = dict.fromkeys(each.name for n, each in enumerate(program.barriers) if program.is_word(n))
        return replace(scope, together=(program.words_cta,), words=tuple(names))
    talk = state.others.together
    if open_talk:
        return replace(scope, not_judged=(*scope.not_judged, *talk.not_judged))
    if not proved:
        return scope
    judged = talk.loops if talk.sizes and not talk.why_not else set()
    others = state.ranges or state.others.contents or state.asked.any_words
    more = state.asked.target.kernel is not None and bool(others)
    sizes = " at the size of the launch file" if more else ""
    open_sizes = [NotJudged(NotJudgedKind.OTHER_SIZES, 0)] if more and (scope.on_global or state.talk) else []
    return replace(
        scope,
        contents={} if state.talk else state.others.contents,
        any_tiles=0 if any(each.why is Stop.HANDED_OUT for each in state.ranges) else state.others.any_tiles,
        together=tuple(talk.sizes),
        words=tuple(talk.words),
        meet=talk.meet,
        any_ctas=talk.any_ctas,
        on_global=tuple(f"{each}{sizes}" for each in scope.on_global),
        assuming=(*(each for each in scope.assuming if each.what not in judged), *talk.assumed),
        not_judged=(*_not_judged(state, scope.not_judged), *talk.not_judged, *open_sizes),
    )


def looked_for(program: Program) -> tuple[Advisory, ...]:
    """The warnings that the operations of a program show by themselves, each kind, role and line once."""
    used = {op[0] for op in program.operations}
    found: dict[tuple[str, str, str], Advisory] = {}
    for kind in KINDS:
        if kind.look is not None and kind.of in used and (program.ctas > 1 or not kind.across_ctas):
            for note in kind.look(program):
                found.setdefault((note.kind, note.role, note.line), note)
    return tuple(found.values())
