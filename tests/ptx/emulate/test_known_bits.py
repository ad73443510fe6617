"""What is known of a result of which only some bits of the operands are known: it holds for all values of the rest."""

import operator
import random

import pytest

from pipesim.ptx.emulate.arithmetic import integers
from pipesim.ptx.emulate.arithmetic.known_bits import Bits
from pipesim.ptx.emulate.values import Leaf, Unknown, Value, lanes_of, lift, partly_known, same

OPERATORS = (
    operator.and_, operator.or_, operator.xor, operator.add, operator.sub, operator.mul, operator.lshift,
    operator.rshift, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
)  # fmt: skip
MOVES = (
    (integers.shl, 1, (3, 32)), (integers.shr, 1, (7, 32)), (integers.sar, 1, (5, 32)),
    (integers.bfe, 1, (4, 9, 32, 1)), (integers.bfi, 2, (8, 12, 32)), (integers.funnel_left, 2, (9, 0)),
    (integers.funnel_right, 2, (9, 1)), (integers.prmt, 2, (0x84F2,)), (integers.extended, 1, (32, 64)),
)  # fmt: skip
WHOLE = Unknown(Leaf("data", 1))


def partly(rng: random.Random, width: int) -> tuple[Value, list[int]]:
    """A value of which some bits are known, and values that it may have."""
    mask, bits = rng.getrandbits(width) | rng.getrandbits(width), rng.getrandbits(width)
    value = partly_known(WHOLE, Bits(mask | -1 << width, bits & mask)) if rng.random() < 0.9 else WHOLE
    known = mask if value is not WHOLE else 0
    full = (1 << width) - 1
    return value, [
        bits & known | each & full & ~known for each in (*(rng.getrandbits(width) for _ in range(6)), 0, full)
    ]


def holds(found: Value, true: int) -> bool:
    if isinstance(found, Unknown):
        return not (found.known.bits ^ true) & found.known.mask
    return bool(found == true)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_known_of_a_result_holds_for_all_values_of_the_rest(seed: int) -> None:
    rng = random.Random(seed)
    for function in OPERATORS:
        width = rng.choice((3, 8, 32))
        a, ones = partly(rng, width)
        others = [rng.getrandbits(4)] if function in (operator.lshift, operator.rshift) else [rng.getrandbits(width)]
        b: Value = others[0]
        if rng.random() < 0.4 and others[0] > 4 and function not in (operator.lshift, operator.rshift):
            b, others = partly(rng, width)
        if rng.random() < 0.5 and function not in (operator.lshift, operator.rshift):
            a, ones, b, others = b, others, a, ones
        found = function(a, b)
        assert all(holds(found, int(function(one, other))) for one in ones for other in others), function
    for moves, count, rest in MOVES:
        made = [partly(rng, 32) for _ in range(count)]
        found = moves(*(value for value, _ in made), *rest)
        for each in zip(*(values for _, values in made), strict=True):
            assert holds(found, moves(*each, *rest)), moves


def test_a_status_beside_data_is_known() -> None:
    packed = 2 << 32 | WHOLE & 0xFFFFFFFF
    assert packed >> 32 == 2
    assert (packed & 0xFFFFFFFF).known.mask == ~0xFFFFFFFF
    assert (integers.funnel_left(packed & 0xFFFFFFFF, packed >> 32, 0, 0)) == 2
    assert isinstance(lift(operator.floordiv, packed, 3), Unknown)
    assert not same(packed, WHOLE)
    assert (lanes_of([WHOLE, packed] * 16) >> 32).each[1] == 2
