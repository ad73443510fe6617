"""Integer instructions that Python's operators do not give at once (PTX ISA, "Integer Arithmetic", "Logic and Shift").

Each function takes values of any kind; the functions of integers below them are exact for their widths.
"""

from __future__ import annotations

import struct
from functools import partial

from pipesim.ptx.emulate.values import Value, lift


def signed(a: int, width: int) -> int:
    """The integer that ``width`` bits mean in two's complement."""
    return a - (1 << width) if a >> (width - 1) & 1 else a


def extended(a: Value, width: int, to: int) -> Value:
    """A number of ``width`` bits in a register of ``to`` bits, with copies of its sign."""
    if isinstance(a, int):
        return signed(a, width) & ((1 << max(width, to)) - 1)
    return lift(extended, a, width, to)


def shl(a: Value, b: Value, width: int) -> Value:
    """``shl``: amounts above the width give 0."""
    if isinstance(a, int) and isinstance(b, int):
        return (a << b) & ((1 << width) - 1) if b < width else 0
    return lift(shl, a, b, width)


def shr(a: Value, b: Value, width: int) -> Value:
    """``shr.u``: amounts above the width give 0."""
    if isinstance(a, int) and isinstance(b, int):
        return a >> b if b < width else 0
    return lift(shr, a, b, width)


def sar(a: Value, b: Value, width: int) -> Value:
    """``shr.s``: amounts above the width give the sign in each bit."""
    if isinstance(a, int) and isinstance(b, int):
        return (signed(a, width) >> min(b, width)) & ((1 << width) - 1)
    return lift(sar, a, b, width)


def div(a: Value, b: Value, width: int) -> Value:
    """``div.u``; division by 0 gives all ones (unspecified in PTX)."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b else (1 << width) - 1
    return lift(div, a, b, width)


def rem(a: Value, b: Value, width: int) -> Value:
    """``rem.u``."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b if b else a
    return lift(rem, a, b, width)


def sdiv(a: Value, b: Value, width: int) -> Value:
    """``div.s`` rounds towards 0."""
    if isinstance(a, int) and isinstance(b, int):
        x, y = signed(a, width), signed(b, width)
        return (abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if y else -1) & ((1 << width) - 1)
    return lift(sdiv, a, b, width)


def srem(a: Value, b: Value, width: int) -> Value:
    """``rem.s`` has the sign of the dividend."""
    if isinstance(a, int) and isinstance(b, int):
        x, y = signed(a, width), signed(b, width)
        return ((abs(x) % abs(y)) * (-1 if x < 0 else 1) if y else x) & ((1 << width) - 1)
    return lift(srem, a, b, width)


def bfe(a: Value, start: Value, length: Value, width: int, sign: int) -> Value:
    """``bfe``: ``length`` bits from ``start`` on; beyond the register there are copies of the sign."""
    if not (isinstance(a, int) and isinstance(start, int) and isinstance(length, int)):
        return lift(bfe, a, start, length, width, sign)
    start, length = start & 0xFF, length & 0xFF
    if not length:
        return 0
    value = signed(a, width) if sign else a
    field = (value >> start) & ((1 << length) - 1)
    if sign and length < width:
        field = signed(field, length)
    return field & ((1 << width) - 1)


def bfi(a: Value, b: Value, start: Value, length: Value, width: int) -> Value:
    """``bfi``: the low bits of ``a`` in the place of ``length`` bits of ``b`` from ``start`` on."""
    if not (isinstance(a, int) and isinstance(b, int) and isinstance(start, int) and isinstance(length, int)):
        return lift(bfi, a, b, start, length, width)
    full = (1 << width) - 1
    field = (((1 << (length & 0xFF)) - 1) << (start & 0xFF)) & full
    return (b & ~field) | (a << (start & 0xFF) & field)


def funnel_left(a: Value, b: Value, c: Value, wrap: int) -> Value:
    """``shf.l``: the upper half of ``b:a`` shifted to the left."""
    if not (isinstance(a, int) and isinstance(b, int) and isinstance(c, int)):
        return lift(funnel_left, a, b, c, wrap)
    n = c & 31 if wrap else min(c, 32)
    return ((b << 32 | a) << n) >> 32 & 0xFFFFFFFF


def funnel_right(a: Value, b: Value, c: Value, wrap: int) -> Value:
    """``shf.r``: the lower half of ``b:a`` shifted to the right."""
    if not (isinstance(a, int) and isinstance(b, int) and isinstance(c, int)):
        return lift(funnel_right, a, b, c, wrap)
    n = c & 31 if wrap else min(c, 32)
    return ((b << 32 | a) >> n) & 0xFFFFFFFF


def prmt(a: Value, b: Value, c: Value) -> Value:
    """``prmt.b32`` in its default mode: four bytes of ``b:a``, chosen by nibbles; bit 3 copies the sign."""
    if not (isinstance(a, int) and isinstance(b, int) and isinstance(c, int)):
        return lift(prmt, a, b, c)
    both, result = b << 32 | a, 0
    for i in range(4):
        which = c >> 4 * i & 15
        byte = both >> 8 * (which & 7) & 255
        if which & 8:
            byte = 255 if byte >> 7 else 0
        result |= byte << 8 * i
    return result


def lop3(a: Value, b: Value, c: Value, table: int) -> Value:
    """``lop3.b32``: any function of three bits, by its truth table."""
    if not (isinstance(a, int) and isinstance(b, int) and isinstance(c, int)):
        return lift(lop3, a, b, c, table)
    full = 0xFFFFFFFF
    result = 0
    for i in range(8):
        if table >> i & 1:
            x = a if i & 4 else ~a
            y = b if i & 2 else ~b
            z = c if i & 1 else ~c
            result |= x & y & z & full
    return result


def popc(a: Value) -> Value:
    """``popc``."""
    return a.bit_count() if isinstance(a, int) else lift(popc, a)


def clz(a: Value, width: int) -> Value:
    """``clz``."""
    return width - a.bit_length() if isinstance(a, int) else lift(clz, a, width)


def bfind(a: Value, width: int, sign: int, shift: int) -> Value:
    """``bfind``: the highest bit that is not the sign's; all ones if there is none."""
    if not isinstance(a, int):
        return lift(bfind, a, width, sign, shift)
    value = ~signed(a, width) if sign and a >> (width - 1) else a
    if not value:
        return 0xFFFFFFFF
    high = value.bit_length() - 1
    return width - 1 - high if shift else high


def brev(a: Value, width: int) -> Value:
    """``brev``."""
    if not isinstance(a, int):
        return lift(brev, a, width)
    return int(format(a, f"0{width}b")[::-1], 2)


def least(a: Value, b: Value) -> Value:
    """``min.u``."""
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else lift(least, a, b)


def most(a: Value, b: Value) -> Value:
    """``max.u``."""
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else lift(most, a, b)


def least_signed(a: Value, b: Value, width: int) -> Value:
    """``min.s``."""
    if isinstance(a, int) and isinstance(b, int):
        return a if signed(a, width) <= signed(b, width) else b
    return lift(least_signed, a, b, width)


def most_signed(a: Value, b: Value, width: int) -> Value:
    """``max.s``."""
    if isinstance(a, int) and isinstance(b, int):
        return a if signed(a, width) >= signed(b, width) else b
    return lift(most_signed, a, b, width)


def magnitude(a: Value, width: int) -> Value:
    """``abs.s``."""
    if isinstance(a, int):
        return abs(signed(a, width)) & ((1 << width) - 1)
    return lift(magnitude, a, width)


def compare_floats(how: str, a: Value, b: Value, width: int) -> Value:
    """``setp`` of floating-point numbers given by their bits; a comparison that ends in u holds for NaN, too."""
    if not (isinstance(a, int) and isinstance(b, int)):
        return lift(partial(_compared, how, width), a, b)
    return _compared(how, width, a, b)


def _compared(how: str, width: int, a: int, b: int) -> int:
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
    if not (isinstance(a, int) and isinstance(b, int)):
        return lift(partial(_arithmetic, how), a, b)
    return _arithmetic(how, a, b)


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


def boolean(a: Value) -> Value:
    """1 if it is not 0."""
    return 1 if isinstance(a, int) and a else 0 if isinstance(a, int) else lift(boolean, a)
