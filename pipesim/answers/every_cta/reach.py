"""How far one free input may be raised with which a run holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from pipesim.answers.every_cta.boxes import Box, Ends
from pipesim.answers.every_cta.conditions import Evaluation, completed
from pipesim.ptx.free.conditions import Condition
from pipesim.ptx.free.forms import Atom, Form
from pipesim.ptx.free.varying import FreeInputs
from pipesim.trace.arrays import np

_FEW, _MOST_TRIED = 1 << 8, 1 << 14  #: values that are evaluated at first, and in all


def holds_to(inputs: FreeInputs, name: str, most: int, places: Mapping[str, np.ndarray]) -> int:
    """The last value of an input, from that of the run on and up to ``most``, to which all conditions hold.

    ``places``: other inputs, for each of whose values they are to hold. Of an expression that neither rises nor falls
    with the input a limited number of values is evaluated; of the others its bounds may tell.
    """
    if name not in inputs.now:
        return most
    directions = _Directions(name)
    for terms, condition in inputs.conditions.items():
        most = _ReachSearch(condition, Form(0, terms), inputs, name, most, places, directions).end()
    return max(most, inputs.now[name])


class _Directions:
    """How expressions change as one input rises: 1 if they never fall, -1 if they never rise, 0 if they stay, None if
    that is not known. Of what occurs in several expressions it is found out once.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._known: dict[Atom, int | None] = {}

    def of(self, form: Form) -> int | None:
        """That of an expression."""
        each = [(self.of_atom(atom), 1 if factor > 0 else -1) for atom, factor in form.terms]
        found = {sign * factor if sign is not None else None for sign, factor in each} - {0}
        return 0 if not found else found.pop() if len(found) == 1 else None

    def of_atom(self, atom: Atom) -> int | None:
        """That of one term, with a factor above 0."""
        if atom not in self._known:
            self._known[atom] = self._found(atom)
        return self._known[atom]

    def _found(self, atom: Atom) -> int | None:
        if atom.function is None and not atom.arguments:
            return int(atom.name == self._name)
        found = {self.of(argument) for argument in atom.arguments} - {0}
        if not found:
            return 0
        sign = found.pop() if len(found) == 1 else None
        return None if sign is None or atom.operation not in _MONOTONE else sign * _MONOTONE[atom.operation]


#: Functions of expressions that rise, or fall, with each of them, of which a divisor is above 0.
_MONOTONE = {"quotient": 1, "extreme 1": 1, "extreme -1": 1, "negative": -1}


@dataclass(frozen=True)
class _ReachSearch:
    """One condition, on an expression, as an input is raised from its value in the run up to ``most``."""

    condition: Condition
    form: Form
    inputs: FreeInputs
    name: str
    most: int
    places: Mapping[str, np.ndarray]
    directions: _Directions

    def end(self) -> int:
        """The last value up to which it is known to hold."""
        rises = self.directions.of(self.form)
        if rises is not None and not (rises and self._may_be_never()):
            return self._bisected() if rises else self.most
        if self._is_constant():
            return self.most
        tried = self._tried()
        return self.most if tried < self.most and self._holds_between(tried + 1, self.most) else tried

    def _with(self, value: int) -> Evaluation:
        """With a value of the input in each of the places."""
        length = len(next(iter(self.places.values())))
        return Evaluation(completed(self.inputs, {**self.places, self.name: np.full(length, value)}))

    def _bisected(self) -> int:
        """The last value up to which it holds, on an expression that rises or falls all the way."""
        low, high = self.inputs.now[self.name], self.most + 1
        while high - low > 1:
            middle = (low + high) // 2 if high <= self.most else self.most
            if np.all(self.condition.holds(self._with(middle).sum(self.form))):
                low = middle
            else:
                high = middle
        return low

    def _may_be_never(self) -> bool:
        """Whether an expression that rises or falls all the way may reach what it must never be."""
        now, end = (self._with(value).sum(self.form) for value in (self.inputs.now[self.name], self.most))
        low, high = np.minimum(now, end), np.maximum(now, end)
        return any(bool(np.any((low <= never) & (never <= high))) for never in self.condition.never)

    def _is_constant(self) -> bool:
        """Whether the expression is the same for all values of the input from that of the run on."""
        now, end = self._with(self.inputs.now[self.name]), self._with(self.most)

        def same(part: Form) -> bool:
            if self.directions.of(part) is not None:
                return bool(np.all(now.sum(part) == end.sum(part)))
            return all(self.directions.of_atom(atom) == 0 or is_same(atom) for atom, _ in part.terms)

        @cache
        def is_same(atom: Atom) -> bool:
            if self.directions.of_atom(atom) is not None:
                return same(Form(0, ((atom, 1),)))
            if atom.operation == "zero" and self.directions.of(atom.arguments[0]) is not None:
                a, b = (each.sum(atom.arguments[0]) for each in (now, end))
                return bool(np.all((np.minimum(a, b) > 0) | (np.maximum(a, b) < 0) | (a == b)))
            return all(map(same, atom.arguments))

        return same(self.form)

    def _holds_between(self, first: int, last: int) -> bool:
        """Whether bounds show that it holds where the input lies in this range, wherever the others are."""
        values = completed(self.inputs, self.places)
        ranges = {(name, 0): (int(np.min(each)), int(np.max(each))) for name, each in values.items()}
        box = _InputBox(Evaluation({}), ranges | {(self.name, 0): (first, last)})
        return self.condition.holds_between(*box.bounds(self.form))

    def _tried(self) -> int:
        """The last value up to which it holds, of as many as are evaluated: each of the others' with each."""
        others = len(next(iter(self.places.values())))
        at, step = self.inputs.now[self.name], max(_FEW // others, 1)
        end = min(self.most, at + max(_MOST_TRIED // others, 1))
        while at < end:
            tried = np.arange(at + 1, min(at + step, end) + 1, dtype=np.int64)
            values = {each: np.resize(array, len(tried) * others) for each, array in self.places.items()}
            evaluation = Evaluation(completed(self.inputs, values | {self.name: np.repeat(tried, others)}))
            right = self.condition.holds(evaluation.sum(self.form))
            wrong = np.flatnonzero(~np.broadcast_to(right, len(tried) * others))
            if len(wrong):
                return int(tried[wrong[0] // others]) - 1
            at, step = int(tried[-1]), 4 * step
        return at


class _InputBox(Box):
    """The ranges of free inputs, by their names; of any other one what it can be."""

    def _ends_of(self, atom: Atom) -> Ends | None:
        known = self.ends.get((atom.name, 0)) if not atom.arguments else None
        return None if atom.function is not None else known or (atom.low, atom.high)
