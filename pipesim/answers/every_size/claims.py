"""What is proved of every value of a word: of each class that was looked at, and that they repeat beyond."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import product
from math import lcm

from pipesim.answers.every_cta.kinds import EveryCta
from pipesim.answers.every_cta.launches import shape_of_program
from pipesim.answers.every_size.classes import AnyWord, SizeClass, SizeClasses, has_all_tiles
from pipesim.answers.every_size.joint import EveryCombination, SizeCase
from pipesim.answers.every_size.nearby import values_nearby
from pipesim.answers.views.check import ProvedTogether
from pipesim.model.program import Program
from pipesim.prove.any_size.family import Family, ProvedRange, Stop
from pipesim.ptx.emulate.cluster import EmulationLimits
from pipesim.ptx.emulation import emulate, emulate_without_laps
from pipesim.ptx.extract import Extraction, emit
from pipesim.ptx.hand_outs import all_left
from pipesim.ptx.launch.values import LAUNCH_CONTROL, TILE_COUNTER
from pipesim.targets import Target

_FEW_CLASSES = 12  #: of which the last one says which kinds of CTAs there are
#: Laps that are shown to repeat together, since some phases do only after two rounds of a ring, and after how many of
#: them a class is where the code is to show it.
_TIMES = (((1, 0), (1, 1)), ((2, 0), (2, 1), (2, 3)), ((4, 3),), ((6, 3),))
_MOST_TIMES = 2, 16  #: of laps of any length, and classes in all of more
_LESS = (1 << 24, 1 << 16)  #: values up to which it is shown where it is not for all
_MOST_BEYOND, _NEXT = 16, 4  #: values at which something else may begin, and how many classes after each are tried
_KINDS_BEYOND = 4
_FAR = tuple(1 << n for n in (8, 12, 16, 20))  #: numbers of values: what happens in a late lap alone happens there
_SHORT, _SPENT_BEYOND = 1 << 14, 1 << 18  #: instructions there, at one value and at all of a word
_TOGETHER = 3  #: classes of each word that are tried with those of the others
_MOST_TOGETHER = 27


class EverySize:
    """Other values of some words; iterating gives what the kernel does at those that do something new, to be proved.

    After the last one :meth:`ranges` says what is known if all were proved.
    """

    def __init__(self, target: Target, words: Sequence[AnyWord]) -> None:
        self._target = target
        self._seen: set[Hashable] = set()
        self.words = [
            WordClaim(SizeClasses.of(made, each), settings)
            for each in words
            for settings, made in (hand_outs(target, each) if len(words) == 1 else [({}, target)])
        ]
        self._tried = 0
        self._every: tuple[ProvedRange, ...] = ()  # the values of all words of which every combination is proved

    def __iter__(self) -> Iterator[SizeCase]:
        for word in self.words:
            for one in word.due():
                for kind, program in (*one.kinds, *one.others):
                    if self._is_new(program):
                        settings = {word.classes.name: word.classes.setting(one.value), "cta": kind.cta}
                        settings |= {**word.settings, **kind.settings}
                        yield SizeCase(program, settings)
        yield from self._combined()

    def beyond(self, fails: Callable[[Program], bool]) -> Iterator[Mapping[str, int]]:
        """Settings with which the kernel fails, of values at which it may begin to do something else, and some far on.

        After all that iterating gives, where not every value is proved. That it does not fail there says nothing.
        """
        for word in self.words:
            (low, high, step, *_), name = word.classes.free, word.classes.name
            due = []
            if not word.proved().is_every:
                due = [(each, 0) for each in word.classes.boundaries()[:_MOST_BEYOND]]
                due = sorted([*due, *((each, _NEXT) for n in _FAR if word.classes.last < (each := low + n * step))])
            tried, rest = set[int](), _SPENT_BEYOND
            while due and rest > 0:
                value, before = heappop(due)
                if value in tried or value > high:
                    continue
                settings = {name: word.classes.setting(value), **word.settings}
                first = self._in_short(settings)
                every = EveryCta(first, asked=False, most=1 if first.limited else _KINDS_BEYOND, instructions=rest)
                for number, made in enumerate((first, *every)):
                    program = made.program.with_strictness(self._target.strictness)
                    rest -= _SHORT if made.program.laps else _SPENT_BEYOND // 3 if made.limited else made.instructions
                    if (program.laps or not made.limited) and self._is_new(program) and fails(program):
                        yield self._least_that_fails(word, value, every.kinds[number].cta, fails)
                tried.add(value)
                near = () if first.limited else values_nearby(first.kernel, [every])
                last = next((each.most for each in near if each.parameter == name), value)
                if before < _NEXT:
                    heappush(due, (low + ((last - low) // step + 1) * step, before + 1))

    def _least_that_fails(
        self, word: "WordClaim", value: int, cta: int, fails: Callable[[Program], bool]
    ) -> Mapping[str, int]:  # fmt: skip
        """With the least value if those below do not fail, in this CTA, and those above do; else one that fails."""

        def settings(value: int) -> Mapping[str, int]:
            return {word.classes.name: word.classes.setting(value), **word.settings, "cta": cta}

        low, step = word.classes.last, word.classes.free.step
        middle = value - step
        while low < middle:
            made = self._in_short(settings(middle))
            if (made.program.laps or not made.limited) and fails(made.program.with_strictness(self._target.strictness)):
                value = middle
            else:
                low = middle
            middle = low + (value - low) // (2 * step) * step
        return settings(value)

    def _in_short(self, settings: Mapping[str, int]) -> Extraction:
        """The kernel with these settings in few instructions: without laps where it is longer, or cut."""
        assert self._target.kernel is not None
        kernel = self._target.kernel.kernel
        for name, value in settings.items():
            kernel = kernel.with_setting(name, value)
        limits = EmulationLimits(_SHORT)
        found = emulate(replace(kernel, leaves_laps_out=False), limits)
        if found.cluster.limited and not (without := emulate_without_laps(kernel, kernel.launch, limits)).cut:
            found = without
        return emit(kernel, found)

    def _is_new(self, program: Program) -> bool:
        """Whether none that does the same was given."""
        known, shape = len(self._seen), hash(shape_of_program(program))
        self._seen.add(shape)
        return len(self._seen) > known

    def _combined(self) -> Iterator[SizeCase]:
        """Small values of all words together, then all."""
        if len({word.classes.name for word in self.words}) < 2:
            return
        sides = [[word.classes.setting(one.value) for one in word.classes.known[:_TOGETHER]] for word in self.words]
        for values in sorted(product(*sides), key=lambda each: (sum(each), each))[:_MOST_TOGETHER]:
            settings = {word.classes.name: value for word, value in zip(self.words, values, strict=True)}
            self._tried += 1
            program = self.target(settings).build()
            if self._is_new(program):
                yield SizeCase(program, settings)
        every = EveryCombination(self._target, self.ranges)
        yield from (each for each in every if self._is_new(each.program))
        self._every = every.ranges

    def target(self, settings: Mapping[str, int]) -> Target:
        """The kernel with these settings."""
        return self._target.with_settings(settings)

    @property
    def ranges(self) -> tuple[ProvedRange, ...]:
        """What is proved of each word, the others being as they are, if all that iterating gave was proved."""
        found: dict[str, list[ProvedRange]] = {}
        for word in self.words:
            found.setdefault(word.classes.name, []).append(word.proved())
        return tuple(map(_with_each_number, found.values()))

    @property
    def together(self) -> ProvedTogether | None:
        """What is proved of several words together."""
        names = tuple(word.classes.name for word in self.words)
        return ProvedTogether(names, self._tried, {}, every=self._every) if self._tried else None


def hand_outs(target: Target, word: AnyWord) -> list[tuple[dict[str, int], Target]]:
    """The kernel with each number of tiles that launch control or a counter hands out, whichever these are, and with
    which setting; as it is where the launch fixes it, or that is not one counter of which the kernel takes tiles.
    """
    kernel = target.kernel
    if kernel is None or not kernel.fewer_tiles or word.name in (LAUNCH_CONTROL, TILE_COUNTER):
        return [({}, target)]
    found, last = list(kernel.fewer_tiles), kernel.fewer_tiles[-1]
    whole = all_left(kernel.fewer_tiles) if not has_all_tiles(kernel) else None
    if last.policy == found[0].policy == LAUNCH_CONTROL:
        found.append(last._replace(value=last.used, tiles=last.used))
    elif whole is None:
        return [({}, target)]
    elif last.value != last.used:  # of more than were looked at
        found.append(whole)
    each = [({one.policy: one.value}, kernel.with_fewer(one)) for one in found]
    return [(settings, target.with_settings(settings, made)) for settings, made in each]


def _with_each_number(ranges: Sequence[ProvedRange]) -> ProvedRange:
    """The values of a word that are proved with each number of tiles."""
    laps = [each for each in ranges if each.lap]
    if not laps or not all(each.is_every for each in ranges):
        return min(ranges, key=lambda each: each.last)
    first, lap = max(each.first for each in laps), lcm(*(each.lap for each in laps))
    return replace(laps[0], checked=min(each.checked for each in laps), first=first, lap=lap)


class WordClaim:
    """The classes of one word, and for the first CTA of each kind what repeats.

    ``settings``: with as many tiles as these say, whichever these are.
    """

    def __init__(self, classes: SizeClasses, settings: Mapping[str, int]) -> None:
        self.classes, self.settings = classes, settings
        self.families: dict[int, Family] = {}  #: by the first CTAs of the kinds, over the numbers of classes
        self.found: dict[int, ProvedRange] = {}  #: of each
        self._ctas: list[int] = []  # the first ones of the kinds
        self._right: dict[int, tuple[Program, bool]] = {}  # of programs, whichever CTAs they are of
        self._repeats_at: dict[tuple[int, int, int], bool] = {}  # by the values of classes, laps, and the most
        self._most = classes.free.high  # value for which the code shows it

    def due(self) -> Iterator[SizeClass]:
        """The classes on which the claim rests: all that were looked at, one after the other."""
        few = [each for n in range(_FEW_CLASSES) if (each := self.classes[n]) is not None]
        yield from few
        if not self.classes.complete and not any(each.handed_out for each in few):
            self._ctas = sorted({kind.cta for each in few for kind, _ in each.kinds})
            for cta in self._ctas:
                self.found[cta] = self._verdict(cta)
        yield from self.classes.known[len(few) :]

    def _verdict(self, cta: int) -> ProvedRange:
        places = self.classes.places_of(cta)

        def program(number: int) -> Program | None:
            one = self.classes[number]
            return None if one is None else one.program_of(cta, places)

        looked = self.families[cta] = Family(self.classes.name, program, right=self._right, shown=True)
        found = self.found[cta] = looked.verdict()
        if not found.lap:
            return found
        if not self._widths_repeat(found):
            return found.without_laps(Stop.OTHERWISE)
        if not self._is_shown(found, lambda one: one.program_of(cta, places), looked):
            return found.without_laps(Stop.NOT_SHOWN)
        return found

    def _is_shown(self, found: ProvedRange, program: Callable[[SizeClass], Program | None], looked: Family) -> bool:
        """Whether the code shows that the lap is always the same, or that two laps together are.

        Up to the most, which is less where a register overflows with larger values.
        """
        bounds = (self._most, *(each for each in _LESS if each < self._most))
        for most, few in ((most, few) for few in _TIMES for most in bounds):
            for times, after in few:
                first, classes = found.first + after * times * found.lap, times * found.lap
                if times > _MOST_TIMES[0] and classes > _MOST_TIMES[1]:
                    continue
                if self._laps_repeat(found, range(first, first + classes), most, program, looked):
                    self._most = most
                    return True
        return False

    def _laps_repeat(
        self, found: ProvedRange, numbers: range, most: int, program: Callable[[SizeClass], Program | None],
        looked: Family,
    ) -> bool:  # fmt: skip
        """Whether the code shows it of one or several laps, from each of the classes with these numbers on.

        One lap further each is as the proof has it.
        """
        if self.classes[numbers[-1]] is None:
            return False
        known = self.classes.known
        lap = len(numbers) // found.lap * (known[found.first + found.lap].value - known[found.first].value)
        if known[numbers[-1]].last + self.classes.free.step - known[numbers[0]].value != lap:
            return False
        for number in range(numbers.start, numbers.stop + len(numbers)):
            one = self.classes[number]
            if one is None and self.classes.complete:
                break
            there = None if one is None else program(one)
            if one is None or there is None or not looked.covers(found, number, there):
                return False
            if not one.complete or not {kind.cta for kind, _ in one.kinds} <= set(self._ctas):
                return False
            if number not in numbers:  # what the code adds is what the proof does, in the same place
                if one.value - known[number - len(numbers)].value != lap:
                    return False
                continue
            asked = one.value, lap, most
            if asked not in self._repeats_at:
                self._repeats_at[asked] = one.value + lap > most or self.classes.repeats(one, lap, most)
            if not self._repeats_at[asked]:
                return False
        return True

    def _widths_repeat(self, found: ProvedRange) -> bool:
        known = self.classes.known[: found.checked + 1]
        pairs = zip(known[found.first :], known[found.first + found.lap :], strict=False)
        return len({(b.value - a.value, b.last - a.last) for a, b in pairs}) == 1

    def _lap(self, every: Sequence[ProvedRange]) -> int:
        known = self.classes.known
        return lcm(*(known[each.first + each.lap].value - known[each.first].value for each in every))

    def proved(self) -> ProvedRange:
        """The values that are proved."""
        name, (low, high, step, *_), known = self.classes.name, self.classes.free, self.classes.known
        checked, whole = known[-1].last, all(each.complete for each in known)
        if any(each.handed_out for each in known):
            if name in (LAUNCH_CONTROL, TILE_COUNTER):  # up to these numbers all choices were looked at
                checked = next((each.value - step for each in known[1:] if each.next_alone), checked)
            return ProvedRange(name, low, checked, why=Stop.HANDED_OUT, step=step, most=high)
        if self.classes.complete and whole:
            return ProvedRange(name, low, high, step=step, most=high)
        every = [each for each in self.found.values() if each.lap]
        if not whole or len(every) < len(self.found):
            why = next((each.why for each in self.found.values() if each.why), Stop.OTHERWISE)
            why = Stop.TOO_LARGE if self.classes.limited and why is not Stop.NOT_SHOWN else why
            return ProvedRange(name, low, checked, why=why, step=step, most=high)
        lap = self._lap(every)
        first = known[max(each.first for each in every)].value
        less = None if self._most == high else Stop.NOT_SHOWN
        return ProvedRange(name, low, checked, first, lap, why=less, step=step, most=self._most)
