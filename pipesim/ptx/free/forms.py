"""Integers as expressions of free inputs: a constant and a sum of atoms, each with bounds that hold for all inputs.

An atom is a free input, or a function of other expressions. Sums are exact, without a width; where a register cuts an
integer off the atom is the remainder by a power of two, which is left out as soon as the bounds show that nothing is
cut off. Two expressions that are equal as sums are equal for all inputs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from math import gcd
from typing import Any

NO_BOUND = 1 << 200  #: of what may be any integer: no register holds as much
Terms = tuple[tuple["Atom", int], ...]  #: atoms in the order of their numbers, each with its factor, which is not 0


@dataclass(eq=False, slots=True)
class Atom:
    """A free input, or ``function`` of other expressions. ``low``, ``high``: its bounds.

    ``elementwise``: the function does with arrays of NumPy what it does with integers, element by element. A free input
    with an argument is the element of an array of the memory, at that index. ``in_memory``: it depends on such a one.
    ``shares``: what free inputs share that are 0 or more, and together no more than ``high``, which is the same of all.
    ``now``: of a *word nearby* its value in this run. Of such a one only sums and comparisons are kept, with what they
    are now, and its bounds narrow to the values, of it alone, with which all else that the run made of it, or asked
    about it, is as it is now in every place.
    """

    number: int
    name: str
    function: Callable[..., Any] | None
    arguments: tuple[Form, ...]
    low: int
    high: int
    elementwise: bool = True
    in_memory: bool = False
    shares: str = ""
    now: Form | None = None

    @property
    def operation(self) -> str:
        """The name of the function; empty for a free input, which may be called anything."""
        return self.name if self.function is not None else ""

    @property
    def is_word(self) -> bool:
        """Whether it is a word nearby, and not a comparison of some."""
        return self.now is not None and self.function is None


@dataclass(frozen=True, slots=True)
class Form:
    """``constant`` plus the sum of ``terms``."""

    constant: int
    terms: Terms

    @property
    def low(self) -> int:
        """No input gives less."""
        least, shared = self.constant, dict[str, int]()
        for atom, factor in self.terms:
            less = factor * (atom.low if factor > 0 else atom.high)
            if atom.shares:
                shared[atom.shares] = min(shared.get(atom.shares, 0), less)
            else:
                least += less
        return least + sum(shared.values()) if shared else least

    @property
    def high(self) -> int:
        """No input gives more."""
        most, shared = self.constant, dict[str, int]()
        for atom, factor in self.terms:
            more = factor * (atom.high if factor > 0 else atom.low)
            if atom.shares:
                shared[atom.shares] = max(shared.get(atom.shares, 0), more)
            else:
                most += more
        return most + sum(shared.values()) if shared else most

    @property
    def in_memory(self) -> bool:
        """Whether it depends on an element of a free array."""
        return any(atom.in_memory for atom, _ in self.terms)

    def has(self, wanted: Atom) -> bool:
        """Whether it depends on a free input."""
        return any(atom is wanted for atom in self.atoms())

    def atoms(self, descends: Callable[[Atom], bool] = lambda _: True) -> Iterator[Atom]:
        """What it depends on, each once, however many expressions share it; of those that ``descends`` what they do."""
        seen: set[Atom] = set()
        rest = [atom for atom, _ in reversed(self.terms)]
        while rest:
            atom = rest.pop()
            if atom not in seen:
                seen.add(atom)
                yield atom
                if descends(atom):
                    rest += [inner for each in reversed(atom.arguments) for inner, _ in reversed(each.terms)]

    def elements(self) -> Iterator[Atom]:
        """The elements of free arrays that it depends on, and not those in their indices."""
        inside = self.atoms(lambda atom: atom.in_memory and atom.function is not None)
        return (atom for atom in inside if atom.in_memory and atom.function is None)

    def plus(self, other: Form, factor: int = 1) -> Form:
        """The sum with a multiple of another one."""
        if not other.terms:
            return Form(self.constant + factor * other.constant, self.terms)
        if factor == -1 and self.terms == other.terms:
            return Form(self.constant - other.constant, ())
        found = dict(self.terms)
        for atom, times in other.terms:
            found[atom] = found.get(atom, 0) + times * factor
        in_order = len(found) == len(self.terms)  # of their numbers
        terms = tuple(each for each in found.items() if each[1]) if in_order else _sorted(found)
        return Form(self.constant + factor * other.constant, terms)

    def times(self, factor: int) -> Form:
        """A multiple."""
        return Form(self.constant * factor, tuple((a, f * factor) for a, f in self.terms) if factor else ())

    @property
    def at_now(self) -> Form:
        """The same with the values that words nearby have in this run."""
        rest = tuple(each for each in self.terms if each[0].now is None)
        if len(rest) == len(self.terms):
            return self
        of_words = [(atom.now, factor) for atom, factor in self.terms if atom.now is not None]
        found = Form(self.constant + sum(factor * now.constant for now, factor in of_words), rest)
        for now, factor in of_words:
            found = found.plus(Form(0, now.terms), factor) if now.terms else found
        return found

    @property
    def divisor(self) -> int:
        """The greatest number that divides it for all inputs; 0 of the constant 0."""
        return gcd(self.constant, *(f for _, f in self.terms))


def _sorted(found: Mapping[Atom, int]) -> Terms:
    return tuple(sorted(((a, f) for a, f in found.items() if f), key=lambda each: each[0].number))


def constant(value: int) -> Form:
    """The same for all inputs."""
    return Form(int(value), ())


class Forms:
    """The atoms of one run: two atoms of one function and equal arguments are one."""

    def __init__(self) -> None:
        self._known: dict[object, Atom] = {}
        self.of_pairs: dict[tuple[str, Form, Form], Form] = {}  #: what operators gave: lanes and laps ask again
        self.words: dict[str, Atom] = {}  #: words nearby that were asked for
        self._held: set[Atom] = set()  # what depends on them and is held
        #: By the terms of places with which words were compared, and not alike in all: the constants, and the words.
        self.compared_in_places: dict[Terms, dict[tuple[int, Terms], None]] = {}
        self.watched: dict[Atom, list[Form]] = {}  #: free inputs, and what depends on each and was compared

    def free(self, name: str, low: int, high: int, shares: str = "") -> Form:
        """A free input."""
        return self._form(name, None, (), low, high, shares=shares)

    def word(self, name: str, now: int, high: int) -> Form:
        """A word nearby, from 0 on."""
        form = self._form(f"{name} nearby", None, (), 0, high)
        ((atom, _),) = form.terms
        atom.now, self.words[name] = constant(now), atom
        return form

    def held(self, of: Form) -> Form:
        """An expression, with words nearby held to the values of this run, and their comparisons to the results."""
        found = of.at_now if self.words else of
        if found is not of:
            self._hold_tests(of)
            narrow(of.terms, 0, 0)
        return found

    def _hold_tests(self, of: Form) -> None:
        for atom, _ in of.terms:
            if atom.now is None or atom in self._held:
                continue
            self._held.add(atom)
            for each in atom.arguments:
                if atom.operation in ("negative", "zero"):
                    self.tested(each)
                if atom.operation == "zero":
                    self.tested(each, 1)
                elif atom.name != "negative":
                    self.held(each)

    def tested(self, of: Form, above: int = 0) -> Form:
        """An expression of which, whatever words nearby may be, it is the same in each place whether it is below a
        number; with their values in this run.
        """
        found = of.at_now if self.words else of
        if found is of:
            return of
        self._hold_tests(of)
        low, high = bounds(found)
        if low >= above:
            narrow(of.terms, low - above, NO_BOUND)
        elif high < above:
            narrow(of.terms, NO_BOUND, above - 1 - high)
        elif found.in_memory:
            narrow(of.terms, 0, 0)
        else:
            words = tuple(each for each in of.terms if each[0].is_word)
            self.compared_in_places.setdefault(found.terms, {})[found.constant - above, words] = None
        return found

    def element(self, array: str, index: Form, high: int, low: int = 0) -> Form:
        """An element of a free array: the number of its value."""
        return self._form(array, None, (index,), low, high)

    def apply(
        self, name: str, function: Callable[..., Any], arguments: tuple[Form, ...], low: int = -NO_BOUND,
        high: int = NO_BOUND, *, elementwise: bool = True, now: Form | None = None,
    ) -> Form:  # fmt: skip
        """A function of expressions, with bounds of its result; ``now``: what it is, of words nearby."""
        return self._form(name, function, arguments, low, high, elementwise=elementwise, now=now)

    def _form(
        self, name: str, function: Callable[..., Any] | None, arguments: tuple[Form, ...], low: int, high: int,
        *, elementwise: bool = True, shares: str = "", now: Form | None = None,
    ) -> Form:  # fmt: skip
        if low == high:
            return constant(int(low))
        if self.words and now is None:
            arguments = tuple(map(self.held, arguments))
            if function is not None and arguments and not any(each.terms for each in arguments):
                return constant(int(function(*(each.constant for each in arguments))))
        key = name, function, arguments
        atom = self._known.get(key)
        if atom is None:
            in_memory = (function is None and bool(arguments)) or any(each.in_memory for each in arguments)
            atom = Atom(len(self._known), name, function, arguments, low, high, elementwise, in_memory, shares, now)
            self._known[key] = atom
        return Form(0, ((atom, 1),))

    def quotient(self, of: Form, divisor: int) -> Form:
        """The integer at or below the quotient by a positive number."""
        whole = Form(of.constant // divisor, tuple((a, f // divisor) for a, f in of.terms if not f % divisor))
        rest = Form(of.constant % divisor, tuple((a, f) for a, f in of.terms if f % divisor))
        low, high = (bound // divisor for bound in bounds(rest))
        if low == high:
            return Form(whole.constant + low, whole.terms)
        near = Form(rest.constant, tuple((a, n) for a, f in rest.terms if (n := _nearest(f, divisor))))
        least, most = (bound // divisor for bound in bounds(near))
        if least == most:  # as of a product in place of a division, 6 * 2863311531 >> 33
            multiples = of.plus(near, -1).terms
            return Form(whole.constant + least, tuple((a, f // divisor) for a, f in multiples))
        if (now := rest.at_now) is not rest and now.terms:
            return whole.plus(self.quotient(self.held(rest), divisor))
        if now is not rest:
            found = now.constant // divisor
            self.tested(rest, found * divisor)
            self.tested(rest, (found + 1) * divisor)
            return Form(whole.constant + found, whole.terms)
        part = self.apply("quotient", operator.floordiv, (rest, constant(divisor)), low, high)
        return whole.plus(part)

    def remainder(self, of: Form, width: int) -> Form:
        """The low bits: the remainder by a power of two."""
        size = 1 << width
        inside, near_terms = _at_width(of.terms, size)
        inside = Form(inside.constant + of.constant, inside.terms)
        near = Form(inside.constant % size, near_terms)
        for form in (of, inside, near):
            low, high = bounds(form)
            if high < (low // size + 1) * size:
                return Form(form.constant - low // size * size, form.terms)
        if (now := of.at_now) is not of:
            low, high = (bound // size for bound in bounds(now))
            if low != high:
                return self.remainder(self.held(of), width)
            self.tested(of, low * size)
            self.tested(of, (low + 1) * size)
            return Form(of.constant - low * size, of.terms)
        return self.apply("remainder", operator.mod, (near, constant(size)), 0, size - 1)

    def cut_off(self, of: Form, like: Atom) -> Form:
        """The remainder by the power of two by which another one is."""
        return self.remainder(of, like.arguments[1].constant.bit_length() - 1)

    def settled(self, of: Form, atom: Atom, value: int) -> Form:
        """An expression in which a free input has this value."""

        def of_form(form: Form) -> Form:
            found = constant(form.constant)
            for each, factor in form.terms:
                found = found.plus(of_atom(each), factor)
            return found

        @cache
        def of_atom(each: Atom) -> Form:
            part = constant(value) if each is atom else Form(0, ((each, 1),))
            if each.function is None or not part.has(atom):
                return part
            arguments = tuple(map(of_form, each.arguments))
            if any(a.terms for a in arguments):
                return self.apply(
                    each.name, each.function, arguments, each.low, each.high, elementwise=each.elementwise
                )
            return constant(int(each.function(*(a.constant for a in arguments))))

        return of_form(of)

    def compare(self, of: Form) -> None:
        """An expression was compared."""
        for compared in {
            id(each): each for atom, _ in of.terms if (each := self.watched.get(atom)) is not None
        }.values():
            compared.append(of)

    def is_negative(self, of: Form) -> Form:
        """1 where it is below 0, else 0."""
        low, high = bounds(of)
        self.compare(of)
        if high < 0 or low >= 0:
            return constant(high < 0)
        now = of.at_now
        return self.apply("negative", _is_negative, (of,), 0, 1, now=None if now is of else self.is_negative(now))

    def is_zero(self, of: Form) -> Form:
        """1 where it is 0, else 0."""
        low, high = bounds(of)
        self.compare(of)
        if not of.terms or low > 0 or high < 0:
            return constant(not of.terms and of.constant == 0)
        factor = gcd(*(f for _, f in of.terms))
        if of.constant % factor or _never_zero(of):
            return constant(0)
        sign = -factor if of.terms[0][1] < 0 else factor
        least = Form(of.constant // sign, tuple((a, f // sign) for a, f in of.terms))
        now = least.at_now
        return self.apply("zero", _is_zero, (least,), 0, 1, now=None if now is least else self.is_zero(now))


def _never_zero(of: Form) -> bool:
    """Whether its parts are multiples of a number and it is not, as where a register cuts off 40 t + 51."""
    factor, rest = 0, of.constant
    for atom, each in of.terms:
        multiple = 1
        if atom.operation == "remainder":
            inside, size = atom.arguments
            multiple = gcd(size.constant, *(f for _, f in inside.terms))
            rest += each * (inside.constant % multiple)
        factor = gcd(factor, each * multiple)
    return rest % factor != 0


def _nearest(factor: int, size: int) -> int:
    """The number nearest to 0 that is the same modulo ``size``."""
    least = factor % size
    return least - size if least > size // 2 else least


def narrow(terms: Terms, down: int, up: int) -> None:
    """Narrow the bounds of words nearby so that each alone changes a sum by no more than that."""
    for atom, factor in terms:
        if atom.is_word:
            less, more = (down, up) if factor > 0 else (up, down)
            now = atom.now.constant if atom.now is not None else 0
            atom.low = max(atom.low, now - less // abs(factor))
            atom.high = min(atom.high, now + more // abs(factor))


def bounds(of: Form) -> tuple[int, int]:
    """Bounds that take into account that an expression less its whole multiples is what the division leaves."""
    for atom, _ in of.terms:
        if atom.name == "quotient" and atom.function is not None:
            low, high = _bounds_of_rest(of.terms)
            return low + of.constant, high + of.constant
    return of.low, of.high


@lru_cache(maxsize=4096)
def _at_width(terms: Terms, size: int) -> tuple[Form, Terms]:
    """A sum without what was cut off at a width, or a larger one, which is irrelevant; and with the nearest factors."""
    inside = Form(0, terms)
    for atom, factor in terms:
        if atom.operation == "remainder" and not atom.arguments[1].constant % size:
            inside = inside.plus(Form(0, ((atom, 1),)), -factor).plus(atom.arguments[0], factor)
    return inside, tuple((a, n) for a, f in inside.terms if (n := _nearest(f, size)))


@lru_cache(maxsize=4096)  # of words nearby: those at the first call, which are no narrower
def _bounds_of_rest(terms: Terms) -> tuple[int, int]:
    of = Form(0, terms)
    low, high = of.low, of.high
    for rest, (less, more) in rests_of_division(terms):
        low, high = max(low, rest.low + less), min(high, rest.high + more)
    return low, high


def rests_of_division(terms: Terms) -> Iterator[tuple[Form, tuple[int, int]]]:
    """A sum without a whole multiple of a quotient and what was divided, and from what to what the difference is."""
    for atom, factor in terms:
        if atom.operation == "quotient" and not factor % (divisor := atom.arguments[1].constant):
            times = -factor // divisor
            rest = Form(0, terms).plus(Form(0, ((atom, 1),)), -factor).plus(atom.arguments[0], -times)
            yield rest, (min(0, times * (divisor - 1)), max(0, times * (divisor - 1)))


def _is_negative(of: Any) -> Any:
    return (of < 0) * 1


def _is_zero(of: Any) -> Any:
    return (of == 0) * 1


# the expressions of Python's operators on integers; None where the result is not a sum and needs an
# atom of its own


def bounds_of(name: str, a: Form, b: Form) -> tuple[int, int]:
    """Bounds of an operator's result that has no expression of its own."""
    if name == "mul":
        ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        return min(ends), max(ends)
    (low, high), (other_low, other_high) = bounds(a), bounds(b)
    if low < 0 or other_low < 0:
        return -NO_BOUND, NO_BOUND
    if name == "and":
        return 0, min(high, other_high)
    if name in ("or", "xor"):
        return max(low, other_low) if name == "or" else 0, (1 << max(high, other_high).bit_length()) - 1
    if name == "rshift" or (name == "floordiv" and other_low > 0):
        return 0, high
    if name == "mod" and other_low > 0:
        return 0, min(high, other_high - 1)
    return -NO_BOUND, NO_BOUND


def product(_: Forms, a: Form, b: Form) -> Form | None:
    """``a * b``."""
    if not b.terms:
        return a.times(b.constant)
    return None if a.terms else b.times(a.constant)


def conjunction(forms: Forms, a: Form, b: Form) -> Form | None:
    """``a & b``, where one of them is a mask."""
    if not a.terms:
        a, b = b, a
    if b.terms:
        return None
    mask = b.constant
    if mask >= 0 and not mask & (mask + 1):
        return forms.remainder(a, mask.bit_length())
    low = (mask & -mask).bit_length() - 1  # bits that are cleared below the others
    least, most = bounds(a)
    whole = most.bit_length()
    if mask < 0 or mask >> low & (mask >> low) + 1:
        return None  # more than one field of bits
    if least >= 0 and mask.bit_length() >= whole:
        return a.plus(forms.remainder(a, low), -1)
    return forms.remainder(forms.quotient(a, 1 << low), mask.bit_length() - low).times(1 << low)


def disjunction(_: Forms, a: Form, b: Form) -> Form | None:
    """``a | b``, where they have no bits in common."""
    if not a.terms:
        a, b = b, a
    size = gcd(*(f for _, f in a.terms)) & -gcd(*(f for _, f in a.terms))  # of the bits that only the constant has
    if not b.terms and 0 <= b.constant < size:
        low = a.constant % size
        return Form(a.constant - low + (low | b.constant), a.terms)
    for one, other in ((a, b), (b, a)):
        zeros, (low, high) = (one.divisor & -one.divisor).bit_length() - 1, bounds(other)
        if bounds(one)[0] >= 0 and low >= 0 and (zeros < 0 or high < 1 << zeros):
            return one.plus(other)
    return None


def exclusive_or(forms: Forms, a: Form, b: Form) -> Form | None:
    """``a ^ b``, where bits of a constant are inverted."""
    if not a.terms:
        a, b = b, a
    low, high = bounds(a)
    if b.terms or low < 0 or b.constant < 0:
        return None
    bits = b.constant.bit_length()
    if not b.constant:
        return a
    if high < 1 << bits:
        if not b.constant & (b.constant + 1):  # all bits are inverted
            return constant(b.constant).plus(a, -1)
        if b.constant == 1 << bits - 1:  # the highest one is
            return forms.remainder(Form(a.constant + b.constant, a.terms), bits)
    return None


def shifted_left(_: Forms, a: Form, b: Form) -> Form | None:
    """``a << b``."""
    return None if b.terms or b.constant < 0 else a.times(1 << b.constant)


def shifted_right(forms: Forms, a: Form, b: Form) -> Form | None:
    """``a >> b``."""
    return None if b.terms or b.constant < 0 else forms.quotient(a, 1 << b.constant)


def quotient_of(forms: Forms, a: Form, b: Form) -> Form | None:
    """``a // b``."""
    return None if b.terms or b.constant <= 0 else forms.quotient(a, b.constant)


def remainder_of(forms: Forms, a: Form, b: Form) -> Form | None:
    """``a % b``."""
    return None if b.terms or b.constant <= 0 else a.plus(forms.quotient(a, b.constant), -b.constant)


def is_less(forms: Forms, a: Form, b: Form) -> Form:
    """``a < b``, 1 or 0."""
    return forms.is_negative(a.plus(b, -1))


def is_equal(forms: Forms, a: Form, b: Form) -> Form:
    """``a == b``, 1 or 0."""
    return forms.is_zero(a.plus(b, -1))
