"""What a register of a warp can hold: one integer for all lanes, 32 integers, nothing known, or a try's answer.

Plain integers are Python's own, so that the expressions compiled of a kernel's text run at their speed; the other kinds
overload the operators. Integers are held without a sign, in the width of their register.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import repeat
from typing import Any, TypeAlias

from pipesim.ptx.emulate.arithmetic.intervals import BOUNDING, Interval, interval_of
from pipesim.ptx.emulate.arithmetic.known_bits import (
    COMPARES,
    NOTHING,
    OF_BITS,
    Bits,
    compared,
    either,
    moved,
    of_integer,
)
from pipesim.ptx.free.varying import Varying, identity

WARP = 32
FULL = (1 << WARP) - 1

Value: TypeAlias = Any  #: int | bool | Unknown | Lanes | Answer; Any, since the operators are the types' own


@dataclass(frozen=True, slots=True)
class Leaf:
    """Where a value comes from that is not known: ``what`` in words, and the line of the PTX.

    ``option``: how a command line gives it, if a launch could have it. ``orders``: what others have done decides it,
    as the result of an atomic: whoever has it may know that they are done.
    """

    what: str
    line: int
    option: str = ""
    orders: bool = False


def _zero_by_zero(operation: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """A product, or bitwise and: of 0 and what is not known it is 0."""

    def apply(a: Value, b: Value) -> Value:
        if isinstance(a, Unknown):
            return 0 if isinstance(b, int) and b == 0 else a.whole
        if isinstance(b, Unknown):
            return 0 if a == 0 else b.whole
        return operation(a, b)

    return apply


_times, _both = _zero_by_zero(operator.mul), _zero_by_zero(operator.and_)


def _operator(function: Callable[..., Value]) -> tuple[Callable[[Any, Any], Value], Callable[[Any, Any], Value]]:
    """An operator of a value that is not one integer, and the same with the operands in the reverse order."""
    return lambda self, other: lift(function, self, other), lambda self, other: lift(function, other, self)


class _LanewiseOperators:
    """The operators of a value that is not one integer."""

    __slots__ = ()
    __hash__ = object.__hash__

    __add__, __radd__ = _operator(operator.add)
    __sub__, __rsub__ = _operator(operator.sub)
    __mul__, __rmul__ = _operator(_times)
    __and__, __rand__ = _operator(_both)
    __or__, __ror__ = _operator(operator.or_)
    __xor__, __rxor__ = _operator(operator.xor)
    __lshift__, __rlshift__ = _operator(operator.lshift)
    __rshift__, __rrshift__ = _operator(operator.rshift)
    __lt__, __gt__ = _operator(operator.lt)[0], _operator(operator.gt)[0]
    __le__, __ge__ = _operator(operator.le)[0], _operator(operator.ge)[0]
    __eq__, __ne__ = _operator(operator.eq)[0], _operator(operator.ne)[0]

    def __pos__(self) -> Value:
        return self

    def __bool__(self) -> bool:
        raise TypeError("a value of several lanes, or an unknown one, is neither true nor false")


class Unknown(_LanewiseOperators):
    """Nothing is known about it but where it comes from."""

    __slots__ = ("leaf",)

    def __init__(self, leaf: Leaf) -> None:
        self.leaf = leaf

    @property
    def whole(self) -> Unknown:
        """The same without any bits: what a result is of which nothing is known."""
        return self

    @property
    def known(self) -> Bits:
        """The bits that are known."""
        return NOTHING

    @property
    def interval(self) -> Interval | None:
        """Between which integers it is, None if nothing is known of that."""
        return None


class PartlyKnown(Unknown):
    """Some bits are known, or between which integers it is."""

    __slots__ = ("_bounds", "_known", "_whole")

    def __init__(self, whole: Unknown, known: Bits, bounds: Interval | None = None) -> None:
        super().__init__(whole.leaf)
        self._whole, self._known, self._bounds = whole, known, bounds

    @property
    def whole(self) -> Unknown:
        """The same without any bits."""
        return self._whole

    @property
    def known(self) -> Bits:
        """The bits that are known."""
        return self._known

    @property
    def interval(self) -> Interval | None:
        """Between which integers it is, by its bits and by its bounds."""
        bits, bounds = self._known, self._bounds
        if bits.mask >= 0:
            return bounds
        return (max(bits.least, bounds[0]), min(bits.most, bounds[1])) if bounds else (bits.least, bits.most)


class Uniform(PartlyKnown):
    """The same in all threads that have it, made of the same words of memory in the same way.

    ``term``: what it is made of, as ``terms`` number it.
    """

    __slots__ = ("term", "terms")

    def __init__(self, terms: dict[object, int], key: object, plain: Unknown) -> None:
        super().__init__(plain.whole, plain.known, plain.interval)
        self.terms, self.term = terms, terms.setdefault(key, len(terms))

    @property
    def plain(self) -> Value:
        """What is known of it, without that it is the same elsewhere."""
        return partly_known(self.whole, self.known, self.interval)


def made_alike(terms: dict[object, int], found: Value, how: object, args: Iterable[Value]) -> Value:
    """What is ``found`` of a result: the same in all threads that make it so, if all that it is made of is."""
    args = (*how.args, *args) if isinstance(how, partial) else tuple(args)
    how = how.func if isinstance(how, partial) else how
    if not isinstance(found, Unknown) or any(isinstance(a, _SEVERAL) and a.__class__ is not Uniform for a in args):
        return found
    return Uniform(terms, (how, *((a.term,) if a.__class__ is Uniform else identity(a) for a in args)), found)


def partly_known(whole: Unknown, known: Bits, bounds: Interval | None = None) -> Value:
    """A value of which these bits, or bounds, are known; an integer if all bits are."""
    if known.mask == -1:
        return known.bits
    return PartlyKnown(whole, known, bounds) if known.mask or bounds else whole


class PerLane(_LanewiseOperators):
    """One value for each of the 32 lanes, of which each is an integer or unknown."""

    __slots__ = ("each",)

    def __init__(self, each: list[Value]) -> None:
        self.each = each


class Ramp(PerLane):
    """Lanes whose values rise evenly from lane to lane: ``first + step * lane``, as addresses mostly do.

    The first may vary with free inputs; as that takes long the values of all lanes are made when they are needed.
    """

    __slots__ = ("first", "step")

    def __init__(self, first: int, step: int) -> None:
        self.first, self.step = first, step

    def __getattr__(self, name: str) -> list[Value]:
        if name != "each":
            raise AttributeError(name)
        self.each = [self.first + self.step * lane for lane in range(WARP)]
        return self.each


class OpenAnswer(_LanewiseOperators):
    """What depends on whether a try of an mbarrier succeeds: the value if it did not, and the value if it did.

    Either of them may depend on another try.
    """

    __slots__ = ("asked", "if_false", "if_true")

    def __init__(self, asked: int, if_false: Value, if_true: Value) -> None:
        self.asked, self.if_false, self.if_true = asked, if_false, if_true


_SEVERAL = (Unknown, PerLane, OpenAnswer)  #: what is not one integer


def each_lane(value: Value) -> list[Value]:
    """What each lane holds."""
    return value.each if isinstance(value, PerLane) else [value] * WARP


def lanes_of(each: list[Value]) -> Value:
    """The value that holds these: one of them if all are the same."""
    first = each[0]
    if isinstance(first, Unknown):
        known = first.known, first.interval
        if not all(isinstance(v, Unknown) and (v.known, v.interval) == known for v in each):
            return PerLane(each)
        return first.plain if first.__class__ is Uniform and not all(same(first, v) for v in each) else first
    if Varying in map(type, each):
        return first if len(set(map(identity, each))) == 1 else PerLane(each)
    try:
        if first == each[1] and each.count(first) == WARP:
            return first
        step = each[1] - first
        if step.__class__ is int and step and each[-1] - first == (WARP - 1) * step:
            made = Ramp(first, step)
            if each == made.each:
                return made
    except TypeError:  # some are unknown
        pass
    return PerLane(each)


def interval(value: Value) -> Interval | None:
    """The least and the greatest integer that it may be, the same for all launches; None where it may be any."""
    if value.__class__ is int or value.__class__ is bool:
        return value, value
    return value.interval if isinstance(value, Unknown) else None


def one_of_two(unknown: Unknown, a: Value, b: Value) -> Value:
    """One of two values, by what is not known."""
    bounds = interval_of("_choose", [None, interval(a), interval(b)])
    found = partly_known(unknown.whole, either(bits_of(a), bits_of(b)), bounds)
    return made_alike(unknown.terms, found, _choose, (unknown, a, b)) if unknown.__class__ is Uniform else found


def at_most(value: Value, high: int) -> Value:
    """A natural number of which it is known that it has no bits but these."""
    return PartlyKnown(value, Bits(~high, 0)) if value.__class__ is Unknown else value


def bits_of(value: Value) -> Bits:
    """The bits that are known of a value, the same for all launches."""
    if value.__class__ is int or value.__class__ is bool:
        return of_integer(value)
    return value.known if isinstance(value, Unknown) else NOTHING


def answer_of(asked: int, if_false: Value, if_true: Value) -> Value:
    """The value that depends on this answer; the value itself if it is the same in both cases."""
    if_false, if_true = answered(if_false, {asked: False}), answered(if_true, {asked: True})
    if same(if_false, if_true):
        return if_false
    found = OpenAnswer(asked, if_false, if_true)
    return found if len(tries_of(found)) <= _MOST_TRIES else Unknown(Leaf("the answers of two tries", 0))


def tries_of(value: Value) -> frozenset[int]:
    """The tries on whose answers a value depends."""
    if value.__class__ is not OpenAnswer:
        return frozenset()
    return tries_of(value.if_false) | tries_of(value.if_true) | {value.asked}


def answered(value: Value, answers: Mapping[int, bool]) -> Value:
    """The value where some tries have these answers."""
    if value.__class__ is not OpenAnswer:
        return value
    if value.asked in answers:
        return answered(value.if_true if answers[value.asked] else value.if_false, answers)
    return answer_of(value.asked, answered(value.if_false, answers), answered(value.if_true, answers))


def same(a: Value, b: Value) -> bool:
    """Whether two values are known to be equal; an unknown one is only itself."""
    if a is b:
        return True
    if isinstance(a, int):
        return isinstance(b, int) and identity(a) == identity(b)
    if isinstance(a, PerLane) and isinstance(b, PerLane):
        return all(map(same, a.each, b.each))
    if isinstance(a, OpenAnswer) and isinstance(b, OpenAnswer):
        return a.asked == b.asked and same(a.if_false, b.if_false) and same(a.if_true, b.if_true)
    if not isinstance(a, Unknown) or not isinstance(b, Unknown):
        return False
    if isinstance(a, Uniform) or isinstance(b, Uniform):
        return isinstance(a, Uniform) and isinstance(b, Uniform) and a.term == b.term
    return a.leaf == b.leaf and a.known == b.known and a.interval == b.interval


def _says_more(leaf: Leaf, unknown: tuple[Unknown] | None) -> bool:
    """Whether it is where a result comes from: what others have done before what the launch could give."""
    return unknown is None or leaf.orders or bool(leaf.option and not unknown[0].leaf.orders)


def lift(function: Callable[..., Value], *args: Value) -> Value:
    """A function of integers, applied to values of any kind."""
    lanes = unknown = varying = None
    for a in args:
        kind = a.__class__
        if kind is int:
            continue
        if kind is PerLane or kind is Ramp:
            lanes = a
        elif kind is OpenAnswer:
            return _of_answer(function, a.asked, args)
        elif kind is Unknown or kind is PartlyKnown:
            unknown = (a.whole,) if _says_more(a.leaf, unknown) else unknown
        elif kind is Varying:
            varying = a
        elif kind is Uniform:
            return _of_alike(function, a.terms, args)
    if lanes is not None:
        even = _of_ramps(function, *args) if lanes.__class__ is Ramp and len(args) == _BOTH else None
        return lanes_of(_by_lane(function, args, known=unknown is None)) if even is None else even
    if unknown is not None and varying is None and function in _KNOWS_BITS:
        return _of_bits(function, args, unknown[0])
    if unknown is not None and function not in _TOTAL:
        return _of_bounds(function, args, unknown[0])
    if varying is not None and function not in _TOTAL:
        return varying.inputs.apply(function, args)
    found = function(*args)
    return int(found) if found.__class__ is bool else found


def _of_ramps(function: Callable[..., Value], a: Value, b: Value) -> Value | None:
    """What rises evenly from lane to lane, where operands that do so are known to give that; None where it is slow."""
    (first, rise), (second, other) = ((x.first, x.step) if x.__class__ is Ramp else (x, 0) for x in (a, b))
    if not (isinstance(first, int) and isinstance(second, int)):
        return None
    alone, step = other == 0 and second.__class__ is int and second >= 0, None  # a number on the right
    cuts = alone and function is _both and not second & (second + 1)
    if function is operator.add or function is operator.sub:
        step = rise + other if function is operator.add else rise - other
    elif alone and (function is _times or function is operator.lshift):
        step = function(rise, second)
    elif cuts or (alone and function is operator.xor and not second & (second - 1) and 31 * abs(rise) < second):
        rest = function(first + 31 * rise, second) - function(first, second)
        step = rise if rest.__class__ is int and rest == 31 * rise else None  # the same bits change in each lane
    if step is not None:
        return Ramp(function(first, second), step) if step else function(first, second)
    if first.__class__ is second.__class__ is int and 0 in (rise, other):
        comes_first = a.__class__ is Ramp
        return _of_ramp(
            function, *((first, rise, second) if comes_first else (second, other, first)), comes_first=comes_first
        )
    return None


def _of_alike(function: Callable[..., Value], terms: dict[object, int], args: tuple[Value, ...]) -> Value:
    if function in (_both, _choose) and any(isinstance(a, PerLane) for a in args):  # of predicates, not of addresses
        return lanes_of(_by_lane(function, args, known=False))
    found = lift(function, *(a.plain if a.__class__ is Uniform else a for a in args))
    return made_alike(terms, found, function, args)


def _of_bits(function: Callable[..., Value], args: tuple[Value, ...], whole: Unknown) -> Value:
    """What is known of a result of which some operands are not known, or not all bits of them."""
    if function in COMPARES and not _is_bounded(args):
        return whole
    count, width_at = _MOVES_BITS.get(function, (_BOTH, -1))
    known = [each.known if isinstance(each, Unknown) else of_integer(each) for each in args[:count]]
    if function in _MOVES_BITS:
        width, rest = 32 if width_at < 0 else args[width_at], args[count:]
        return partly_known(whole, moved(function, known, width, rest)) if integers(rest) else whole
    if function in COMPARES:
        result = compared(function, *known)
        return whole if result is None else result
    bounds = interval_of(_AT_ONCE[function].__name__, [*map(interval, args)]) if _is_bounded(args) else None
    return partly_known(whole, OF_BITS[_AT_ONCE[function]](*known), bounds)


def _of_bounds(function: Callable[..., Value], args: tuple[Value, ...], whole: Unknown) -> Value:
    """What is known of a result that has other bits than its operands."""
    name = getattr(function, "__name__", "")
    return partly_known(whole, NOTHING, interval_of(name, [*map(interval, args)])) if name in BOUNDING else whole


def _is_bounded(args: tuple[Value, ...]) -> bool:
    return any(each.__class__ is PartlyKnown for each in args)


@lru_cache(maxsize=4096)
def _of_ramp(function: Callable[..., Value], first: int, step: int, other: int, *, comes_first: bool) -> Value:
    """The function of a ramp and one integer: that of a lane's number is asked for again and again."""
    ramp = Ramp(first, step)
    args = (ramp, other) if comes_first else (other, ramp)
    return lanes_of(_by_lane(function, args, known=True))


def _by_lane(function: Callable[..., Value], args: tuple[Value, ...], *, known: bool) -> list[Value]:
    """A function of the values of each lane; an operator of Python is its own rule for what is not known.

    ``known``: none of the values that all lanes share is unknown.
    """
    columns = [a.each if isinstance(a, PerLane) else repeat(a) for a in args]
    at_once = _AT_ONCE.get(function)
    if at_once is not None:
        found = map(at_once, *columns)
        return list(map(operator.pos, found) if function in _COMPARISONS else found)
    if function in _TOTAL or (known and all(integers(a.each) for a in args if isinstance(a, PerLane))):
        return list(map(function, *columns))
    return [lift(function, *each) for each in zip(*columns, strict=False)]


def integers(each: Iterable[Value]) -> bool:
    """Whether all of these are known integers."""
    return _INTEGERS.issuperset(map(type, each))


def _of_answer(function: Callable[..., Value], asked: int, args: tuple[Value, ...]) -> Value:
    no, yes = ([answered(a, {asked: answer}) for a in args] for answer in (False, True))
    return answer_of(asked, lift(function, *no), lift(function, *yes))


def _choose(p: Value, a: Value, b: Value) -> Value:
    if isinstance(p, Unknown):
        return a if same(a, b) else one_of_two(p, a, b)
    if p.__class__ is Varying and isinstance(a, int) and isinstance(b, int):
        return p.inputs.choose(p, a, b)
    return a if p else b


#: Take unknown values as arguments, and may know their result.
_TOTAL: frozenset[Callable[..., Value]] = frozenset({_times, _both, _choose})
#: The operators of Python that do with lanes what these functions do.
_AT_ONCE: Mapping[Callable[..., Value], Callable[..., Value]] = {
    **{
        each: each
        for each in (
            operator.add, operator.sub, operator.or_, operator.xor, operator.lshift, operator.rshift,
            operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
        )
    },
    _times: operator.mul,
    _both: operator.and_,
}  # fmt: skip
#: Those that may know bits of their result; and those each bit of whose result is one of their first operands, or
#: depends on none of these: of how many, and where their width is, -1 for 32.
_KNOWS_BITS = {*COMPARES, *(function for function, at_once in _AT_ONCE.items() if at_once in OF_BITS)}
_MOVES_BITS: dict[Callable[..., Value], tuple[int, int]] = {}
#: Give Python's truth values, which become numbers.
_COMPARISONS = frozenset({operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne})
_INTEGERS = frozenset({int, bool})
_BOTH = 2  #: operands
_MOST_TRIES = 2  #: on whose answers a value depends


def moves_bits(function: Callable[..., Value], operands: int, width_at: int) -> None:
    """Each bit of its result is one of its first ``operands``, or depends on none of them."""
    _KNOWS_BITS.add(function)
    _MOVES_BITS[function] = operands, width_at


def select(p: Value, a: Value, b: Value) -> Value:
    """``a`` where the predicate holds, else ``b``."""
    if p.__class__ is int or p.__class__ is bool:
        return a if p else b
    return lift(_choose, p, a, b)


def of_lane(value: Value, lane: int) -> Value:
    """What one lane sees of a value that does not depend on an answer."""
    return value.each[lane] if isinstance(value, PerLane) else value


def join_lanes(mask: int, value: Value, other: Value) -> Value:
    """``value`` in the lanes of ``mask``, ``other`` in the rest."""
    if value is other or mask == FULL:
        return value
    if isinstance(value, OpenAnswer) or isinstance(other, OpenAnswer):
        return _joined_answers(mask, value, other)
    if isinstance(value, int) and isinstance(other, int) and identity(value) == identity(other):
        return value
    ours, theirs = each_lane(value), each_lane(other)
    return lanes_of([ours[i] if mask >> i & 1 else theirs[i] for i in range(WARP)])


def _joined_answers(mask: int, value: Value, other: Value) -> Value:
    asked = {v.asked for v in (value, other) if isinstance(v, OpenAnswer)}
    if len(asked) > 1:
        return Unknown(Leaf("the answers of two tries", 0))

    def part(v: Value, *, true: bool) -> Value:
        return (v.if_true if true else v.if_false) if isinstance(v, OpenAnswer) else v

    if_false = join_lanes(mask, part(value, true=False), part(other, true=False))
    return answer_of(asked.pop(), if_false, join_lanes(mask, part(value, true=True), part(other, true=True)))


@lru_cache(maxsize=1024)
def lanes_in(mask: int) -> tuple[int, ...]:
    """The numbers of the lanes of a mask, the lowest first."""
    return tuple(lane for lane in range(WARP) if mask >> lane & 1)


def lanes_that_hold(p: PerLane, mask: int) -> Value:
    """Which lanes of a mask have a predicate that holds; else the first of its values that is not known."""
    if integers(p.each):
        return mask & _mask_of(tuple(p.each))
    found = 0
    for lane in lanes_in(mask):
        value = p.each[lane]
        if not isinstance(value, int):
            return value
        found |= bool(value) << lane
    return found


@lru_cache(maxsize=1024)
def _mask_of(each: tuple[int, ...]) -> int:
    return sum(1 << lane for lane, one in enumerate(each) if one)


def are_known(each: Iterable[Value]) -> bool:
    """Whether all of these are known integers, of which some may vary with free inputs."""
    return all(isinstance(one, int) for one in each)


def leaf_of(value: Value) -> Leaf | None:
    """Where a value comes from that is not known in some lane; None if it is known."""
    if isinstance(value, Unknown):
        return value.leaf
    if isinstance(value, PerLane):
        return None if integers(value.each) else next((v.leaf for v in value.each if isinstance(v, Unknown)), None)
    if isinstance(value, OpenAnswer):
        return Leaf("the result of a try_wait", 0)
    return None
