"""The values of a word of a kernel's parameters, in consecutive classes: all values of one do the same in every CTA.

A run of a CTA notes for which values of the word it holds as well (:mod:`pipesim.ptx.free.varying`). The first value
for which some CTA does something else begins the next class.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from pipesim.answers.every_cta.conditions import covered
from pipesim.answers.every_cta.kinds import CtaKind, EveryCta
from pipesim.answers.every_cta.reach import holds_to
from pipesim.answers.every_size.boundaries import Asked
from pipesim.bounds import MAX_WARP_INSTRUCTIONS
from pipesim.errors import ParameterError
from pipesim.model.program import Program
from pipesim.ptx.hand_outs import MOST_ANY, FewerTiles, all_left
from pipesim.ptx.launch.settings import with_free_range, with_free_word
from pipesim.ptx.launch.values import HANDED_OUT, LAUNCH_CONTROL, TILE_COUNTER, FreeRange
from pipesim.targets import Target
from pipesim.trace.arrays import np

if TYPE_CHECKING:
    from pipesim.ptx.extract import Extraction

_MOST_INSTRUCTIONS = 8 * MAX_WARP_INSTRUCTIONS  #: of the runs for all classes
_LAST = 8  #: of the runs from which values are taken at which something else may begin


_ANY = re.compile(r"([^=]{1,60}?)(?:=([0-9]{1,10})\.\.([0-9]{1,10})?(?::([0-9]{1,10}))?)?")
_SPELLING = "write NAME, NAME=LOW.., NAME=LOW..HIGH, or one of these with :STEP after it, as K=64..:64"


class AnyWord(NamedTuple):
    """A word that may have any value from ``low`` to ``high`` in steps of ``step``, named as ``--set`` does it."""

    name: str
    low: int = 1
    high: int | None = None  #: None: what a word of its type holds
    step: int = 1

    @classmethod
    def read(cls, text: str) -> AnyWord:
        """The word that ``n``, ``n=64..``, ``n=64..4096`` or ``n=64..:64`` means. ParameterError for anything else."""
        found = _ANY.fullmatch(text.strip())
        if found is None:
            raise ParameterError(f"--any {text[:60]}: expected a word and its values", correction=_SPELLING)
        name, low, high, step = found.groups()
        word = cls(name, int(low or 1), int(high) if high else None, int(step or 1))
        if word.step < 1 or (word.high is not None and word.high < word.low):
            raise ParameterError(f"--any {text[:60]}: there are no such values", correction=_SPELLING)
        return word


@dataclass(frozen=True)
class SizeClass:
    """Values that do the same as the first of them, which is ``value``; ``last``: the last one.

    ``kinds``: the kinds of CTAs, each with what it does. ``complete``: every CTA is of one of them. ``handed_out``: it
    is handed out tiles, of which other numbers were not looked at. ``others``: what it does with other tiles, of a few;
    ``next_alone``: of more, with which it may do something else.
    """

    value: int
    last: int
    kinds: tuple[tuple[CtaKind, Program], ...]
    complete: bool
    handed_out: bool = False
    others: tuple[tuple[CtaKind, Program], ...] = ()
    next_alone: bool = False

    def program_of(self, cta: int, places: dict[str, np.ndarray]) -> Program | None:
        """What a CTA does, whose free inputs these are; None if it is of none of the kinds."""
        return next((p for kind, p in self.kinds if kind.cta == cta or covered(kind.inputs, places)[0]), None)


class SizeClasses:
    """The classes of the values of one word, from the least on, each looked at when it is asked for.

    ``target``: the kernel, whose launch has the word as a free one with the values ``free``; of a counter's tiles all
    are ``left``.
    """

    def __init__(self, target: Target, name: str, free: FreeRange, left: FewerTiles | None = None) -> None:
        self._target, self.name, self.free, self._left = target, name, free, left
        self.known: list[SizeClass] = []
        self._lengthened: list[Asked] = []  # the runs that were to show that laps repeat
        self._spent = 0  # warp instructions of all runs

    @classmethod
    def of(cls, target: Target, word: AnyWord) -> SizeClasses:
        """The classes of a kernel's word. ParameterError where it has no such word, or this no such values."""
        assert target.kernel is not None
        kernel, left = target.kernel.kernel, None
        if word.name == TILE_COUNTER and word.name not in {each.name for each in kernel.launch.parameters}:
            coverage = target.kernel.program.coverage
            left = all_left(target.kernel.fewer_tiles) if not coverage.stopped else None
            if left is None and (coverage.stopped or coverage.blocked):  # it is refuted, or nothing is known
                return cls(target, word.name, FreeRange(0, 0))
            if left is None:
                raise ParameterError(
                    f"--any {word.name}: {target.name} takes no tiles of one counter that others take, too",
                    cause="their number is free where other CTAs also take tiles of the one counter that a kernel has",
                )
        launch, free = with_free_word(kernel.launch, kernel.entry, *word, left=left.left if left is not None else None)
        made = replace(target.kernel, kernel=replace(kernel, launch=launch))
        return cls(replace(target, kernel=made), word.name, free, left)

    def setting(self, value: int) -> int:
        """What ``--set`` takes for a value: for a number of a counter's tiles its first answer."""
        if self._left is None or self._left.left is None:
            return value
        tiles, first, end = self._left.left
        return end - value * ((end - first) // tiles)

    def __getitem__(self, number: int) -> SizeClass | None:
        """A class by its number; None where there are fewer, or a limit was reached."""
        while len(self.known) <= number:
            value = self.last + self.free.step
            if value > self.free.high or self.limited:
                return None
            self.known.append(self.at(value))
        return self.known[number]

    @property
    def limited(self) -> bool:
        """Whether no further classes are looked at, since that would take too long."""
        return self._spent > _MOST_INSTRUCTIONS

    @property
    def last(self) -> int:
        """The last value of those that were looked at one after the other."""
        return self.known[-1].last if self.known else self.free.low - self.free.step

    @property
    def complete(self) -> bool:
        """Whether every value of the word is in one of the classes that were looked at."""
        return bool(self.known) and self.known[-1].last + self.free.step > self.free.high

    def at(self, value: int) -> SizeClass:
        """The class whose least value this is."""
        assert self._target.kernel is not None
        return self._at(self._target.kernel.with_setting(self.name, value), value)

    def _at(self, first: Extraction, value: int) -> SizeClass:
        every = EveryCta(first, asked=False)
        if free := every.arrays.keys() - {HANDED_OUT}:
            raise ParameterError(
                f"--any {self.name}: {self._target.name} has arrays in memory that are free, too",
                cause="of these every content is looked at for one value of a word",
                correction=f"leave --any out and give values with --set, or leave {min(free)} as it is",
            )
        alone = first.kernel.launch.cta is not None
        programs, handed_out = [], first.kernel.launch.policies.handed_out != ()
        for made in (first, *([] if alone else every)):
            programs.append(made.program.with_strictness(self._target.strictness))
            asked = made.launch_control is not None and made.kernel.launch.policies.launch_control is None
            handed_out = handed_out or asked or self._takes_others(made)
        if _asks_which_tiles(every):  # it does something else with other tiles than the next ones
            array, others = every.arrays[HANDED_OUT], EveryCta(first)
            given = self._at(first.with_tiles(tuple(array.low + array.step * n for n in array.usual)), value)
            few = (first, *others) if array.count <= MOST_ANY + (array.late[0] > 0 or array.late[1] > 0) else ()
            self._spent += sum(kind.instructions for kind in others.kinds if few)
            made = tuple(each.program.with_strictness(self._target.strictness) for each in few)
            last = value if few else given.last  # other tiles may do something else at the next value
            return replace(given, last=last, others=tuple(zip(others.kinds, made, strict=False)), next_alone=not few)
        self._spent += sum(kind.instructions for kind in every.kinds)
        places = every.place_of(first.kernel.launch) if alone else every.all_places()
        last = self._last_of(every.kinds, places, self.free)
        kinds = tuple(zip(every.kinds, programs, strict=True))
        return SizeClass(value, last, kinds, alone or every.complete, handed_out)

    def repeats(self, one: SizeClass, lap: int, most: int) -> bool:
        """Whether the code shows for every CTA that any number of times ``lap`` more than a value is as many laps more.

        Of a class that was looked at in every CTA, and values up to ``most``.
        """
        assert self._target.kernel is not None
        free = FreeRange(one.value, one.last, self.free.step, self.name, lap, most)
        free = free._replace(most=max(most, free.seen + lap))
        kernel = self._target.kernel.kernel
        try:
            launch = with_free_range(kernel.launch, kernel.entry, self.name, free)
        except ParameterError:  # a word of this type has no such values
            return False
        first = replace(self._target.kernel, kernel=replace(kernel, launch=launch)).with_setting(self.name, free.seen)
        every = EveryCta(first, asked=False)
        shown = all(made.repeats for made in (first, *([] if kernel.launch.cta is not None else every)))
        for kind in every.kinds:
            laps = tuple(each for each in kind.inputs.now if each.endswith(f" of {self.name}") and each[0] in "mt")
            self._lengthened.append(Asked(kind.inputs, laps, one.value, lap))
        if _asks_which_tiles(every) or self._takes_others(first):
            return False
        places = every.place_of(kernel.launch) if kernel.launch.cta is not None else every.all_places()
        last = self._last_of(every.kinds, places, FreeRange(one.value, one.last, self.free.step))
        whole = kernel.launch.cta is not None or every.complete
        return shown and whole and last >= one.last

    def boundaries(self) -> list[int]:
        """Values beyond those that were looked at where a cluster may begin to do something else, the least first."""
        low, high, step, *_ = self.free
        seen = self.known[-_LAST:] if self.known else []
        runs = [Asked(kind.inputs, (self.name,), low, step) for one in seen for kind, _ in one.kinds]
        assert self._target.kernel is not None
        places, found = EveryCta(self._target.kernel).all_places(), set[int]()
        for asked in (*runs, *self._lengthened[-_LAST:]):
            if asked.names and asked.names[0] in asked.inputs.now:
                found |= asked.boundaries(high, places)
        return sorted({low + -(-(value - low) // step) * step for value in found if self.last < value <= high})

    def _takes_others(self, made: Extraction) -> bool:
        """Whether it may take other tiles of a counter than those that are looked at: more than with the launch's
        value, or which of them was not asked.
        """
        assert self._target.kernel is not None
        launch = made.kernel.launch
        if launch.free_tiles is not None and launch.left is not None:  # else also after the end
            return not launch.free_tiles.lap and len(made.answers) > launch.left[0] + 1
        if has_all_tiles(made):
            return False
        free = launch.left is not None and HANDED_OUT in made.inputs.arrays
        return len(made.answers) > len(self._target.kernel.answers) if free else bool(made.fewer_tiles)

    def places_of(self, cta: int) -> dict[str, np.ndarray]:
        """The free inputs of a CTA."""
        assert self._target.kernel is not None
        launch = self._target.kernel.kernel.launch
        return EveryCta(self._target.kernel).place_of(launch.with_setting("cta", cta))

    def _last_of(self, kinds: list[CtaKind], places: dict[str, np.ndarray], free: FreeRange) -> int:
        """The last value at which each of the kinds of CTAs does what it does now."""
        low, high, step, *_ = free
        most = (high - low) // step
        for each in kinds:
            mine = covered(each.inputs, places)
            if mine.any():
                most = holds_to(each.inputs, self.name, most, {name: every[mine] for name, every in places.items()})
            places = {name: every[~mine] for name, every in places.items()}
        return low + most * step


def has_all_tiles(kernel: Extraction) -> bool:
    """Whether its cluster is the grid, so that no other one takes tiles of a counter."""
    policies = {each.policy for each in kernel.fewer_tiles}
    return kernel.kernel.launch.grid == kernel.kernel.launch.cluster and LAUNCH_CONTROL not in policies


def _asks_which_tiles(every: EveryCta[Extraction]) -> bool:
    """Whether what some CTA does depends on which tiles are handed out."""
    return any(HANDED_OUT in kind.inputs.arrays_in_conditions() for kind in every.kinds)
