"""Integers of one run that depend on free inputs: the value in this run, and the expression for all others.

Such an integer computes as any other one does, and keeps its expression. Wherever the run depends on its value (a
branch, an address, a count: whatever asks for its truth, its hash or the plain integer) the values for which the run
would continue in the same way are noted as a condition. Python does not ask where it wants an index or the end of a
range: ``int(...)`` belongs there. Nor does it where the left operand is True or False: there are no such numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from pipesim.ptx.free.arrays import FreeArray
from pipesim.ptx.free.conditions import Conditions
from pipesim.ptx.free.forms import (
    Atom,
    Form,
    Forms,
    bounds,
    bounds_of,
    conjunction,
    constant,
    disjunction,
    exclusive_or,
    is_equal,
    is_less,
    product,
    quotient_of,
    remainder_of,
    shifted_left,
    shifted_right,
)


class FreeInputs(Conditions):
    """The free inputs of one run, and the conditions under which the run is also that of other inputs.

    ``fixed``: they have only the values of this run. ``nearby``: of words values nearby are looked for.
    """

    def __init__(self, *, fixed: bool = False, nearby: bool = False) -> None:
        super().__init__()
        self._fixed, self._nearby = fixed, nearby
        self.laps: dict[str, Form] = {}  #: which words of the launch add to loops, by their names
        self.arrays: dict[str, FreeArray] = {}  #: of which an element was asked for
        self.before: tuple[FreeInputs, ...] = ()  #: those of runs before, which led to this one

    def free(self, name: str, now: int, low: int, high: int) -> int:
        """A free input with its value in this run; a plain integer where it has only one."""
        if self._fixed:
            return now
        self.now[name] = now
        return self.integer(now, self.forms.free(name, low, high))

    def word(self, name: str, now: int, high: int) -> int:
        """A word of the launch, of which values nearby are looked for."""
        return self.integer(now, self.forms.word(name, now, high)) if self._nearby else now

    def held(self, value: Any) -> Any:
        """A value for which words nearby are held to those of this run."""
        return self.integer(_plain(value), self.forms.held(value.form)) if value.__class__ is Varying else value

    def lengthen(self, name: str, laps: Form, watched: Iterable[Atom], compared: list[Form]) -> None:
        """How many laps more than in this run a loop is gone through, which a word says; ``compared``: with what."""
        others = {atom: each for atom, each in self.forms.watched.items() if each is not compared}
        self.laps[name], self.forms.watched = laps, others | dict.fromkeys(watched, compared)

    def element(self, array: FreeArray, index: int, now: int) -> int:
        """An element of a free array with its value in this run. ``index``: it does not depend on such elements."""
        if self._fixed:
            return now
        self.arrays[array.name] = array
        numbers = array.numbers(index) if array.rises and index.__class__ is int else range(array.most + 1)
        number = self.forms.element(array.name, form_of(index), numbers.stop - 1, numbers.start)
        return self.integer(now, number.times(array.step).plus(constant(array.low)))

    def integer(self, now: int, form: Form) -> int:
        """An integer with its expression; a plain one where that is constant."""
        if len(form.terms) > _MOST_TERMS and self._nearby:  # as of a number of laps that fulfil a comparison
            form = self.forms.held(form)
        if not form.terms:
            return form.constant
        made = Varying(now)
        made.form, made.inputs = form, self
        return made

    def apply(self, function: Callable[..., int], arguments: tuple[Any, ...]) -> int:
        """A function of integers, some of which depend on free inputs."""
        arguments = tuple(each if each.__class__ is Varying else _plain(each) for each in arguments)
        plain = map(_plain, arguments)
        named = getattr(function, "__name__", "")
        if (exact := _EXACT.get(named)) is not None and exact(*arguments):
            return function(*arguments)
        known = _KNOWN.get(named)
        found = None if known is None else known(*arguments)
        if found is not None:
            return found
        forms = tuple(form_of(each) for each in arguments)
        if (held := tuple(map(self.forms.held, forms))) != forms:
            integers = (self.integer(_plain(each), form) for each, form in zip(arguments, held, strict=True))
            return self.apply(function, tuple(integers))
        name = getattr(function, "__qualname__", repr(function))
        return self.integer(function(*plain), self.forms.apply(name, function, forms, elementwise=False))

    def choose(self, p: int, a: int, b: int) -> int:
        """``a`` where a predicate holds, else ``b``."""
        forms = form_of(p), form_of(a), form_of(b)
        now = _plain(a) if _plain(p) else _plain(b)
        difference = forms[1].plus(forms[2], -1)
        if not difference.terms and (forms[0].low, forms[0].high) == (0, 1):
            return self.integer(now, forms[2].plus(forms[0], difference.constant))
        decided = self.forms.held(forms[0])
        if not decided.terms:
            return self.integer(now, forms[1] if decided.constant else forms[2])
        forms = decided, self.forms.held(forms[1]), self.forms.held(forms[2])
        low, high = min(f.low for f in forms[1:]), max(f.high for f in forms[1:])
        chosen = self.forms.apply("choose", _chosen, (self.forms.is_zero(forms[0]), *forms[1:]), low, high)
        return self.integer(now, chosen)

    def settled(self, value: Varying, atom: Atom, now: int) -> int | None:
        """A value in which a free input is this number; None where it is not known."""
        form = self.forms.settled(value.form, atom, now)
        plain = self._now(form)
        return None if plain is None else self.integer(plain, form)


_MOST_KEPT = 1 << 14  #: results of operators
_MOST_TERMS = 8  #: of a sum of words nearby


def _chosen(zero: Any, a: Any, b: Any) -> Any:
    return a * (1 - zero) + b * zero


def form_of(value: int) -> Form:
    """The expression of an integer."""
    return value.form if isinstance(value, Varying) else constant(value)


def identity(value: Any) -> Any:
    """What two integers have in common that are equal for all inputs; of anything else itself."""
    return value.form if isinstance(value, Varying) else value


def _plain(value: int) -> int:
    return int.__int__(value)


Operation = Callable[["Varying", Any], Any]


def _linear(sign_of_self: int, sign_of_other: int) -> Operation:
    def compute(self: Varying, other: Any) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        now = sign_of_self * _plain(self) + sign_of_other * _plain(other)
        if sign_of_self > 0 and other.__class__ is int:
            return self.inputs.integer(now, Form(self.form.constant + sign_of_other * other, self.form.terms))
        form = self.form if sign_of_self > 0 else self.form.times(-1)
        return self.inputs.integer(now, form.plus(form_of(other), sign_of_other))

    return compute


def _of_forms(compute: Callable[[Forms, Form, Form], Form | None], function: Callable[..., Any], name: str,
              *, reverse: bool = False) -> Operation:  # fmt: skip
    """An operator of integers: ``compute`` gives its expression, or None for an atom."""

    def of_pair(forms: Forms, a: Form, b: Form) -> Form:
        key = name, a, b
        found = forms.of_pairs.get(key)
        if found is None:
            found = forms.of_pairs[key] = of_new_pair(forms, a, b)
            if len(forms.of_pairs) > _MOST_KEPT:
                forms.of_pairs.clear()
        return found

    def of_new_pair(forms: Forms, a: Form, b: Form) -> Form:
        found = compute(forms, a, b)
        if found is not None:
            return found
        here = (a.at_now, b.at_now) if forms.words else (a, b)
        if here[0] is a and here[1] is b:
            ends = (int(function(a.constant, b.constant)),) * 2 if not (a.terms or b.terms) else bounds_of(name, a, b)
            return forms.apply(name, function, (a, b), *ends)
        now = of_pair(forms, *here)
        if min(a.low, b.low) >= 0 and max(a.high, b.high) == 1:
            return forms.apply(name, function, (a, b), 0, 1, now=now)
        forms.held(a)
        forms.held(b)
        return now

    def apply(self: Varying, other: Any) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        plain = (_plain(other), _plain(self)) if reverse else (_plain(self), _plain(other))
        pair = (form_of(other), self.form) if reverse else (self.form, form_of(other))
        return self.inputs.integer(int(function(*plain)), of_pair(self.inputs.forms, *pair))

    return apply


def _and(apply: Operation) -> Operation:
    """``a & b``: the same integer where nothing is cut off, as at the width of a register."""

    def conjoined(self: Varying, other: Any) -> Any:
        if other.__class__ is int and other >= 0 and not other & (other + 1):
            low, high = bounds(self.form)
            if low >= 0 and high <= other:
                return self
        return apply(self, other)

    return conjoined


def _compare(compute: Callable[[Forms, Form, Form], Form], *, swap: bool = False, negate: bool = False) -> Operation:
    """A comparison: 1 or 0 with its expression."""

    def apply(self: Varying, other: Any) -> Any:
        if not isinstance(other, int):
            return NotImplemented
        if other.__class__ is int and not self.form.low <= other <= self.form.high:  # it is the same for all inputs
            if self.inputs.forms.watched:
                self.inputs.forms.compare(Form(self.form.constant - other, self.form.terms))
            holds = (other < _plain(self)) is swap if compute is is_less else False
            return int(holds is not negate)
        pair = (form_of(other), self.form) if swap else (self.form, form_of(other))
        x, y = (_plain(other), _plain(self)) if swap else (_plain(self), _plain(other))
        now = (x < y) if compute is is_less else (x == y)
        found = compute(self.inputs.forms, *pair)
        found = constant(1).plus(found, -1) if negate else found
        return self.inputs.integer(int(now is not negate), found)

    return apply


class Varying(int):
    """An integer of this run with its expression; see the module."""

    form: Form
    inputs: FreeInputs

    __add__ = __radd__ = _linear(1, 1)
    __sub__, __rsub__ = _linear(1, -1), _linear(-1, 1)
    __mul__ = __rmul__ = _of_forms(product, operator.mul, "mul")
    __and__ = __rand__ = _and(_of_forms(conjunction, operator.and_, "and"))
    __or__ = __ror__ = _of_forms(disjunction, operator.or_, "or")
    __xor__ = __rxor__ = _of_forms(exclusive_or, operator.xor, "xor")
    __lshift__ = _of_forms(shifted_left, operator.lshift, "lshift")
    __rlshift__ = _of_forms(shifted_left, operator.lshift, "lshift", reverse=True)
    __rshift__ = _of_forms(shifted_right, operator.rshift, "rshift")
    __rrshift__ = _of_forms(shifted_right, operator.rshift, "rshift", reverse=True)
    __floordiv__ = _of_forms(quotient_of, operator.floordiv, "floordiv")
    __rfloordiv__ = _of_forms(quotient_of, operator.floordiv, "floordiv", reverse=True)
    __mod__ = _of_forms(remainder_of, operator.mod, "mod")
    __rmod__ = _of_forms(remainder_of, operator.mod, "mod", reverse=True)
    __lt__, __gt__ = _compare(is_less), _compare(is_less, swap=True)
    __le__, __ge__ = _compare(is_less, swap=True, negate=True), _compare(is_less, negate=True)
    __eq__, __ne__ = _compare(is_equal), _compare(is_equal, negate=True)

    def __pos__(self) -> Any:
        return self

    def __neg__(self) -> Any:
        return self * -1

    def __invert__(self) -> Any:
        return -1 - self

    def __bool__(self) -> bool:
        now = _plain(self) != 0
        self.inputs.require_truth(self.form, holds=now)
        return now

    def __int__(self) -> int:
        now = _plain(self)
        self.inputs.require(self.form, now)
        return now

    __index__ = __trunc__ = __int__

    def __hash__(self) -> int:
        return hash(int(self))

    def bit_length(self) -> int:
        """That of the plain integer."""
        return int(self).bit_length()

    def bit_count(self) -> int:
        """That of the plain integer."""
        return int(self).bit_count()


def signed(value: int, width: int) -> int:
    """The integer that ``width`` bits mean in two's complement."""
    half = 1 << width - 1
    return (value ^ half) - half


def _is_unsigned(value: int, width: int) -> bool:
    low, high = bounds(form_of(value))
    return low >= 0 and high < 1 << width


def _bfe(a: int, start: int, length: int, width: int, sign: int) -> int | None:
    if isinstance(start, Varying) or isinstance(length, Varying):
        return None
    start, length = start & 0xFF, length & 0xFF
    field = a >> start & (1 << length) - 1
    if not sign:
        return field
    inside = 0 < length <= width - start and _is_unsigned(a, width)
    return signed(field, length) & (1 << width) - 1 if inside else None


def _divides(a: int, b: int, width: int) -> bool:
    """Whether the quotient, or the remainder, is that of Python's integers, whatever the inputs."""
    varies = isinstance(b, Varying)
    return form_of(b).low > 0 and _is_unsigned(a, width) and _is_unsigned(b, width) if varies else b != 0


def _of_naturals(function: Callable[[int, int], int]) -> Callable[[int, int, int], int | None]:
    """A division with signs, of integers that have none."""

    def apply(a: int, b: int, width: int) -> int | None:
        natural = _is_unsigned(a, width - 1) and _is_unsigned(b, width - 1)
        return function(a, b) if natural and _divides(a, b, width) else None

    return apply


def _extreme(sign: int) -> Callable[[Any, Any], int]:
    """The lesser of two integers, or with a ``sign`` of -1 the greater one."""

    def apply(a: Any, b: Any) -> Any:
        below: Any = (a < b) if sign > 0 else (b < a)
        if not isinstance(below, Varying):
            return a if below else b
        held = below.inputs.forms.held
        if not (decided := held(below.form)).terms:
            return a if decided.constant else b
        forms = held(form_of(a)), held(form_of(b))
        now = min(_plain(a), _plain(b)) if sign > 0 else max(_plain(a), _plain(b))
        (la, ha), (lb, hb) = map(bounds, forms)
        ends = (min(la, lb), min(ha, hb)) if sign > 0 else (max(la, lb), max(ha, hb))
        inputs = below.inputs
        return inputs.integer(
            now, inputs.forms.apply(f"extreme {sign}", _lesser if sign > 0 else _greater, forms, *ends)
        )

    return apply


def _lesser(a: Any, b: Any) -> Any:
    return b + (a - b) * ((a < b) * 1)


def _greater(a: Any, b: Any) -> Any:
    return a + (b - a) * ((a < b) * 1)


def _signed_extreme(sign: int) -> Callable[[int, int, int], int | None]:
    choose = _extreme(sign)

    def apply(a: int, b: int, width: int) -> int | None:
        if not (_is_unsigned(a, width) and _is_unsigned(b, width)):
            return None
        return choose(signed(a, width), signed(b, width)) & (1 << width) - 1

    return apply


def _are_plain(*operands: int) -> bool:
    return not any(isinstance(each, Varying) for each in operands)


_OPERATORS = ("add", "sub", "mul", "and_", "or_", "xor", "lshift", "rshift", "lt", "le", "gt", "ge", "eq", "ne")
#: By the name of a function that is written with operators: whether what these give is exact for these operands.
_EXACT: dict[str, Callable[..., bool]] = {
    "extended": lambda a, width, _: _is_unsigned(a, width),
    "sar": lambda a, b, width: _are_plain(b) and _is_unsigned(a, width),
    "bfi": lambda _a, _b, start, length, _width: _are_plain(start, length),
    **dict.fromkeys(("shl", "shr"), lambda _a, b, _width: _are_plain(b)),
    **dict.fromkeys(("funnel_left", "funnel_right"), lambda _a, _b, c, _wrap: _are_plain(c)),
    **dict.fromkeys(_OPERATORS, lambda _a, _b: True),
}
#: By the name of any other function what it is of operators; None where that is not exact for these operands.
_KNOWN: dict[str, Callable[..., int | None]] = {
    "bfe": _bfe,
    "div": lambda a, b, width: a // b if _divides(a, b, width) else None,
    "rem": lambda a, b, width: a % b if _divides(a, b, width) else None,
    "sdiv": _of_naturals(operator.floordiv),
    "srem": _of_naturals(operator.mod),
    "least": _extreme(1),
    "most": _extreme(-1),
    "least_signed": _signed_extreme(1),
    "most_signed": _signed_extreme(-1),
}
