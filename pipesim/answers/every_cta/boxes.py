"""Bounds of expressions where each element of free arrays lies in a range, however many values that has."""

from collections.abc import Callable, Sequence

from pipesim.answers.every_cta.conditions import Evaluation
from pipesim.ptx.free.forms import NO_BOUND, Atom, Form, rests_of_division

Word = tuple[str, int]  #: an element: its array, and the index
Ends = tuple[int, int]  #: the least and the greatest
_MOST_STEPS = 128  #: of one search for an end


class Box:
    """The ranges of elements by the numbers of their values, in ``ends``, which may change; for one cluster."""

    def __init__(self, place: Evaluation, ends: dict[Word, Ends]) -> None:
        self._place, self.ends = place, ends
        self.looks = 0  #: how often an end was tried
        self._known: dict[Atom, Ends] = {}  #: with the ranges as they are now, of what occurs more than once

    def bounds(self, form: Form) -> Ends:
        """What an expression is at least and at most."""
        self._known.clear()
        return self._bounds(form)

    def _bounds(self, form: Form) -> Ends:
        low, high = self._of_sum(form)
        for rest, (less, more) in rests_of_division(form.terms):
            least, most = self._of_sum(rest)
            low, high = max(low, form.constant + least + less), min(high, form.constant + most + more)
        return low, high

    def _of_sum(self, form: Form) -> Ends:
        low = high = form.constant
        for atom, factor in form.terms:
            least, most = self._of_atom(atom)
            low += factor * (least if factor > 0 else most)
            high += factor * (most if factor > 0 else least)
        return low, high

    def _ends_of(self, atom: Atom) -> Ends | None:
        """Of one that depends on no others in boxes."""
        if not atom.in_memory:
            return (self._place.number(Form(0, ((atom, 1),))),) * 2
        return self.ends[atom.name, self._place.number(atom.arguments[0])] if atom.function is None else None

    def _of_atom(self, atom: Atom) -> Ends:
        if atom not in self._known:
            self._known[atom] = self._computed(atom)
        return self._known[atom]

    def _computed(self, atom: Atom) -> Ends:
        if (known := self._ends_of(atom)) is not None or atom.function is None:
            return known or (atom.low, atom.high)
        parts = [self._bounds(each) for each in atom.arguments]
        if all(low == high for low, high in parts):
            return (int(atom.function(*(low for low, _ in parts))),) * 2
        low, high = _of_function(atom.operation, parts)
        return max(low, atom.low), min(high, atom.high)

    def fitting(self, form: Form, word: Word, limits: Ends) -> Ends | None:
        """The range of an element, without ends with which an expression is not within limits; None if nothing fits."""

        def may_fit(first: int, last: int) -> bool:  # of numbers, or of all with a sign
            self.looks += 1
            self.ends[word] = min(abs(first), abs(last)), max(abs(first), abs(last))
            low, high = self.bounds(form)
            return low <= limits[1] and high >= limits[0]

        first, last = self.ends[word]
        first = _first(may_fit, first, last)
        if first > last:
            return None
        self.ends[word] = first, -_first(may_fit, -last, -first)
        return self.ends[word]


def _first(may_fit: Callable[[int, int], bool], low: int, high: int) -> int:
    """A number below which nothing fits, as great as is found; above ``high`` where nothing fits."""
    size = high - low + 1
    for _ in range(_MOST_STEPS):
        if low > high:
            break
        end = min(low + size - 1, high)
        if not may_fit(low, end):
            low = end + 1
        elif size > 1:
            size = -(-size // 2)
        else:
            break
    return low


def _of_function(name: str, parts: Sequence[Ends]) -> Ends:
    (a, b), (c, d) = (*parts, (0, 0))[:2]
    match name:
        case "quotient" | "floordiv" if c > 0:
            return min(a // c, a // d), max(b // c, b // d)
        case "remainder" | "mod" if c == d > 0:
            return (a % c, b % c) if a // c == b // c else (0, c - 1)
        case "negative":
            return int(b < 0), int(a < 0)
        case "zero":
            return int(a == b == 0), int(a <= 0 <= b)
        case "extreme 1":
            return min(a, c), min(b, d)
        case "extreme -1":
            return max(a, c), max(b, d)
        case "choose":  # the second where the first is 0, else the third
            either = [parts[1 + n] for n in range(a, b + 1)]
            return min(low for low, _ in either), max(high for _, high in either)
        case "mul":
            ends = [x * y for x in (a, b) for y in (c, d)]
            return min(ends), max(ends)
        case _:
            return -NO_BOUND, NO_BOUND
