"""Several words of a kernel's parameters together: every combination of their values.

Each is free, like an element of a free array. What a run notes are then conditions on all words and on the CTA, and
combinations that no run covers are searched for until there are none
(:mod:`pipesim.answers.every_cta.contents`). A word that lengthens a loop has further values, laps on. Its values are
the small ones and, from a ``first`` on, those of one lap with any number of laps more. So there is a part of all
combinations for each choice of words that have laps more. In such a part each run is one in which all of these words
lengthen their loops, with numbers of laps that are free (:mod:`pipesim.ptx.emulate.laps.lengthened`), and what they
lengthen is right for all numbers (:mod:`pipesim.prove.any_size.nested`).
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, product
from math import prod
from typing import NamedTuple

from pipesim.answers.every_cta.kinds import EveryCta
from pipesim.bounds import MAX_WARP_INSTRUCTIONS
from pipesim.errors import ParameterError
from pipesim.model.program import Program
from pipesim.prove.any_size.family import ProvedRange
from pipesim.prove.any_size.nested import MOST_LOOPS, Numbers, nested_laps_repeat
from pipesim.ptx.emulation import emulate
from pipesim.ptx.extract import Extraction, emit
from pipesim.ptx.launch.settings import with_free_range, with_free_word
from pipesim.ptx.launch.values import HANDED_OUT, FreeRange
from pipesim.targets import Target

_MOST_KINDS = 64  #: of combinations in one part, and a few for each of those of words that lengthen loops
_FEW_KINDS = 4
_MOST_INSTRUCTIONS = 4 * MAX_WARP_INSTRUCTIONS  #: of all runs
_AFTER = (0, 1, 2)  #: laps, after which the code is to show that further ones are the same
_TIMES = (1, 2, 4)  #: as many of a word's laps may be the same together; of all words together, the last
_MOST = (1 << 15, 1 << 32, 1 << 24)  #: values up to which it is shown of words that have laps


class SizeCase(NamedTuple):
    """What the kernel does with these settings, as ``--set`` has them."""

    program: Program
    settings: Mapping[str, int]


class EveryCombination:
    """Whether each combination of words is proved of which each is alone; iterating gives what is to be proved.

    ``ranges``: the values of each word of which every combination is, after the last one; () where it is not known.
    """

    def __init__(self, target: Target, words: Sequence[ProvedRange]) -> None:
        self._target, self._words = target, words
        self._programs: dict[tuple[tuple[str, int], ...], Program | None] = {}
        self._repeat: dict[tuple[object, ...], bool] = {}
        self._spent = 0
        self.ranges: tuple[ProvedRange, ...] = ()

    def __iter__(self) -> Iterator[SizeCase]:
        if sum(each.lap > 0 for each in self._words) > MOST_LOOPS or not all(each.is_every for each in self._words):
            return
        for after, times in self._tries():
            for most in _MOST:  # if it holds up to the first one, then up to which of the others
                split = [_split(each, most, after, n) for each, n in zip(self._words, times, strict=True)]
                shown = yield from self._is_every(split, small=not self.ranges)
                if shown:
                    self.ranges = tuple(replace(one, most=up.most) for one, up in zip(self._words, split, strict=True))
                if shown is not (most == _MOST[0]):
                    break
            if self.ranges or self._spent > _MOST_INSTRUCTIONS:
                return

    def _tries(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """After how many laps the code is to show it, and of how many laps of each word together."""
        if not any(each.lap for each in self._words):
            yield 0, (1,) * len(self._words)
            return
        times = sorted(product(*(_TIMES if each.lap else (1,) for each in self._words)), key=lambda n: (prod(n), n))
        yield from ((after, n) for after in _AFTER for n in times if prod(n) <= _TIMES[-1])

    def _is_every(self, split: Sequence[ProvedRange], *, small: bool) -> Generator[SizeCase, None, bool]:
        """Whether all combinations are covered, those of ``small`` values among them."""
        have_laps = [each for each in split if each.lap]
        parts = [more for number in range(len(have_laps) + 1) for more in combinations(have_laps, number)]
        for more in (*parts[1:], *(parts[:1] if small else ())):  # what fails in most cases is soon known first
            if not (yield from self._covers(split, more)):
                return False
        return True

    def _covers(self, split: Sequence[ProvedRange], more: Sequence[ProvedRange]) -> Generator[SizeCase, None, bool]:
        """Whether all combinations are in which these words have laps more, and the others none."""
        free = [_free(each, more=each in more) for each in split]
        if any(each.low > each.high for each in free):  # there are no small values
            return True
        first = self._read(free)
        if first is None:
            return False
        each_of = prod((one.high - one.low) // one.step + 1 for one, of in zip(free, split, strict=True) if of.lap)
        most = _MOST_KINDS + _FEW_KINDS * each_of
        every = EveryCta(first, asked=False, most=most, instructions=_MOST_INSTRUCTIONS)
        for number, made in enumerate(chain((first,), every)):
            kind = every.kinds[number]
            self._spent += made.instructions
            if made.limited or made.answers or made.fewer_tiles or HANDED_OUT in every.arrays:
                return False
            if (more and not made.repeats) or self._spent > _MOST_INSTRUCTIONS:
                return False
            at = {**{each.name: each.low for each in free}, **kind.settings, "cta": kind.cta}
            program = self._program(at)
            if program is None:
                return False
            yield SizeCase(program, at)
            if more and not self._laps_repeat(at, more):
                return False
        return every.complete

    def _laps_repeat(self, at: Mapping[str, int], more: Sequence[ProvedRange]) -> bool:
        def build(numbers: Numbers) -> Program | None:
            laps = zip(more, numbers, strict=True)
            return self._program({**at, **{e.parameter: at[e.parameter] + n * e.lap for e, n in laps}})

        asked = (*at.items(), *((each.parameter, each.lap) for each in more))
        if asked not in self._repeat:
            self._repeat[asked] = nested_laps_repeat(build, len(more))
        return self._repeat[asked]

    def _read(self, free: Sequence[FreeRange]) -> Extraction | None:
        assert self._target.kernel is not None
        kernel = self._target.kernel.kernel
        launch = kernel.launch
        try:
            for each in free:
                launch, _ = with_free_word(launch, kernel.entry, each.name, each.low, each.high, each.step)
                launch = with_free_range(launch, kernel.entry, each.name, each)
        except ParameterError:  # a word of this type has no such values
            return None
        made = replace(kernel, launch=launch)
        return emit(made, emulate(made))

    def _program(self, settings: Mapping[str, int]) -> Program | None:
        """What the kernel does with these settings; None where it is not followed to its end."""
        assert self._target.kernel is not None
        key = tuple(sorted(settings.items()))
        if key not in self._programs:
            kernel = self._target.kernel.kernel
            for name, value in settings.items():
                kernel = kernel.with_setting(name, value)
            made = emit(kernel, emulate(kernel))
            self._spent += made.instructions
            self._programs[key] = None if made.limited else made.program.with_strictness(self._target.strictness)
        return self._programs[key]


def _split(each: ProvedRange, most: int, after: int, times: int) -> ProvedRange:
    """Up to this value, if the word has laps and such values, from which on ``times`` as many are one lap."""
    if not each.lap:
        return each
    most = min(each.most, most)
    most -= (most - each.least) % each.step
    return replace(each, most=most, first=each.first + after * times * each.lap, lap=times * each.lap)


def _free(each: ProvedRange, *, more: bool) -> FreeRange:
    """The small values of a word, or those from ``first`` on, of one ``lap``, that have laps more."""
    name, low, step = each.parameter, each.least, each.step
    if more:
        return FreeRange(each.first, each.first + each.lap - step, step, name, each.lap, each.most, joint=True)
    return FreeRange(low, (each.first if each.lap else each.most + step) - step, step, name, joint=True)
