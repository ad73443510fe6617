"""Integer instructions that Python's operators do not give directly (PTX ISA, "Integer Arithmetic", "Logic and Shift").

Each function is exact for integers of its width, and takes values of any other kind as well (:func:`of_integers`).
"""

import struct
from collections.abc import Callable
from functools import partial

from pipesim.ptx.emulate.values import Value, integers, lift, moves_bits
from pipesim.ptx.free.varying import signed


def of_integers(function: Callable[..., int]) -> Callable[..., Value]:
    """The function for values of any kind: applied to integers, or to those that make up other values."""

    def of_values(*args: Value) -> Value:
        return function(*args) if integers(args) else lift(function, *args)

    return of_values


def _of_bits(operands: int, width_at: int = -1) -> Callable[[Callable[..., int]], Callable[..., Value]]:
    """The same for functions that move the bits of their first operands (:func:`~.values.moves_bits`)."""

    def decorate(function: Callable[..., int]) -> Callable[..., Value]:
        moves_bits(function, operands, width_at)
        return of_integers(function)

    return decorate


@_of_bits(1, 1)
def extended(a: int, width: int, to: int) -> int:
    """A number of ``width`` bits in a register of ``to`` bits, with copies of its sign."""
    return signed(a, width) & ((1 << max(width, to)) - 1)


@_of_bits(1, 2)
def shl(a: int, b: int, width: int) -> int:
    """``shl``: amounts above the width give 0."""
    return (a << b) & ((1 << width) - 1) if b < width else 0


@_of_bits(1, 2)
def shr(a: int, b: int, width: int) -> int:
    """``shr.u``: amounts above the width give 0."""
    return a >> b if b < width else 0


@_of_bits(1, 2)
def sar(a: int, b: int, width: int) -> int:
    """``shr.s``: amounts above the width give the sign in each bit."""
    return (signed(a, width) >> min(b, width)) & ((1 << width) - 1)


@of_integers
def div(a: int, b: int, width: int) -> int:
    """``div.u``; division by 0 gives all ones (unspecified in PTX)."""
    return a // b if b else (1 << width) - 1


@of_integers
def rem(a: int, b: int, _width: int) -> int:
    """``rem.u``."""
    return a % b if b else a


@of_integers
def sdiv(a: int, b: int, width: int) -> int:
    """``div.s`` rounds towards 0."""
    x, y = signed(a, width), signed(b, width)
    return (abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if y else -1) & ((1 << width) - 1)


@of_integers
def srem(a: int, b: int, width: int) -> int:
    """``rem.s`` has the sign of the dividend."""
    x, y = signed(a, width), signed(b, width)
    return ((abs(x) % abs(y)) * (-1 if x < 0 else 1) if y else x) & ((1 << width) - 1)


@_of_bits(1, 3)
def bfe(a: int, start: int, length: int, width: int, sign: int) -> int:
    """``bfe``: ``length`` bits from ``start`` on; beyond the register there are copies of the sign."""
    start, length = start & 0xFF, length & 0xFF
    if not length:
        return 0
    value = signed(a, width) if sign else a
    field = (value >> start) & ((1 << length) - 1)
    if sign and length < width:
        field = signed(field, length)
    return field & ((1 << width) - 1)


@_of_bits(2, 4)
def bfi(a: int, b: int, start: int, length: int, width: int) -> int:
    """``bfi``: the low bits of ``a`` in the place of ``length`` bits of ``b`` from ``start`` on."""
    full = (1 << width) - 1
    field = (((1 << (length & 0xFF)) - 1) << (start & 0xFF)) & full
    return (b & full & ~field) | (a << (start & 0xFF) & field)


@_of_bits(2)
def funnel_left(a: int, b: int, c: int, wrap: int) -> int:
    """``shf.l``: the upper half of ``b:a`` shifted to the left."""
    n = c & 31 if wrap else min(c, 32)
    return ((b << 32 | a) << n) >> 32 & 0xFFFFFFFF


@_of_bits(2)
def funnel_right(a: int, b: int, c: int, wrap: int) -> int:
    """``shf.r``: the lower half of ``b:a`` shifted to the right."""
    n = c & 31 if wrap else min(c, 32)
    return ((b << 32 | a) >> n) & 0xFFFFFFFF


@_of_bits(2)
def prmt(a: int, b: int, c: int) -> int:
    """``prmt.b32`` in its default mode: four bytes of ``b:a``, chosen by nibbles; bit 3 copies the sign."""
    both, result = b << 32 | a, 0
    for i in range(4):
        which = c >> 4 * i & 15
        byte = both >> 8 * (which & 7) & 255
        if which & 8:
            byte = 255 if byte >> 7 else 0
        result |= byte << 8 * i
    return result


@of_integers
def lop3(a: int, b: int, c: int, table: int) -> int:
    """``lop3.b32``: any function of three bits, by its truth table."""
    full = 0xFFFFFFFF
    result = 0
    for i in range(8):
        if table >> i & 1:
            x = a if i & 4 else ~a
            y = b if i & 2 else ~b
            z = c if i & 1 else ~c
            result |= x & y & z & full
    return result


@of_integers
def popc(a: int) -> int:
    """``popc``."""
    return a.bit_count()


@of_integers
def clz(a: int, width: int) -> int:
    """``clz``."""
    return width - a.bit_length()


@of_integers
def bfind(a: int, width: int, sign: int, shift: int) -> int:
    """``bfind``: the highest bit that is not the sign's; all ones if there is none."""
    value = ~signed(a, width) if sign and a >> (width - 1) else a
    if not value:
        return 0xFFFFFFFF
    high = value.bit_length() - 1
    return width - 1 - high if shift else high


@of_integers
def brev(a: int, width: int) -> int:
    """``brev``."""
    return int(format(a, f"0{width}b")[::-1], 2)


@of_integers
def least(a: int, b: int) -> int:
    """``min.u``."""
    return min(a, b)


@of_integers
def most(a: int, b: int) -> int:
    """``max.u``."""
    return max(a, b)


@of_integers
def least_signed(a: int, b: int, width: int) -> int:
    """``min.s``."""
    return a if signed(a, width) <= signed(b, width) else b


@of_integers
def most_signed(a: int, b: int, width: int) -> int:
    """``max.s``."""
    return a if signed(a, width) >= signed(b, width) else b


@of_integers
def magnitude(a: int, width: int) -> int:
    """``abs.s``."""
    return abs(signed(a, width)) & ((1 << width) - 1)


@of_integers
def difference(a: int, b: int, width: int, sign: int) -> int:
    """The absolute difference of ``sad``."""
    return abs(signed(a, width) - signed(b, width) if sign else a - b)


@of_integers
def saturated(a: int, width: int, sign: int) -> int:
    """The nearest number of this width, with or without a sign."""
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if sign else (0, (1 << width) - 1)
    return min(max(a, low), high) & ((1 << width) - 1)


@of_integers
def szext(a: int, count: int, wrap: int, sign: int) -> int:
    """``szext``: the low bits of ``a`` as a number of 32 bits."""
    count = count & 31 if wrap else min(count, 32)
    low = a & ((1 << count) - 1)
    return signed(low, count) & 0xFFFFFFFF if sign and count else low


@of_integers
def bmsk(start: int, count: int, wrap: int) -> int:
    """``bmsk``: 32 bits, of which ``count`` from ``start`` on are 1."""
    if wrap:
        start, count = start & 31, count & 31
    return ((1 << min(count, 32)) - 1) << min(start, 32) & 0xFFFFFFFF


def compare_floats(how: str, a: Value, b: Value, width: int) -> Value:
    """``setp`` of floating-point numbers given by their bits; a comparison that ends in u holds for NaN as well."""
    return lift(partial(_compare, how, width), a, b)


def _compare(how: str, width: int, a: int, b: int) -> int:
    x, y = _float(a, width), _float(b, width)
    unordered = x != x or y != y  # NaN is not equal to itself
    if how in ("num", "nan"):
        return int(unordered == (how == "nan"))
    if unordered:
        return int(len(how) == 3)
    return int({"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}[how[:2]])


def of_floats(how: str, a: Value, b: Value) -> Value:
    """``add``, ``sub`` or ``mul`` of 32-bit floating-point numbers given by their bits, rounded to the nearest.

    Twice the digits and two more are enough for a result that is rounded again to be rounded rightly.
    """
    return lift(partial(_arithmetic, how), a, b)


def _arithmetic(how: str, a: int, b: int) -> int:
    x, y = _float(a, 32), _float(b, 32)
    result = x * y if how == "mul" else x + y if how == "add" else x - y
    if result != result:
        return _NOT_A_NUMBER
    try:
        return int.from_bytes(struct.pack("<f", result), "little")
    except OverflowError:  # beyond the largest number that 32 bits have
        return _INFINITY | (_SIGN if result < 0 else 0)


_INFINITY, _NOT_A_NUMBER, _SIGN = 0x7F800000, 0x7FFFFFFF, 1 << 31


def _float(bits: int, width: int) -> float:
    form = {32: "<f", 64: "<d"}[width]
    return float(struct.unpack(form, (bits & ((1 << width) - 1)).to_bytes(width // 8, "little"))[0])
