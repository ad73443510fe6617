"""The bounds of results: of random integers within those of the operands every result is within its own."""

import operator
from random import Random

from pipesim.ptx.emulate import values
from pipesim.ptx.emulate.arithmetic import integers
from pipesim.ptx.emulate.arithmetic.known_bits import NOTHING
from pipesim.ptx.emulate.values import Leaf, PartlyKnown, Unknown, Value, interval

#: Functions of two operands, and of one; ``width`` and the like are constants.
FUNCTIONS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "least": integers.least, "rem": lambda a, b: integers.rem(a, b, 32),
    "srem": lambda a, b: integers.srem(a, b, 32), "div": lambda a, b: integers.div(a, b, 32),
    "sdiv": lambda a, b: integers.sdiv(a, b, 32), "min": lambda a, b: integers.least_signed(a, b, 32),
    "max": lambda a, b: integers.most_signed(a, b, 32), "bfe": lambda a, _: integers.bfe(a, 3, 7, 32, 0),
    "popc": lambda a, _: integers.popc(a), "clz": lambda a, _: integers.clz(a, 32), "shl": lambda a, _: a << 5,
    "shr": lambda a, _: a >> 5, "signed": lambda a, _: (a ^ 1 << 31) - (1 << 31), "cut": lambda a, _: a & 0xFFFFFFFF,
}  # fmt: skip


def _operand(random: Random) -> tuple[Value, list[int]]:
    """A value that is not known, or is, and some integers that it may be."""
    edges = [random.choice((0, 1, 7, 255, 4096, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)) for _ in range(2)]
    low, high = sorted(min(max(edge + random.randrange(-9, 9), 0), (1 << 32) - 1) for edge in edges)
    leaf, some = Leaf("", 0), [low, high, *(random.randint(low, high) for _ in range(4))]
    match random.randrange(3):
        case 0:
            return low, [low]
        case 1:
            return PartlyKnown(Unknown(leaf), NOTHING, (low, high)), some
        case _:
            return Unknown(leaf), [*some, random.getrandbits(32)]


def test_no_result_is_beyond_its_bounds():
    random, bounded = Random(15), 0
    for _ in range(6_000):
        name = random.choice(list(FUNCTIONS))
        (a, some), (b, others) = _operand(random), _operand(random)
        found = FUNCTIONS[name](a, b)
        if (within := interval(found)) is not None:
            bounded += isinstance(found, Unknown)
            for x in some:
                for y in others:
                    assert within[0] <= FUNCTIONS[name](x, y) <= within[1], (name, a, b, x, y)
    assert bounded > 1_000


def test_what_is_not_known_passes_its_bounds_on_to_nothing_else():
    few = values.at_most(Unknown(Leaf("", 0)), 1)
    assert interval(values.select(few, 3, 9)) == (3, 9)
    assert interval(values.select(few, 3, Unknown(Leaf("", 0)))) is None
    assert interval(integers.difference(few, 3, 32, 0)) is None
    assert not values.same(few, PartlyKnown(few.whole, few.known, (0, 0)))
