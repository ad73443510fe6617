"""Conditions on the free inputs of a run under which it is also the run of other inputs: ranges of sums of terms."""

from dataclasses import dataclass, field
from functools import cache
from math import gcd
from typing import Any

from pipesim.ptx.free.forms import NO_BOUND, Atom, Form, Forms, Terms, bounds

_MOST_EXCLUDED = 64  #: values of a sum, as those of a number of laps
_MOST_LOOSER = 256  #: bounds of a sum that are kept beside the tightest


@dataclass
class Condition:
    """What the sum of some terms must be: from ``low`` to ``high``, and none of ``never``.

    ``position``: of the instruction at which it was noted first.
    """

    position: int
    low: int = -NO_BOUND
    high: int = NO_BOUND
    never: set[int] = field(default_factory=set)

    def joined(self, other: "Condition") -> "Condition":
        """Both, on one sum."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Condition(self.position, low, high, self.never | other.never)

    def holds(self, value: Any) -> Any:
        """Of an array of values of a sum, or of one, with which it is fulfilled."""
        found: Any = True
        if self.low > -NO_BOUND:
            found = found & (value >= self.low)
        if self.high < NO_BOUND:
            found = found & (value <= self.high)
        for never in self.never:
            found = found & (value != never)
        return found

    def holds_between(self, low: int, high: int) -> bool:
        """Whether it holds for every sum from ``low`` to ``high``."""
        return self.low <= low and high <= self.high and not any(low <= each <= high for each in self.never)


class Conditions:
    """The conditions that one run has noted, each at the instruction that depends on it."""

    def __init__(self) -> None:
        self.forms = Forms()
        self.position = 0  #: of the instruction that is carried out
        self.conditions: dict[Terms, Condition] = {}
        self.now: dict[str, int] = {}  #: of each free input that is none of an array, by its name
        #: Of sums what was asked about them, as bounds that others may cover: whether they are below these numbers.
        self.looser: dict[Terms, set[int]] = {}

    def require(self, form: Form, now: int) -> None:
        """The run continues in the same way where this has its value."""
        self.require_range(form, now, now)

    def require_truth(self, form: Form, *, holds: bool) -> None:
        """The run continues in the same way where this is not 0, or where it is."""
        if len(form.terms) == 1 and (form.low, form.high) == (0, 1):
            ((atom, factor),) = form.terms
            if atom.operation in ("negative", "zero"):
                self._require_test(atom.name, atom.arguments[0], holds=holds is (factor > 0))
                return
            is_and = atom.operation == "and" and holds and factor > 0
            if is_and and all(a.low >= 0 and a.high <= 1 for a in atom.arguments):
                for each in atom.arguments:
                    self.require_truth(each, holds=True)
                return
            self.require_range(form, int(holds), int(holds))
        elif holds:
            self.exclude(form, 0)
        else:
            self.require_range(form, 0, 0)

    def _require_test(self, name: str, of: Form, *, holds: bool) -> None:
        if name == "negative":
            self.require_range(of, -NO_BOUND if holds else 0, -1 if holds else NO_BOUND)
        elif holds:
            self.require_range(of, 0, 0)
        else:
            self.exclude(of, 0)

    def require_range(self, form: Form, low: int, high: int) -> None:
        """The run continues in the same way where this lies in a range."""
        least, most = bounds(form)
        if low <= least and most <= high:
            return
        if form.at_now is not form:
            self.forms.tested(form, low)
            self.require_range(self.forms.tested(form, high + 1), low, high)
            return
        terms, at, factor = _least(form)
        low, high = low - at, high - at
        low, high = -(-low // factor), high // factor
        if _is_reversed(form):
            low, high = -high, -low
        if len(terms) == 1 and terms[0][0].operation == "quotient":
            of, by = terms[0][0].arguments
            self.require_range(of, low * by.constant, high * by.constant + by.constant - 1)
            return
        found = self._condition(terms)
        if len(looser := self.looser.setdefault(terms, set())) < _MOST_LOOSER:
            looser.update((low, high + 1))
        found.low, found.high = max(found.low, low), min(found.high, high)

    def _condition(self, terms: Terms) -> Condition:
        return self.conditions.setdefault(terms, Condition(self.position))

    def exclude(self, form: Form, value: int) -> None:
        """The run continues in the same way where this is another value."""
        if form.at_now is not form:
            self.forms.tested(form, value)
            form = self.forms.tested(form, value + 1)
        if form.low > value or form.high < value:
            return
        terms, at, factor = _least(form)
        if (value - at) % factor:
            return
        never = (value - at) // factor
        never = -never if _is_reversed(form) else never
        self._condition(terms).never.add(never)
        self.looser.setdefault(terms, set()).update((never, never + 1))

    def arrays_in_conditions(self) -> set[str]:
        """The free arrays whose elements conditions are about."""
        return {atom.name for terms in self.conditions for atom in Form(0, terms).elements()}

    # a free input that is 0 in this run, as a number of laps

    def most_of(self, atom: Atom) -> int:
        """Up to which value all conditions hold, if the other free inputs are as in this run; 0 if it is not known."""
        most = atom.high
        for terms, (low, high, never) in self._conditions_on(atom):
            factor, rest = dict(terms).get(atom, 0), tuple(each for each in terms if each[0] is not atom)
            now = self._now(Form(0, rest))
            if now is None or Form(0, rest).has(atom):
                return 0
            most = min(most, (high - now) // factor if factor > 0 else (now - low) // -factor)
            for value in never:
                laps, left = divmod(value - now, factor)
                most = laps - 1 if not left and 0 <= laps <= most else most
        return most

    def settle(self, atom: Atom, most: int) -> None:
        """What was noted of it becomes conditions on the others, with which it holds for all its values to ``most``.

        ``most``: as many as :meth:`most_of` says, or 0.
        """
        here = self.position
        for terms, (low, high, never) in self._conditions_on(atom):
            self.position = self.conditions.pop(terms).position
            factor = dict(terms).get(atom, 0)
            rest = self.forms.settled(Form(0, terms), atom, 0)
            if rest.terms:
                ends = sorted((0, factor * most))
                self.require_range(rest, low - ends[0], high - ends[1])
                if never and most > _MOST_EXCLUDED:
                    self.require(rest, self._now(rest) or 0)
                for value in never if most <= _MOST_EXCLUDED else ():
                    for laps in range(most + 1):
                        self.exclude(rest, value - factor * laps)
        self.position = here

    def decide(self, atom: Atom) -> None:
        """Let comparisons with it in conditions have the results of this run."""
        here = self.position
        for terms, found in list(self.conditions.items()):
            form = Form(0, terms)
            if any(each.function is not None for each, _ in terms) and form.has(atom):
                self.position = found.position
                decided = self.decided(form, atom, require=True)
                if decided != form:
                    del self.conditions[terms]
                    self.require_range(decided, found.low, found.high)
                    for never in found.never:
                        self.exclude(decided, never)
        self.position = here

    def decided(self, of: Form, atom: Atom, *, require: bool) -> Form:
        """An expression in which comparisons with it have the results of this run; which may be ``required``."""
        found = Form(of.constant, ())
        for each, factor in of.terms:
            part, inner = Form(0, ((each, 1),)), each.arguments[:1]
            if each.operation in ("negative", "zero", "choose", "remainder") and part.has(atom):
                inner = tuple(self.decided(a, atom, require=require) for a in inner)
            if each.operation == "remainder":
                part = self.forms.cut_off(inner[0], each)
            elif each.operation == "choose" and not inner[0].terms:
                part = self.decided(each.arguments[2 if inner[0].constant else 1], atom, require=require)
            elif each.operation in ("negative", "zero") and not inner[0].terms:
                at = inner[0].constant
                part = Form(int(at < 0 if each.operation == "negative" else at == 0), ())
            elif each.operation in ("negative", "zero") and part.has(atom) and (now := self._now(part)) is not None:
                if require:
                    self._require_test(each.name, inner[0], holds=bool(now))
                part = Form(now, ())
            found = found.plus(part, factor)
        return found

    def _conditions_on(self, atom: Atom) -> list[tuple[Terms, tuple[int, int, frozenset[int]]]]:
        return [
            (terms, (each.low, each.high, frozenset(each.never)))
            for terms, each in self.conditions.items()
            if Form(0, terms).has(atom)
        ]

    def _now(self, form: Form) -> int | None:
        """Its value in this run; None if it depends on elements of arrays."""
        if form.in_memory:
            return None

        def of_form(part: Form) -> int:
            return part.constant + sum(factor * of_atom(atom) for atom, factor in part.terms)

        @cache
        def of_atom(atom: Atom) -> int:
            return self.now[atom.name] if atom.function is None else int(atom.function(*map(of_form, atom.arguments)))

        return of_form(form)


def _is_reversed(form: Form) -> bool:
    return form.terms[0][1] < 0


def _least(form: Form) -> tuple[Terms, int, int]:
    """The terms divided by what divides them all, the first factor above 0; the constant; that divisor."""
    factor = gcd(*(f for _, f in form.terms))
    sign = -factor if _is_reversed(form) else factor
    return tuple((a, f // sign) for a, f in form.terms), form.constant, factor
