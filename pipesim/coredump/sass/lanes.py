"""Values of the lanes of a warp: one for all of them, one for each, or unknown; and the registers that hold them."""

from collections.abc import Callable
from itertools import repeat
from typing import Any

from pipesim.coredump.sass.word import PT, RZ

LANES = 32
WORD = 0xFFFFFFFF
Value = Any  #: an int (of a predicate a bool) that all lanes have, a tuple of 32 of them or None, or None: not known


def lift(operation: Callable[..., Value], *values: Value) -> Value:
    """``operation`` on the values of all lanes, or lane by lane; unknown where one of them is."""
    if None in values:
        return None
    if tuple not in map(type, values):
        return operation(*values)
    rows = zip(*(each if type(each) is tuple else repeat(each, LANES) for each in values), strict=True)
    return together([None if None in row else operation(*row) for row in rows])


def together(values: list[Value]) -> Value:
    """Values lane by lane, as one if they are the same."""
    first = values[0]
    return first if values.count(first) == LANES else tuple(values)


def of_lane(value: Value, lane: int) -> Value:
    """The value of one lane."""
    return value[lane] if type(value) is tuple else value


class LaneState:
    """The registers and predicates of lanes that run together: of those in ``mask``, at instruction ``pc``."""

    __slots__ = ("local", "mask", "pc", "predicates", "registers", "uniform", "uniform_predicates")

    def __init__(self, mask: int, pc: int) -> None:
        self.mask, self.pc = mask, pc
        self.registers: list[Value] = [None] * RZ + [0, None]  # code that is damaged asks for the one after the last
        self.uniform: list[Value] = [None] * RZ + [0, None]
        self.predicates: list[Value] = [None] * PT + [True]
        self.uniform_predicates: list[Value] = [None] * PT + [True]
        self.local: dict[int, Value] = {}  #: the words of local memory that are known

    def with_lanes(self, mask: int, pc: int) -> "LaneState":
        """The same for some of the lanes, at another instruction."""
        other = LaneState(mask, pc)
        other.registers, other.uniform = self.registers[:], self.uniform[:]
        other.predicates, other.uniform_predicates = self.predicates[:], self.uniform_predicates[:]
        other.local = self.local.copy()
        return other

    def join(self, other: "LaneState") -> None:
        """Take other lanes of the warp in, with what they have."""
        chosen = tuple(bool(other.mask >> n & 1) for n in range(LANES))
        for mine, theirs in ((self.registers, other.registers), (self.predicates, other.predicates)):
            for number, value in enumerate(theirs):
                if value != mine[number]:
                    self.put(mine, number, value, chosen)
        for mine, theirs in ((self.uniform, other.uniform), (self.uniform_predicates, other.uniform_predicates)):
            for number, value in enumerate(theirs):
                mine[number] = value if value == mine[number] else None
        for at in self.local.keys() | other.local.keys():
            self.store(at, other.local.get(at), chosen)
        self.mask |= other.mask

    def first(self) -> int:
        """The lowest of the lanes."""
        return (self.mask & -self.mask).bit_length() - 1

    def put(self, where: list[Value], number: int, value: Value, condition: Value) -> None:
        """Write a register of the lanes for which a condition holds."""
        if condition is True:
            where[number] = value
        elif condition is not False:
            before = where[number]
            where[number] = together(
                [
                    of_lane(value, n) if said else None if said is None else of_lane(before, n)
                    for n in range(LANES)
                    for said in (of_lane(condition, n),)
                ]
            )

    def store(self, address: int, value: Value, condition: Value) -> None:
        """Write a word of the local memory of the lanes for which a condition holds."""
        cell = [self.local.get(address)]
        self.put(cell, 0, value, condition)
        self.local[address] = cell[0]

    def lanes_where(self, condition: Value) -> tuple[int, int]:
        """The lanes for which a condition holds, and those of which that is not known."""
        if condition is None:
            return 0, self.mask
        if type(condition) is not tuple:
            return (self.mask if condition else 0), 0
        yes = sum(1 << n for n in range(LANES) if condition[n])
        unknown = sum(1 << n for n in range(LANES) if condition[n] is None)
        return yes & self.mask, unknown & self.mask
