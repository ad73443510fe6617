"""Contents of free arrays that no run so far covers: found exactly, or shown not to exist.

A run holds where all of its conditions do, so what it leaves of a set of contents is cut in one part for each
condition: where it is the first that does not hold. Whether a part has contents at all is searched by narrowing the
values of each element that the conditions name, and by halving them where that decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any

from pipesim.answers.every_cta.boxes import Box, Ends, Word
from pipesim.answers.every_cta.conditions import Evaluation, covered, words_of
from pipesim.ptx.free.arrays import FreeArray
from pipesim.ptx.free.conditions import Condition
from pipesim.ptx.free.forms import Form, Forms, Terms, constant
from pipesim.ptx.free.varying import FreeInputs
from pipesim.trace.arrays import np

Constraint = tuple[Terms, Condition]  #: on the sum of some terms
Domains = dict[Word, "range | np.ndarray"]  #: the values that elements may have, by their numbers

EACH = 1 << 16  #: combinations of values of all elements, where each of them is looked at
_TOGETHER = 1 << 14  #: combinations of values that are looked at one by one
_MOST_PARTS = 4096  #: halves, and bounds of constraints, that one search looks at
_LOOKS_OF_PART = 16  #: ends that are tried of one element, each of which takes less than a part
_MOST_ROUNDS = 16  #: in which constraints narrow what others are about
_MOST_CELLS = 1 << 14  #: sets of contents that are asked about for one cluster


class UndecidedError(Exception):
    """A search ended at its limit: ``word`` is an element that its conditions name. Only used inside of this folder."""

    def __init__(self, word: Word) -> None:
        super().__init__(word)
        self.word = word


def _instead(terms: Terms, condition: Condition) -> Iterator[Constraint]:
    """The ways in which a condition does not hold; no two of them together."""
    form, at = Form(0, terms), condition.position
    if condition.low > form.low:
        yield terms, Condition(at, high=condition.low - 1)
    if condition.high < form.high:
        yield terms, Condition(at, condition.high + 1)
    for value in sorted(condition.never):
        if condition.low <= value <= condition.high:
            yield terms, Condition(at, value, value)


class OpenContents:
    """The contents of free arrays that no run covers for one cluster, whose place in the grid is ``place``."""

    def __init__(self, place: Mapping[str, np.ndarray]) -> None:
        self.arrays: dict[str, FreeArray] = {}  #: that runs have asked for
        self._search = _ContentsSearch(place, self.arrays)
        self._cells: list[tuple[tuple[Constraint, ...], int]] = [((), 0)]
        self._asked = 0
        self._place = place
        self._each: tuple[tuple[Word, ...], int, np.ndarray] | None = None  # elements, the runs that were asked, and
        # which combinations of values these do not cover
        self._covered = False

    def first(self, runs: Sequence[FreeInputs]) -> dict[Word, int] | None:
        """Values of the elements that matter, by their numbers, which no run covers; None where all are covered.

        ``runs``: those that were given before, and more. Raises UndecidedError.
        """
        if self._covered:
            return None
        named = {word for inputs in runs for terms in inputs.conditions for word in self._search.words(terms)}
        words = tuple(sorted(named))
        few = prod(len(self._numbers(word)) for word in words) <= EACH
        found = self._first_of_each(runs, words) if few else self._first_of_cells(runs)
        self._covered = found is None
        return found

    def _numbers(self, word: Word) -> range:
        return self.arrays[word[0]].numbers(word[1])

    def _first_of_each(self, runs: Sequence[FreeInputs], words: tuple[Word, ...]) -> dict[Word, int] | None:
        """Each combination of values is looked at; of those that are left one in which few elements are unusual."""
        grid = np.meshgrid(*(np.arange(each.start, each.stop) for each in map(self._numbers, words)), indexing="ij")
        values = {word: each.ravel() for word, each in zip(words, grid, strict=True)}
        if self._each is None or self._each[0] != words:
            left = np.ones(max(1, *map(len, values.values())) if words else 1, dtype=bool)
            for terms, rise in self._search.rising(words):
                left &= rise.holds(Evaluation(self._place, values).sum(Form(0, terms)))
            self._each = words, 0, left
        _, done, left = self._each
        for inputs in runs[done:]:
            left &= ~covered(inputs, self._place, values)
        self._each = words, len(runs), left
        if not left.any():
            return None
        unusual = sum(each != self.arrays[name].usual[n] for (name, n), each in values.items())
        at = int(np.argmin(np.where(left, unusual, len(words) + 1)))
        return {word: int(each[at]) for word, each in values.items()}

    def _first_of_cells(self, runs: Sequence[FreeInputs]) -> dict[Word, int] | None:
        while self._cells:
            kept, done = self._cells.pop()
            self._asked += 1
            if self._asked > _MOST_CELLS:
                raise UndecidedError(self._search.words(kept[-1][0])[0])
            if done == len(runs):
                found = self._search.solve(kept)
                if found is not None:
                    self._cells.append((kept, done))
                    return found
                continue
            conditions = runs[done].conditions.items()
            if self._search.solve((*kept, *conditions)) is None:  # it covers none of these
                self._cells.append((kept, done + 1))
                continue
            for terms, condition in conditions:
                for other in _instead(terms, condition):
                    if self._search.solve((*kept, other)) is not None:
                        self._cells.append(((*kept, other), done + 1))
                kept = (*kept, (terms, condition))
        return None


class _ContentsSearch:
    """Whether there are values of elements with which constraints hold, for one cluster."""

    def __init__(self, place: Mapping[str, np.ndarray], arrays: Mapping[str, FreeArray]) -> None:
        self._place, self._arrays = place, arrays
        self._words: dict[Terms, tuple[Word, ...]] = {}
        self._sums: dict[Terms, dict[tuple[Word, ...], Terms]] = {}
        self._keys: dict[Terms, int] = {}
        self._numbers: dict[str, int] = {}
        self._forms = Forms()
        self._parts = 0

    def words(self, terms: Terms) -> tuple[Word, ...]:
        """The elements that a sum depends on."""
        found = self._words.get(terms)
        if found is None:
            found = self._words[terms] = words_of(Form(0, terms), Evaluation(self._place))
        return found

    def _key(self, terms: Terms) -> int:
        """The number of a sum, the same of sums that several runs have made alike."""
        found = self._keys.get(terms)
        if found is None:
            each = [(atom.name, [(a.constant, self._key(a.terms)) for a in atom.arguments], f) for atom, f in terms]
            found = self._keys[terms] = self._numbers.setdefault(repr(sorted(each)), len(self._numbers))
        return found

    def solve(self, constraints: Sequence[Constraint]) -> dict[Word, int] | None:
        """Values with which all hold, by their numbers; None if there are none. Raises UndecidedError."""
        joined: dict[int, Constraint] = {}
        for terms, each in constraints:
            key = self._key(terms)
            both = each.joined(joined[key][1]) if key in joined else each
            joined[key] = terms, both
            if both.low > both.high:
                return None
        words = sorted({word for terms, _ in constraints for word in self.words(terms)})
        numbers: Domains = {word: self._arrays[word[0]].numbers(word[1]) for word in words}
        self._parts = 0
        found = self._solve([*joined.values(), *self.rising(words)], numbers)
        usual = {word: self._arrays[word[0]].usual[word[1]] for word in words}
        if found is None:
            return None
        return {word: usual[word] if usual[word] in each else int(each[0]) for word, each in found.items()}

    def rising(self, words: Sequence[Word]) -> Iterator[Constraint]:
        """What elements of one array that rise have in common."""
        for (name, first), (other, second) in pairwise(words):
            rises = self._arrays[name].rises
            if name == other and rises is not None:
                most, far = self._arrays[name].most, second - first
                one, two = (self._forms.element(name, constant(n), most) for n in (first, second))
                yield two.plus(one, -1).terms, Condition(0, far * rises[0], far * rises[1])

    def _solve(self, constraints: Sequence[Constraint], domains: Domains) -> Domains | None:
        domains = dict(domains)
        left = self._narrow(constraints, domains)
        if not left:
            return None if left is None else domains
        self._parts += 1
        open_words = {w for terms, _ in left for w in self.words(terms) if len(domains[w]) > 1}
        if not open_words:  # the last round has left one value of each
            return self._solve(left, domains)
        word = min(open_words, key=lambda w: (len(domains[w]), w))
        if self._parts > _MOST_PARTS:
            raise UndecidedError(word)
        half = len(domains[word]) // 2
        for part in (domains[word][:half], domains[word][half:]):
            found = self._solve(left, {**domains, word: part})
            if found is not None:
                return found
        return None

    def _narrow(self, constraints: Sequence[Constraint], domains: Domains) -> list[Constraint] | None:
        """Leave out values with which a constraint fails; those that do not yet hold for all, None if one cannot."""
        left, before = list(constraints), -1
        for _ in range(_MOST_ROUNDS):
            if before == (before := sum(map(len, domains.values()))):
                break
            kept = []
            for each in left:
                held = self._apply(each, domains)
                if held is None:
                    return None
                if not held:
                    kept.append(each)
            left = kept
        return left

    def _apply(self, constraint: Constraint, domains: Domains) -> bool | None:
        """Leave out values with which it fails; whether it holds for all others, None if for none."""
        terms, each = constraint
        words = self.words(terms)
        if prod(len(domains[w]) for w in words) <= _TOGETHER:
            return self._one_by_one(constraint, words, domains)
        self._parts += 1
        box = Box(Evaluation(self._place), {w: (int(domains[w][0]), int(domains[w][-1])) for w in words})
        sums = {w: (Form(0, part), box.bounds(Form(0, part))) for w, part in self._sums_of(terms).items()}
        low, high = (sum(ends[n] for _, ends in sums.values()) for n in (0, 1))
        if low > each.high or high < each.low:
            return None
        for mine, (form, ends) in sums.items():
            limits = each.low - (high - ends[1]), each.high - (low - ends[0])
            for word in mine if ends[0] < limits[0] or limits[1] < ends[1] else ():
                fits = self._fitting(box, form, mine, word, domains[word], limits)
                self._parts, box.looks = self._parts + box.looks // _LOOKS_OF_PART, 0
                if not len(fits):
                    return None
                domains[word] = fits
        return each.holds_between(low, high)

    def _fitting(
        self, box: Box, form: Form, words: Sequence[Word], word: Word, domain: range | np.ndarray, limits: Ends
    ) -> range | np.ndarray:  # fmt: skip
        """Those values of an element with which a sum of such of these words may be within limits."""
        if len(words) == 1 and len(domain) <= _TOGETHER:
            values = _array(domain)
            share = self._value(form.terms, {word: values})
            few: np.ndarray = values[(share >= limits[0]) & (share <= limits[1])]
            return few
        found = box.fitting(form, word, limits)
        first, last = found if found is not None else (0, -1)
        if isinstance(domain, range):
            return range(first, last + 1)
        return domain[(domain >= first) & (domain <= last)]

    def _one_by_one(self, constraint: Constraint, words: Sequence[Word], domains: Domains) -> bool | None:
        grid = np.meshgrid(*(_array(domains[w]) for w in words), indexing="ij")
        value = self._value(constraint[0], {w: g.ravel() for w, g in zip(words, grid, strict=True)})
        shape = tuple(len(domains[w]) for w in words)
        holds = np.broadcast_to(np.asarray(constraint[1].holds(value), dtype=bool), (prod(shape),)).reshape(shape)
        if not holds.any():
            return None
        for n, word in enumerate(words):
            domains[word] = _array(domains[word])[holds.any(axis=tuple(m for m in range(len(words)) if m != n))]
        return bool(holds.all())

    def _sums_of(self, terms: Terms) -> Mapping[tuple[Word, ...], Terms]:
        """The parts of a sum by the elements on which they depend."""
        if terms not in self._sums:
            parts = self._sums[terms] = {}
            for each in terms:
                mine = self.words((each,))
                parts[mine] = (*parts.get(mine, ()), each)
        return self._sums[terms]

    def _value(self, terms: Terms, values: Mapping[Word, np.ndarray]) -> Any:
        return Evaluation(self._place, values).sum(Form(0, terms))


def _array(domain: range | np.ndarray) -> np.ndarray:
    return np.arange(domain.start, domain.stop, dtype=np.int64) if isinstance(domain, range) else domain
