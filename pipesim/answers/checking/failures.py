"""What is wrong with one program, in steps after the verdict: at small sizes, in few moves, and how to put it right.

What a step has found when it is ended stays.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pipesim.answers.checking.counterexample import (
    SmallestFailure,
    command_of,
    computing_of,
    corrections_of,
    counterexample_of,
    hidden_in_hang,
    led_past_of,
    names_of,
    origin_of,
    other_ends,
    shorten_refutation,
    with_led_past,
    without_unproved,
)
from pipesim.answers.every_cta.launches import OtherLaunches, Place
from pipesim.answers.every_size.classes import AnyWord
from pipesim.answers.progress import Unit
from pipesim.answers.views.check import CheckStep, Counterexample, LeftOut
from pipesim.model.coverage import NotJudgedKind
from pipesim.model.ending import Ending
from pipesim.model.finding import Deadlock, FaultKind, FaultReport, LedPast, Verdict
from pipesim.model.program import Program
from pipesim.model.words import TURNS
from pipesim.prove.check import MOST_STATES, Check
from pipesim.prove.check import check as prove
from pipesim.prove.refutation import Refutation, finding_key, is_of_any_kind, lines_of
from pipesim.prove.repair.behind import Hidden, elsewhere, hidden_by
from pipesim.prove.repair.correction import MOST_READ, MOST_TRIED, Correction
from pipesim.prove.repair.kinds import Repair
from pipesim.targets import Target

EVERY_RANGE = 1 << 10


@dataclass(frozen=True)
class CheckQuestion:
    """What is asked about a program.

    ``max_states`` are searched where one run does not decide. ``most_ranges``: trip counts of which every value is
    looked at; the others keep their values. ``quick``: the verdict alone. ``any_words``: words of a kernel's parameters
    of which the verdict is to hold for every value.
    """

    target: Target
    params: Mapping[str, int]
    program: Program
    ctas: int | None = None
    max_states: int = MOST_STATES
    most_ranges: int = EVERY_RANGE
    quick: bool = False
    any_words: tuple[AnyWord, ...] = ()


Keyed = tuple[Hashable, Counterexample]  #: a finding, and what is equal for the same finding in other CTAs

_SHORTENING = (CheckStep.SMALLEST, CheckStep.SCHEDULE)


class Failures:
    """The refutations of a program, and what explains them; each step is a method that takes its unit of work.

    ``also``: the other ways in which schedules of this size end.
    """

    def __init__(self, asked: CheckQuestion, found: Check) -> None:
        self.also: tuple[FaultKind | Ending, ...] = ()
        self._asked = asked
        self._found, self._given = found, found.refutations
        self._small = SmallestFailure(asked.target, asked.params, asked.program, found)
        self._wrong = list(found.refutations)
        self._shortened: set[int] = set()
        self._corrections: dict[int, tuple[Correction, ...]] = {}
        self._computing: dict[int, str] = {}
        self._led_past: dict[int, tuple[LedPast, ...]] = {}
        self._hidden: Hidden | None = None
        self._elsewhere = 0  # of the findings, the last ones

    def lower(self, unit: Unit) -> None:
        """Find the smallest sizes that still fail in one of the same ways."""
        try:
            self._small.lower(unit)
        finally:
            self._wrong = list(self._small.found.refutations)

    def shorten(self, unit: Unit) -> None:
        """Leave moves out of each schedule that it can spare."""
        for n, refuted in enumerate(self._wrong):
            unit(n, len(self._wrong))
            self._wrong[n] = shorten_refutation(self._small.program, refuted)
            self._shortened.add(n)

    def correct(self, unit: Unit) -> None:
        """Try changes that put all of it right: of the lowered sizes, which may fail otherwise, then as asked."""
        self._correct(unit)
        asked, small, wrong = self._asked, self._small, self._wrong
        few = sum(map(len, asked.program.code)) <= MOST_READ
        if small.program is asked.program or any(self._corrections.values()) or not few or asked.program.words_cta >= 0:
            return
        self._small = SmallestFailure(asked.target, asked.params, asked.program, self._found)
        self._wrong = list(self._given)
        try:
            self._correct(unit)
        finally:
            if not any(self._corrections.values()):
                self._small, self._wrong = small, wrong
        if self._small is not small:
            self.shorten(unit)

    def _correct(self, unit: Unit) -> None:
        kernel, program = self._asked.target.editable, self._asked.program
        again = self._proved_with if program.words_cta >= 0 and self._asked.target.program is None else None
        other = self._small.another_size() if kernel is None else None
        words = self._asked.target.word_changes(self._asked.params) if again is not None else ()
        tried = False  # all that could correct any finding of a kernel; what does corrects all of it
        most = MOST_TRIED
        for n, refuted in enumerate(self._wrong):
            self._computing[n] = computing_of(refuted, kernel)
            past = led_past_of(self._small.program, refuted, kernel)
            self._led_past[n] = tuple(said for said, _ in past)
            branches = [branch for _, branch in past]
            known = next(filter(None, self._corrections.values()), ()) if kernel is not None else ()
            if not known and not (tried and is_of_any_kind(refuted)):
                small = self._small.program
                known = corrections_of(small, refuted, program, unit, kernel, branches, most, again, words, other)
                most = most if known else MOST_TRIED // 4  # it rarely is another change that suffices for the next one
                tried = tried or (kernel is not None and is_of_any_kind(refuted))
            self._corrections[n] = known

    def _proved_with(self, repair: Repair) -> bool:
        """Whether CTAs that talk by words are proved with a change of what they do, at both sizes."""
        target, sizes = self._asked.target, (self._small.sizes, self._asked.params)
        return all(_proved_with(target, each, repair) for each in (sizes if sizes[0] != sizes[1] else sizes[:1]))

    def look_behind(self, unit: Unit) -> None:
        """What is wrong beside a finding that no change corrects: with one, all that is wrong is explained."""
        small, asked = self._small, self._asked.program
        if not self._wrong or any(self._corrections.values()) or asked.coverage.stopped or asked.words_cta >= 0:
            return
        if asked.coverage.blocked:
            self._hidden = hidden_in_hang(self._wrong[0], asked, unit, self._asked.target.editable)
            return
        hidden, known = hidden_by(small.program, self._wrong[0], asked, unit), self._wrong[1:]
        if hidden is not None and finding_key(hidden.program, hidden.refuted) not in (
            finding_key(small.program, each) for each in known
        ):
            self._hidden = hidden
        else:
            self._add_elsewhere(elsewhere(small.program, small.found.doubts, self._wrong, unit))

    def look_for_others(self, unit: Unit) -> None:
        """How other schedules of this size end; those of other lines are findings of their own."""
        unit(0, 1)
        found = other_ends(self._small.program, self._wrong)
        same = self._hidden is not None or any(self._corrections.values())  # one mistake, or two that are named
        known = {line for each in self._wrong for line in lines_of(self._small.program, each)}
        apart = [each for each in found if not (same or known.intersection(lines_of(self._small.program, each)))]
        self._add_elsewhere(apart)
        self.also = tuple(each.kind for each in found if each not in apart)

    def look_beside(self, unit: Unit) -> None:
        """Findings at other lines, whether one change corrects them with those that are known or not."""
        small, hidden = self._small, self._hidden
        if self._asked.program.words_cta < 0:
            behind = finding_key(hidden.program, hidden.refuted) if hidden is not None else None
            found = elsewhere(small.program, small.found.doubts, self._wrong, unit)
            self._add_elsewhere(each for each in found if finding_key(small.program, each) != behind)

    def _add_elsewhere(self, found: Iterable[Refutation]) -> None:
        """Findings beside those that are known, which a waiver of these must not hide."""
        for each in found:
            self._wrong.append(shorten_refutation(self._small.program, each))
            self._shortened.add(len(self._wrong) - 1)
            self._elsewhere += 1

    def shown(self, left_out: Iterable[LeftOut]) -> Iterator[Keyed]:
        """The findings, each with what is known about it; ``left_out``: steps that did not finish."""
        given, sizes = self._given, None
        for n, refuted in enumerate(self._wrong):
            shown = self._counterexample(n, left_out)
            sizes = shown.at if sizes is None else sizes
            yield finding_key(self._small.program, given[n] if n < len(given) else refuted), shown
        if (hidden := self._hidden) is not None:
            shown = counterexample_of(hidden.program, hidden.refuted, sizes)
            key = finding_key(hidden.program, hidden.refuted)
            yield key, replace(shown, corrections=hidden.second, after=hidden.first)

    def _counterexample(self, n: int, left_out: Iterable[LeftOut]) -> Counterexample:
        """What is known about one way in which it fails."""
        asked, small = self._asked, self._small
        lowered = {name: value for name, value in small.sizes.items() if asked.params.get(name) != value}
        command = command_of(asked.target, small.sizes, asked.ctas)
        shown = counterexample_of(
            small.program, self._wrong[n], lowered, command, asked=asked.program, quick=asked.quick,
            kernel=asked.target.kernel,
        )  # fmt: skip
        cut = [each.step for each in left_out if each.step in _SHORTENING]
        unfinished = tuple(step for step in cut if step is not CheckStep.SCHEDULE or n not in self._shortened)
        found = self._corrections.get(n)
        about = (names_of(small.program, each) for m, each in enumerate(self._wrong) if m != n)
        beside = not found and any(not set(shown.names).isdisjoint(each) for each in about)
        finding = shown.finding
        finding = finding if found is None and not beside else without_unproved(finding, found or (), beside=beside)
        if isinstance(finding, FaultReport) and n in self._computing:
            finding = replace(finding, claim=finding.claim + self._computing[n])
        if isinstance(finding, Deadlock) and self._led_past.get(n):
            finding = with_led_past(finding, self._led_past[n])
        return replace(
            shown,
            finding=finding,
            corrections=found or (),
            unfinished=unfinished,
            origin=origin_of(asked.target.kernel, small.program, self._wrong[n]),
            elsewhere=n >= len(self._wrong) - self._elsewhere,
        )


class FindingsOfCtas:
    """In which CTAs which findings are. They are equal if they are of one kind, at the same lines."""

    def __init__(self, others: OtherLaunches) -> None:
        self._others = others
        self._places: dict[Hashable, list[Place]] = {}

    def add(self, program: Program, found: Iterable[Refutation]) -> bool:
        """Those of the last of the launches; whether one of them is new."""
        keys = {finding_key(program, each) for each in found}
        new = not keys <= self._places.keys()
        for key in keys:
            self._places.setdefault(key, []).append(self._others.place)
        return new

    def merged(self, found: Iterable[tuple[Iterable[Keyed], Place]]) -> Iterator[Counterexample]:
        """The findings at several places of the launch, without those that an earlier place has."""
        known: set[Hashable] = set()
        for shown, place in found:
            mine = list(shown)
            settings = self._others.settings_of(place)
            for key, each in mine:
                if key not in known:
                    at = self._places.get(key, [place])
                    yield replace(each, kinds=self._others.kinds_at(at), settings=settings)
            known |= {key for key, _ in mine}


def _proved_with(target: Target, params: Mapping[str, int], repair: Repair) -> bool:
    """Whether a description is proved with a change, in each order of the atomics whose answers decide."""
    kind, orders = NotJudgedKind.WORD_ORDERS, [str(params.get(TURNS, 0))]
    for order in orders:
        program = target.changed({**params, TURNS: int(order)}, repair) if order.isdecimal() else None
        if program is None:
            return False
        orders += [each for each in program.coverage.names_of(kind) if each not in orders]
        program = replace(program, coverage=program.coverage.judging(kind))
        if prove(program, max_states=1).verdict is not Verdict.PROVED:
            return False
    return True
