"""Any trip count: one protocol at consecutive values of one parameter, shown right for every value there is.

A program of the family runs a loop, so at some point its canonical run repeats an earlier state, one lap on:
every barrier, every transfer under way, and all that the certificate remembers
(:mod:`pipesim.prove.happens_before.snapshot`). A program that has the same operations and a lap more then runs through
the same moments, some of them twice, and ends as the shorter one does. So it is enough

* to run every value up to the first that contains such a lap, and a lap's worth of values one lap more, the first of
  them two;
* that in each of these classes the longer programs are the shorter one with the lap again, items moving on evenly
  (:mod:`pipesim.prove.any_size.laps`).

What is assumed is that the protocol continues as it does at the values looked at. Some values far beyond the lap are
among these (:meth:`Family.far`), so that what happens only every so often is met; for one given value nothing is
assumed: :meth:`Family.covers` compares its program.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice

from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind
from pipesim.model.program import Program
from pipesim.prove.any_size.laps import (
    NUMBERINGS,
    Laps,
    Outline,
    each_holds,
    follows,
    has_laps_more,
    holds,
    is_longer_inside,
    is_same,
    items_are_even,
    place_laps,
    places,
)
from pipesim.prove.certificate.canonical import CanonicalRun, CanonicalSnapshot, is_again
from pipesim.prove.certificate.certificate import Certificate
from pipesim.prove.happens_before.snapshot import Lap
from pipesim.prove.memory_order.may_fail import memory_order

Build = Callable[[int], Program | None]  #: the program at a value, None where the protocol has none

MOST_OPERATIONS = 60_000  #: of the largest program that is run
_MOST_IN_ALL = 600_000  #: operations of all programs that are flattened
_PATIENCE = 24  #: a value up to which some number of values must be worth a lap
_TRIES = (6, 12, 18, 24, 36, 48, 72, 96, 192)  #: values at which a lap is looked for
_MOST_LAPS = 3  #: of one run that are looked into
_MOST_PAIRS = 1_000  #: of moments that are compared in one run
#: Values whose programs are compared with the laps, those worth most first. Their residues modulo 2 to 8, 12, 16, 24
#: and 32 differ, and the last residue of each is among them: what happens every so often is met wherever it begins.
_FAR = (95, 47, 79, 34, 64, 127, 100, 1_001)
_MOST_FAR = 60_000  #: operations of all these programs


class Stop(Enum):
    """Why a family has no verdict for every value. The phrase is what reports say."""

    NO_LOOP = "its operations do not grow by one lap at a single place"
    NO_GROWTH = "its operations do not grow among the values that are looked at"
    NO_REPEAT = "no state of its run repeats an earlier one"
    NOT_RIGHT = "one run does not represent every schedule"
    TOO_LARGE = "its programs are too large to be checked individually"
    OTHERWISE = "the given program does not continue the pattern"
    CHANGES = "its pattern changes there"
    RULED_OUT = "that the pattern continues may not be assumed"
    NOT_SHOWN = "the code does not show that what repeats there always does"
    HANDED_OUT = "other tiles that the kernel may be handed out are not looked at there"


@dataclass(frozen=True)
class ProvedRange:
    """The values of a trip count that are proved, the other parameters being as they are.

    ``least`` to ``checked`` each by a run of its own (-1: none); below ``least`` is a value that the protocol does not
    have, or nothing. ``lap``: beyond ``first`` this many more iterations are one more lap, so that every value from
    ``least`` on is proved; 0 if it is not known to be so, and then ``why``. At the values ``far`` the programs were
    compared with the laps, operation by operation. ``others``: the values of the other trip counts, at which this
    holds. ``fails``: the value met that is not proved, or with :attr:`Stop.CHANGES` the one that is another program
    than the laps make; -1 if none was met; ``refuted``: how a schedule of that one fails, None if none is known.
    ``step``: of a word of a kernel's parameters, whose values up to ``most`` are this far apart; 0 of a trip count.
    That its lap is always the same is shown by what the kernel computes.
    """

    parameter: str
    least: int
    checked: int
    first: int = -1
    lap: int = 0
    fails: int = -1
    why: Stop | None = None
    refuted: FaultKind | Ending | None = None
    far: tuple[int, ...] = ()
    others: Mapping[str, int] = field(default_factory=dict)
    step: int = 0
    most: int = -1

    @property
    def is_every(self) -> bool:
        """Whether every value is proved: one by one, or with those that repeat."""
        return self.why is None and (self.lap > 0 or (self.step > 0 and self.checked >= self.most))

    @property
    def last(self) -> int:
        """The last value of a word up to which all are proved."""
        return self.most if self.lap else self.checked

    def without_laps(self, why: Stop, fails: int = -1) -> "ProvedRange":
        """The values that were run alone."""
        return ProvedRange(self.parameter, self.least, self.checked, fails=fails, why=why)


class Family:
    """The programs of one parameter's values, flattened, run and compared on request.

    ``right``: whether one run represents every schedule of programs, by what is the same object in other families.
    ``shown``: that the pattern continues is shown otherwise, so that programs which do not grow are one as well.
    """

    def __init__(
        self, parameter: str, build: Build, most_operations: int = MOST_OPERATIONS,
        right: dict[int, tuple[Program, bool]] | None = None, *, shown: bool = False,
    ) -> None:  # fmt: skip
        self._parameter = parameter
        self._build = build
        self._most = most_operations
        self._known = {} if right is None else right
        self._shown = shown
        self._outlines: dict[int, Outline | None] = {}
        self._right: dict[int, bool] = {}
        self._alike: dict[int, list[int]] = defaultdict(list)  # further numbers of values that are worth the same
        self._laps: dict[int, Laps] = {}  # of the programs that others are compared with, by their values
        self._numbering = NUMBERINGS[0]  # that of items by which they are compared
        self._spent = 0

    def verdict(self) -> ProvedRange:
        """Every value, or as far as it was shown."""
        why = Stop.NO_REPEAT
        for top in _TRIES:
            outline = self._outline(top)
            if outline is None:
                return self._as_far(Stop.NO_LOOP)
            if sum(outline.lengths) > self._most or self._spent > _MOST_IN_ALL:
                return self._as_far(Stop.TOO_LARGE)
            if not self._holds(top):
                return self._as_far(Stop.NOT_RIGHT)
            worth = self._worth(top, outline)
            for found in self._try_laps(top, outline, worth):
                if isinstance(found, ProvedRange):
                    return found
                if found is Stop.NOT_RIGHT:
                    return self._as_far(found)
                why = found
            if self._shown and (every := self._without_growth(top)) is not None:
                return every
            if not worth and why is Stop.NO_LOOP and top >= _PATIENCE:
                shorter = self._outline(top // 2)
                grown = shorter is None or shorter.lengths != outline.lengths
                return self._as_far(why if grown else Stop.NO_GROWTH)
        return self._as_far(why)

    def covers(self, every: ProvedRange, value: int, program: Program) -> bool:
        """True if the program at ``value`` is one of those that ``every`` speaks of, operation by operation."""
        if value <= every.checked:
            checked = self._outline(value)
            return checked is not None and is_same(checked.program, program)
        more, rest = divmod(value - every.first, every.lap)
        shorter, short = self._outline(every.first + rest), self._outline(every.first + rest + every.lap)
        assert shorter is not None
        assert short is not None
        three = shorter, short, Outline(program)
        return follows(three, self._laps[every.first + rest], more - 1, self._numbering)

    def laps_at(self, value: int) -> Laps:
        """The laps of the program at a value that others are compared with."""
        return self._laps.get(value, ())

    def far(self, every: ProvedRange) -> ProvedRange:
        """The same with the values far beyond its lap whose programs were compared; without laps if one differs."""
        compared: list[int] = []
        longest, spent = self._outline(every.checked), 0
        assert longest is not None
        for value in _FAR:
            due = sum(longest.lengths) * value // max(every.checked, 1)
            if value <= every.checked or spent + due > _MOST_FAR:
                continue
            program = self._build(value)
            if program is None:  # the protocol refuses it: not a value of this claim
                continue
            spent += sum(map(len, program.code))
            if not self.covers(every, value, program):
                return every.without_laps(Stop.CHANGES, value)
            compared.append(value)
        return replace(every, far=tuple(sorted(compared)))

    def _try_laps(self, top: int, outline: Outline, worth: dict[tuple[int, ...], int]) -> Iterator[ProvedRange | Stop]:
        """What comes of the laps of one run, one after the other."""
        for lap, values in islice(repeated_laps(outline.program, worth), _MOST_LAPS):
            for each in (values, *self._alike.get(values, ())):
                yield self._once(top, lap, each)
        if not worth:
            yield (found := self._several_times(top))
            if not isinstance(found, ProvedRange):  # fewer values may be large enough to show it
                less = map(self._several_times, (top * 11 // 12, top * 5 // 6))
                yield from (each for each in less if isinstance(each, ProvedRange))

    # one value

    def _outline(self, value: int) -> Outline | None:
        if value not in self._outlines:
            program = self._build(value)
            self._outlines[value] = None if program is None else Outline(program)
            self._spent += sum(map(len, program.code)) if program is not None else 0
        return self._outlines[value]

    def _holds(self, value: int) -> bool:
        """True if the certificate holds at ``value``, or the protocol has no such value."""
        if value not in self._right:
            outline = self._outline(value)
            if outline is not None and id(outline.program) not in self._known:
                self._known[id(outline.program)] = outline.program, holds(outline.program)
            self._right[value] = outline is None or self._known[id(outline.program)][1]
        return self._right[value]

    def _all_hold(self, last: int) -> bool:
        """True if the certificate holds at every value up to this one."""
        outlines = ((value, self._outline(value)) for value in range(last + 1) if value not in self._right)
        new = [each for _, each in outlines if each is not None and id(each.program) not in self._known]
        found = zip((each.program for each in new), each_holds(new), strict=True)
        self._known |= {id(program): (program, right) for program, right in found}
        return all(self._holds(value) for value in range(last + 1))

    def _as_far(self, why: Stop) -> ProvedRange:
        """The values from the least on that hold, one after the other, as far as that is soon known."""
        last = max((value for value, outline in self._outlines.items() if outline is not None), default=-1)
        least, checked, fails = 0, -1, -1
        for value in range(last + 1):
            if self._spent > self._most and value not in self._right:
                break
            if self._outline(value) is None:
                if checked >= 0:
                    break
                continue
            if not self._holds(value):
                fails = value
                break
            least, checked = least if checked >= 0 else value, value
        return ProvedRange(self._parameter, least, checked, fails=fails, why=why)

    # laps

    def _worth(self, top: int, long: Outline) -> dict[tuple[int, ...], int]:
        """How far this many values more let the agents go, as far as that can be the same operations again."""
        worth: dict[tuple[int, ...], int] = {}
        self._alike.clear()
        for values in range(1, top // 2 + 1):
            if self._spent > _MOST_IN_ALL:
                break
            short = self._outline(top - values)
            if short is not None and is_longer_inside(short, long):
                grown = tuple(a - b for a, b in zip(long.lengths, short.lengths, strict=True))
                if worth.setdefault(grown, values) != values:
                    self._alike[worth[grown]].append(values)
        return worth

    def _once(self, top: int, lap: Lap, values: int) -> ProvedRange | Stop:
        """The result of one lap of the run at ``top``, which every value after some first one runs through as well."""
        long = self._outline(top)
        assert long is not None
        first = top
        while first > 0 and (short := self._outline(first - 1)) is not None and short.begins_as(long, lap.end):
            first -= 1
        for value in range(first, first + values):
            short = self._outline(value)
            if short is None or short.order_may_fail != long.order_may_fail or not short.begins_as(long, lap.end):
                return Stop.NO_LOOP
        self._laps = dict.fromkeys(range(first, first + values), (lap,))
        return self._every(first, values)

    def _several_times(self, first: int) -> ProvedRange | Stop:
        """The same of a loop that is gone through several times, with a lap in each, from this value on."""
        why, short = Stop.NO_LOOP, self._outline(first)
        if short is None:
            return why
        for values in range(1, first + 1):
            long = self._outline(first + values)
            if long is None or sum(long.lengths) > self._most or self._spent > _MOST_IN_ALL:
                return Stop.NO_LOOP if long is None else Stop.TOO_LARGE
            many = places(short, long, self._parameter)
            if many and self._placed(first, values, many):
                return self._every(first, values)
            why = Stop.NO_REPEAT if many else why
        return why

    def _without_growth(self, top: int) -> ProvedRange | None:
        """That those from half of this value on take turns, or are one, as where a loop grows that nothing waits in."""
        first, values = top // 2, range(top // 2, top + 1)
        found = [each.program for value in values if (each := self._outline(value)) is not None]
        turns = (n for n in range(1, top // 6) if all(map(is_same, found, found[n:])))
        if top < _PATIENCE or len(found) < len(values) or not (several := next(turns, 0)):
            return None
        nowhere = (0,) * len(found[0].code)
        self._laps = {first + n: (Lap(nowhere, nowhere),) for n in range(several)}
        every = self._every(first, several)
        return every if isinstance(every, ProvedRange) else None

    def _placed(self, first: int, values: int, many: int) -> bool:
        """True if the run at each of this many values has its laps, one in each place."""
        self._laps = {}
        for value in range(first, first + values):
            short, long = self._outline(value), self._outline(value + values)
            if short is None or long is None:
                return False
            grown = tuple((b - a) // many for a, b in zip(short.lengths, long.lengths, strict=True))
            laps = place_laps(short, long, [lap for lap, _ in repeated_laps(short.program, {grown: values})])
            if laps is None:
                return False
            self._laps[value] = laps
        return True

    def _goes_on(self, value: int, values: int, times: int) -> bool:
        """True if this many laps' worth of values more are as many laps more, one and two of them evenly."""
        laps = self._laps[value]
        outlines = [self._outline(value + n * values) for n in range(times + 1)]
        none, *longer = (outline for outline in outlines if outline is not None)
        if len(longer) < times or any(none.order_may_fail != long.order_may_fail for long in longer):
            return False  # where only one gives concern, no run showed that the memory order of a lap repeats
        if not all(has_laps_more(none, long, laps, more) for more, long in enumerate(longer, 1)):
            return False
        return times < 2 or items_are_even([*map(self._numbering, (none, *longer))], laps)

    def _has_the_laps_of(self, first: int, value: int, values: int) -> bool:
        """True if the items up to the end of the lap, and one lap on up to the end of the next, are those at ``first``.

        Then a second lap more shows nothing new: how two items of neighbouring laps move on is known from the first.
        Any others agree for every number of laps if they do for none and for one.
        """
        if len(self._laps[first]) > 1 or self._laps[value] != self._laps[first]:
            return False
        ((begin, end),) = self._laps[first]
        for more in range(2):
            mine, its = self._outline(value + more * values), self._outline(first + more * values)
            reached = [b + more * (b - a) for a, b in zip(begin, end, strict=True)]
            if mine is None or its is None:
                return False
            if any(a[:pc] != b[:pc] for a, b, pc in zip(mine.items, its.items, reached, strict=True)):
                return False
        return True

    def _all_go_on(self, first: int, values: int) -> int:
        """The last value looked at to see that each continues as its laps do; 0 if one does not."""
        last, named = 0, self._numbering is NUMBERINGS[0]
        for value in self._laps:
            times = 1 if named and value > first and self._has_the_laps_of(first, value, values) else 2
            if not self._goes_on(value, values, times):
                return 0
            last = max(last, value + times * values)
        return last

    def _every(self, first: int, values: int) -> ProvedRange | Stop:
        """Whether what holds for a lap's worth of values holds for every one."""
        largest = self._outline(first + 2 * values)
        if largest is None or sum(largest.lengths) > self._most:
            return Stop.TOO_LARGE
        for self._numbering in NUMBERINGS:
            last = self._all_go_on(first, values)
            if last:
                break
        else:
            return Stop.NO_LOOP
        if not self._all_hold(last):
            return Stop.NOT_RIGHT
        least = next(value + 1 for value in range(last, -2, -1) if value < 0 or self._outline(value) is None)
        return ProvedRange(self._parameter, least, last, first, values)


def repeated_laps(
    program: Program,
    worth: dict[tuple[int, ...], int],
    most: int = _MOST_PAIRS,
    run: CanonicalRun | None = None,
    wanted: Callable[[Lap], bool] = lambda _: True,
) -> Iterator[tuple[Lap, int]]:
    """Laps of the canonical run that are worth this many values, and lead back to where they began.

    ``most``: pairs of moments that are compared. ``run``: the one to look at, with all that a proof observes.
    """
    begins = _begins(program, worth)
    run = run or CanonicalRun(program, [Certificate(program), memory_order(program)])
    seen: dict[tuple[int, ...], CanonicalSnapshot] = {}
    compared = 0
    while not run.over and compared < most:
        run.round()
        end = run.state.pcs
        if end in begins and end not in seen:
            seen[end] = run.snapshot()
        for begin, values in begins.get(end, ()):
            if not wanted(Lap(begin, end)):
                continue
            compared += 1
            if begin in seen and is_again(Lap(begin, end), seen[begin], seen[end]):
                yield Lap(begin, end), values


def _begins(
    program: Program, worth: dict[tuple[int, ...], int]
) -> dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]]:
    """Of each round that matters, the rounds that a number of values would lead from there to it, and that number."""
    run = CanonicalRun(program)
    found: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = {}
    stood: set[tuple[int, ...]] = set()
    while not run.over:
        run.round()
        end = run.state.pcs
        for grown, values in worth.items():
            begin = tuple(a - b for a, b in zip(end, grown, strict=True))
            if begin in stood:
                found.setdefault(begin, [])
                found.setdefault(end, []).append((begin, values))
        stood.add(end)
    return found
