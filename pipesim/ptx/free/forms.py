"""Integers as expressions of free inputs: a constant and a sum of atoms, each with bounds that hold for all inputs.

An atom is a free input, or a function of other expressions. Sums are exact, without a width; where a register cuts an
integer off the atom is the remainder by a power of two, which is left out as soon as the bounds show that nothing is
cut off. Two expressions that are equal as sums are equal for all inputs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import Any

NO_BOUND = 1 << 200  #: of what may be any integer: no register holds as much
Terms = tuple[tuple["Atom", int], ...]  #: atoms in the order of their numbers, each with its factor, which is not 0


@dataclass(frozen=True, eq=False, slots=True)
class Atom:
    """A free input, or ``function`` of other expressions. ``low``, ``high``: its bounds.

    ``elementwise``: the function does with arrays of NumPy what it does with integers, element by element.
    """

    number: int
    name: str
    function: Callable[..., Any] | None
    arguments: tuple[Form, ...]
    low: int
    high: int
    elementwise: bool = True


@dataclass(frozen=True, slots=True)
class Form:
    """``constant`` plus the sum of ``terms``."""

    constant: int
    terms: Terms

    @property
    def low(self) -> int:
        """No input gives less."""
        return self.constant + sum(f * (a.low if f > 0 else a.high) for a, f in self.terms)

    @property
    def high(self) -> int:
        """No input gives more."""
        return self.constant + sum(f * (a.high if f > 0 else a.low) for a, f in self.terms)

    def plus(self, other: Form, factor: int = 1) -> Form:
        """The sum with a multiple of another one."""
        if not other.terms:
            return Form(self.constant + factor * other.constant, self.terms)
        found = dict(self.terms)
        for atom, times in other.terms:
            found[atom] = found.get(atom, 0) + times * factor
        return Form(self.constant + factor * other.constant, _sorted(found))

    def times(self, factor: int) -> Form:
        """A multiple."""
        return Form(self.constant * factor, tuple((a, f * factor) for a, f in self.terms) if factor else ())

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

    def free(self, name: str, low: int, high: int) -> Form:
        """A free input."""
        return self._form(name, None, (), low, high)

    def apply(
        self, name: str, function: Callable[..., Any], arguments: tuple[Form, ...], low: int = -NO_BOUND,
        high: int = NO_BOUND, *, elementwise: bool = True,
    ) -> Form:  # fmt: skip
        """A function of expressions, with bounds of its result."""
        return self._form(name, function, arguments, low, high, elementwise=elementwise)

    def _form(
        self, name: str, function: Callable[..., Any] | None, arguments: tuple[Form, ...], low: int, high: int,
        *, elementwise: bool = True,
    ) -> Form:  # fmt: skip
        if low == high:
            return constant(int(low))
        key = name, function, arguments
        atom = self._known.get(key)
        if atom is None:
            atom = Atom(len(self._known), name, function, arguments, low, high, elementwise)
            self._known[key] = atom
        return Form(0, ((atom, 1),))

    def quotient(self, of: Form, divisor: int) -> Form:
        """The integer at or below the quotient by a positive number."""
        whole = Form(of.constant // divisor, tuple((a, f // divisor) for a, f in of.terms if not f % divisor))
        rest = Form(of.constant % divisor, tuple((a, f) for a, f in of.terms if f % divisor))
        low, high = (bound // divisor for bound in bounds(rest))
        if low == high:
            return Form(whole.constant + low, whole.terms)
        part = self.apply("quotient", operator.floordiv, (rest, constant(divisor)), low, high)
        return whole.plus(part)

    def remainder(self, of: Form, width: int) -> Form:
        """The low bits: the remainder by a power of two."""
        size = 1 << width
        inside = of
        for atom, factor in of.terms:  # what was cut off at this width or a larger one is irrelevant
            if atom.name == "remainder" and not atom.arguments[1].constant % size:
                inside = inside.plus(Form(0, ((atom, 1),)), -factor).plus(atom.arguments[0], factor)
        near = Form(inside.constant % size, tuple((a, n) for a, f in inside.terms if (n := _nearest(f, size))))
        for form in (of, inside, near):
            low, high = bounds(form)
            if high < (low // size + 1) * size:
                return Form(form.constant - low // size * size, form.terms)
        return self.apply("remainder", operator.mod, (near, constant(size)), 0, size - 1)

    def is_negative(self, of: Form) -> Form:
        """1 where it is below 0, else 0."""
        low, high = bounds(of)
        if high < 0 or low >= 0:
            return constant(high < 0)
        return self.apply("negative", _is_negative, (of,), 0, 1)

    def is_zero(self, of: Form) -> Form:
        """1 where it is 0, else 0."""
        low, high = bounds(of)
        if not of.terms or low > 0 or high < 0:
            return constant(not of.terms and of.constant == 0)
        factor = gcd(*(f for _, f in of.terms))
        if of.constant % factor:
            return constant(0)
        sign = -factor if of.terms[0][1] < 0 else factor
        least = Form(of.constant // sign, tuple((a, f // sign) for a, f in of.terms))
        return self.apply("zero", _is_zero, (least,), 0, 1)


def _nearest(factor: int, size: int) -> int:
    """The number nearest to 0 that is the same modulo ``size``."""
    least = factor % size
    return least - size if least > size // 2 else least


@lru_cache(maxsize=4096)
def bounds(of: Form) -> tuple[int, int]:
    """Bounds that take into account that an expression less its whole multiples is what the division leaves."""
    low, high = of.low, of.high
    for atom, factor in of.terms:
        if atom.name == "quotient" and not factor % (divisor := atom.arguments[1].constant):
            times = -factor // divisor
            rest = of.plus(Form(0, ((atom, 1),)), -factor).plus(atom.arguments[0], -times)
            left = sorted((0, times * (divisor - 1)))
            low, high = max(low, rest.low + left[0]), min(high, rest.high + left[1])
    return low, high


def _is_negative(of: Any) -> Any:
    return (of < 0) * 1


def _is_zero(of: Any) -> Any:
    return (of == 0) * 1
