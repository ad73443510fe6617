"""What is known of a result if only some bits of its operands are: of a status in one word with a sum, for example.

Such bits are two integers, as Python holds integers, with as many bits as one likes: ``mask``, whose bits are 1 where
something is known, and ``bits``, the bits that are known, 0 elsewhere.
"""

import operator
from collections.abc import Callable, Mapping
from typing import NamedTuple


class Bits(NamedTuple):
    """The bits of an integer that are known."""

    mask: int
    bits: int

    @property
    def zeros(self) -> int:
        """Where a bit is known to be 0."""
        return self.mask & ~self.bits

    @property
    def least(self) -> int:
        """With all other bits 0."""
        return self.bits

    @property
    def most(self) -> int:
        """With all other bits 1."""
        return self.bits | ~self.mask


NOTHING = Bits(0, 0)


def of_integer(value: int) -> Bits:
    """All of an integer."""
    return Bits(-1, value)


def _and(a: Bits, b: Bits) -> Bits:
    ones = a.bits & b.bits
    return Bits(a.zeros | b.zeros | ones, ones)


def _or(a: Bits, b: Bits) -> Bits:
    ones = a.bits | b.bits
    return Bits(a.zeros & b.zeros | ones, ones)


def _xor(a: Bits, b: Bits) -> Bits:
    mask = a.mask & b.mask
    return Bits(mask, (a.bits ^ b.bits) & mask)


def _left(a: Bits, b: Bits) -> Bits:
    if b.mask != -1 or not 0 <= b.bits < _MOST_SHIFTED:
        return NOTHING
    return Bits(a.mask << b.bits | (1 << b.bits) - 1, a.bits << b.bits)


def _right(a: Bits, b: Bits) -> Bits:
    return Bits(a.mask >> b.bits, a.bits >> b.bits) if b.mask == -1 and b.bits >= 0 else NOTHING


def _sum(a: Bits, b: Bits) -> Bits:
    """Exact where no two bits meet that may be 1; of a known number the bits below its lowest 1 stay as they are, and
    the lowest bits are known as far as they are known of both.
    """
    if not a.most & b.most:
        return _or(a, b)
    a, b = (a, b) if b.mask == -1 else (b, a)
    if b.mask != -1:
        return NOTHING
    below = (b.bits & -b.bits) - 1
    if a.mask | below == -1:
        return Bits(a.mask, (a.bits & ~below) + b.bits | a.bits & below)
    low = a.mask & ~(a.mask + 1)
    return Bits(low | a.mask & below, (a.bits + b.bits) & low | a.bits & below)


def _difference(a: Bits, b: Bits) -> Bits:
    return _sum(a, of_integer(-b.bits)) if b.mask == -1 else NOTHING


def _product(a: Bits, b: Bits) -> Bits:
    a, b = (a, b) if b.mask == -1 else (b, a)
    if b == of_integer(0):
        return b
    one_bit = b.mask == -1 and b.bits > 0 and not b.bits & (b.bits - 1)
    return _left(a, of_integer(b.bits.bit_length() - 1)) if one_bit else NOTHING


def either(a: Bits, b: Bits) -> Bits:
    """What one of two has."""
    mask = a.mask & b.mask & ~(a.bits ^ b.bits)
    return Bits(mask, a.bits & mask)


OF_BITS: Mapping[Callable[..., object], Callable[[Bits, Bits], Bits]] = {
    operator.and_: _and, operator.or_: _or, operator.xor: _xor, operator.lshift: _left, operator.rshift: _right,
    operator.add: _sum, operator.sub: _difference, operator.mul: _product,
}  # fmt: skip
_MOST_SHIFTED = 128

_LESS = {operator.lt: operator.lt, operator.le: operator.le}
_GREATER = {operator.gt: operator.lt, operator.ge: operator.le}
_EQUAL = {operator.eq: False, operator.ne: True}
COMPARES = frozenset({*_LESS, *_GREATER, *_EQUAL})


def compared(function: Callable[..., object], a: Bits, b: Bits) -> int | None:
    """The result of a comparison, 0 or 1, None if it is not known."""
    if function in _EQUAL:
        return int(_EQUAL[function]) if (a.bits ^ b.bits) & a.mask & b.mask else None
    if a.mask >= 0 or b.mask >= 0:  # it may be as large as one likes
        return None
    less, (x, y) = (_LESS[function], (a, b)) if function in _LESS else (_GREATER[function], (b, a))
    return 1 if less(x.most, y.least) else None if less(x.least, y.most) else 0


def moved(function: Callable[..., int], parts: list[Bits], width: int, rest: tuple[int, ...]) -> Bits:
    """What a function leaves each bit of whose result is a bit of ``parts``, of this width, or depends on none."""
    full = (1 << width) - 1
    with_zeros = function(*(each.least & full for each in parts), *rest)
    with_ones = function(*(each.most & full for each in parts), *rest)
    mask = ~(with_zeros ^ with_ones)
    return Bits(mask, with_zeros & mask)
