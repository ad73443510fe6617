"""Between which integers a result is where an operand is not known: a remainder, a mask or a table's index bounds it.

So an access of shared memory at an address that data decides is known to stay in its array. A rule is given what is
known of each operand, None for nothing, and says nothing itself where an operand may be negative or may wrap around.
"""

from collections.abc import Callable, Mapping

Interval = tuple[int, int]  #: the least and the greatest integer
_Known = Interval | None
_MOST_BITS = 24  #: of an address in shared memory; a mask with more bounds nothing


def _of_known(rule: Callable[..., _Known]) -> Callable[..., _Known]:
    """A rule that needs something of each operand."""
    return lambda *operands: None if None in operands else rule(*operands)


def _product(a: Interval, b: Interval) -> Interval:
    found = [x * y for x in a for y in b]
    return min(found), max(found)


def _both(a: _Known, b: _Known) -> _Known:
    """Bitwise and: what is below a mask of ones stays as it is."""
    for mask, other in ((a, b), (b, a)):
        ones = mask is not None and mask[0] == mask[1] and not mask[0] & (mask[0] + 1)
        if ones and mask and other is not None and 0 <= other[0] <= other[1] <= mask[0]:
            return other
    most = min((each[1] for each in (a, b) if each is not None and each[0] >= 0), default=1 << _MOST_BITS)
    return (0, most) if most < 1 << _MOST_BITS else None


def _either(a: Interval, b: Interval) -> _Known:
    """Bitwise or."""
    if a[0] < 0 or b[0] < 0:
        return None
    return max(a[0], b[0]), min(a[1] + b[1], (1 << max(a[1], b[1]).bit_length()) - 1)


def _other(a: Interval, b: Interval) -> _Known:
    """Bitwise exclusive or: of numbers without common bits it is their sum."""
    if a[0] < 0 or b[0] < 0:
        return None
    for one, other in ((a, b), (b, a)):
        if one[0] == one[1] and not one[0] & ((1 << other[1].bit_length()) - 1):
            return other[0] + one[0], other[1] + one[0]
    return 0, min(a[1] + b[1], (1 << max(a[1], b[1]).bit_length()) - 1)


def _shifted(a: Interval, by: Interval, *, left: bool) -> _Known:
    if by[0] != by[1] or not 0 <= by[0] < _MOST_SHIFT:
        return None
    return (a[0] << by[0], a[1] << by[0]) if left else (a[0] >> by[0], a[1] >> by[0])


def _remainder(_a: _Known, b: _Known, _width: _Known) -> _Known:
    return (0, b[1] - 1) if b is not None and b[0] > 0 else None


def _signed_remainder(a: _Known, b: _Known, width: _Known) -> _Known:
    return _remainder(a, b, width) if _is_below(a, width) and _is_below(b, width) else None


def _is_below(a: _Known, width: _Known) -> bool:
    """Whether it is a number of this width without a sign."""
    return a is not None and width is not None and a[0] >= 0 and a[1] < 1 << (width[0] - 1)


def _quotient(a: _Known, b: _Known, _width: _Known) -> _Known:
    return (a[0] // b[1], a[1] // b[0]) if a is not None and a[0] >= 0 and b is not None and b[0] > 0 else None


def _field(_a: _Known, _start: _Known, length: _Known, _width: _Known, sign: _Known) -> _Known:
    if sign != (0, 0) or length is None or length[0] != length[1] or length[0] & 0xFF > _MOST_BITS:
        return None
    return 0, (1 << (length[0] & 0xFF)) - 1


def _least(a: _Known, b: _Known) -> _Known:
    highs = [each[1] for each in (a, b) if each is not None and each[0] >= 0]
    low = min(a[0], b[0]) if a is not None and b is not None else 0
    return (low, min(highs)) if highs and low >= 0 else None


def _least_signed(a: _Known, b: _Known, width: _Known) -> _Known:
    return _least(a, b) if _is_below(a, width) and _is_below(b, width) else None


def _most_signed(a: _Known, b: _Known, width: _Known) -> _Known:
    """Of what is not known and a natural number: one that has no sign."""
    lows = [each[0] for each in (a, b) if each is not None and _is_below(each, width)]
    if not lows or width is None:
        return None
    both = _is_below(a, width) and _is_below(b, width)
    return max(lows), max(a[1], b[1]) if both and a and b else (1 << (width[0] - 1)) - 1


def _chosen(_p: _Known, a: _Known, b: _Known) -> _Known:
    return (min(a[0], b[0]), max(a[1], b[1])) if a is not None and b is not None else None


_MOST_SHIFT = 64
#: By the name of the function: an operator of Python, or one of :mod:`pipesim.ptx.emulate.arithmetic.integers`.
_RULES: Mapping[str, Callable[..., _Known]] = {
    "add": _of_known(lambda a, b: (a[0] + b[0], a[1] + b[1])),
    "sub": _of_known(lambda a, b: (a[0] - b[1], a[1] - b[0])),
    "mul": _of_known(_product),
    "and_": _both,
    "or_": _of_known(_either),
    "xor": _of_known(_other),
    "lshift": _of_known(lambda a, by: _shifted(a, by, left=True)),
    "rshift": _of_known(lambda a, by: _shifted(a, by, left=False)),
    "rem": _remainder,
    "srem": _signed_remainder,
    "div": _quotient,
    "sdiv": lambda a, b, w: _quotient(a, b, w) if _is_below(a, w) and _is_below(b, w) else None,
    "bfe": _field,
    "least": _least,
    "least_signed": _least_signed,
    "most_signed": _most_signed,
    "popc": lambda _: (0, 64),
    "clz": lambda _, width: (0, width[0]),
    "_choose": _chosen,
}


#: Those that say something whatever the operands are.
BOUNDING = frozenset({"and_", "rem", "bfe", "least", "most_signed", "popc", "clz", "_choose"})


def interval_of(name: str, operands: list[_Known]) -> _Known:
    """Between which integers the result of this function is; None where nothing is known of it."""
    rule = _RULES.get(name)
    return rule(*operands) if rule is not None else None
