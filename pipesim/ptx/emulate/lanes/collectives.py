"""What the lanes of a warp exchange: votes, shuffles, elections, reductions (PTX ISA, "Parallel Synchronization
and Communication"). Each sees the lanes that execute, and of them those that the instruction's mask names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce as fold
from operator import add, and_, ge, le, or_, sub, xor
from typing import Any

from pipesim.ptx.emulate.values import (
    FULL,
    WARP,
    Leaf,
    OpenAnswer,
    PerLane,
    Unknown,
    Value,
    answer_of,
    lanes_in,
    lanes_of,
    leaf_of,
    lift,
    of_lane,
    same,
)
from pipesim.ptx.free.varying import signed

_FIRST = [1] + [0] * 31


Source = Callable[[int, int, int], tuple[int, bool]]  #: lane, operand b, operand c: the lane read, whether inside


def _by_answer(function: Callable[..., Value]) -> Callable[..., Value]:
    """The same for a value that depends on the result of a try_wait: for its value in either case."""

    def of_either(lanes: WarpLanes, value: Value, *operands: Any) -> Value:
        if not isinstance(value, OpenAnswer):
            return function(lanes, value, *operands)
        if_false = of_either(lanes, value.if_false, *operands)
        return answer_of(value.asked, if_false, of_either(lanes, value.if_true, *operands))

    return of_either


def _unknown(seen: list[Value], otherwise: Value) -> Value:
    """The first of some values that is not known, ``otherwise`` if all are."""
    return next((_opened(v) for v in seen if not isinstance(v, int)), otherwise)


def _opened(value: Value) -> Value:
    """What is made of a value that is not known: the bits that are known of it are none of the result."""
    return value.whole if isinstance(value, Unknown) else value


class WarpLanes:
    """The part of a warp that these instructions need."""

    __slots__ = ("all_lanes", "lanes", "mask", "undefined")

    mask: int  #: the lanes that execute
    lanes: int  #: the lanes that are followed here
    all_lanes: int  #: of the warp

    def among(self, masks: Value, exchange: Callable[..., Value], *operands: Any) -> Value:
        """What lanes exchange with those that their mask names: they themselves, and others with the same mask."""
        if isinstance(masks, int):
            return exchange(*operands, masks)
        each, lanes = [of_lane(masks, n) for n in range(WARP)], list(lanes_in(self.executing))
        of = {mask: exchange(*operands, mask) for mask in {each[n] for n in lanes if isinstance(each[n], int)}}
        none = Unknown(leaf_of(masks) or Leaf("a mask of lanes that is not known", 0))
        return lanes_of([of_lane(of.get(m, none) if isinstance(m, int) else none, n) for n, m in enumerate(each)])

    @property
    def executing(self) -> int:
        """The lanes that take part. Those of a warp that is followed in parts are all together until they part."""
        return self.mask if self.mask != self.lanes else self.all_lanes

    def _each(self, value: Value, members: int) -> list[Value]:
        """What the lanes that take part have of a value, the lowest lane first."""
        return [of_lane(value, lane) for lane in lanes_in(self.executing & members)]

    @_by_answer
    def vote_all(self, p: Value, members: int) -> Value:
        """``vote.all``."""
        if not isinstance(p, PerLane):
            return p
        seen = self._each(p, members)
        if any(isinstance(v, int) and not v for v in seen):
            return 0
        return _unknown(seen, 1)

    def vote_any(self, p: Value, members: int) -> Value:
        """``vote.any``."""
        if isinstance(p, int):
            return p
        return lift(_not, self.vote_all(lift(_not, p), members))

    def vote_uni(self, p: Value, members: int) -> Value:
        """``vote.uni``."""
        if not isinstance(p, PerLane):
            return 1 if isinstance(p, int) else _opened(p)
        seen = self._each(p, members)
        return _unknown(seen, int(len({bool(v) for v in seen if isinstance(v, int)}) == 1))

    @_by_answer
    def vote_ballot(self, p: Value, members: int) -> Value:
        """``vote.ballot``."""
        lanes = self.executing & members
        if not isinstance(p, PerLane):
            return (lanes if p else 0) if isinstance(p, int) else _opened(p)
        found = 0
        for i in lanes_in(lanes):
            if not isinstance(p.each[i], int):
                return _opened(p.each[i])
            found |= (1 if p.each[i] else 0) << i
        return found

    @_by_answer
    def match_any(self, a: Value, members: int) -> Value:
        """``match.any``: of each lane those that have its value."""
        lanes = self.executing & members
        if not isinstance(a, PerLane):
            return lanes if isinstance(a, int) else _opened(a)
        alike: dict[int, int] = {}
        for i in lanes_in(lanes):
            if not isinstance(a.each[i], int):
                return _opened(a.each[i])
            alike[a.each[i]] = alike.get(a.each[i], 0) | 1 << i
        return lanes_of([alike[a.each[i]] if lanes >> i & 1 else 0 for i in range(WARP)])

    @_by_answer
    def match_all(self, a: Value, members: int) -> Value:
        """``match.all``: the lanes that take part if all have one value, else 0."""
        if not isinstance(a, PerLane):
            return self.executing & members if isinstance(a, int) else _opened(a)
        seen = self._each(a, members)
        first = seen[0]
        equal = all(v == first if isinstance(v, int) and isinstance(first, int) else same(v, first) for v in seen)
        return _unknown(seen, self.executing & members if equal else 0)

    def leader(self, members: int) -> Value:
        """``elect.sync``: the lane that is elected; PTX leaves open which, the hardware measured takes the lowest."""
        lanes = self.executing & members
        return (lanes & -lanes).bit_length() - 1

    def elect_lane(self, members: int) -> Value:
        """``elect.sync``: true in the lane that is elected."""
        lanes = self.executing & members
        first = (lanes & -lanes).bit_length() - 1
        if self.mask == 1 << first:
            return 1
        return PerLane(_FIRST) if first == 0 else PerLane([int(i == first) for i in range(WARP)])

    @_by_answer
    def shuffle(self, a: Value, b: Value, c: Value, mode: str, members: int) -> Value:
        """``shfl``, each lane from the lane that ``mode`` and the operands b and c name."""
        if isinstance(a, int | Unknown):
            return a
        if isinstance(b, Unknown | OpenAnswer) or isinstance(c, Unknown | OpenAnswer):
            return b.whole if isinstance(b, Unknown) else Unknown(Leaf("a shuffle from an unknown lane", 0))
        found = []
        for lane in range(WARP):
            of = b.each[lane] if isinstance(b, PerLane) else b
            clamp = c.each[lane] if isinstance(c, PerLane) else c
            if not isinstance(of, int) or not isinstance(clamp, int):
                found.append(_opened(of if not isinstance(of, int) else clamp))
                continue
            at, inside = _SOURCES[mode](lane, int(of) & 31, int(clamp))
            source = at if inside else lane
            named = members >> source & 1 or not members >> lane & 1
            found.append(a.each[source] if named else Unknown(Leaf("a shuffle from a lane that is not named", 0)))
        return lanes_of(found)

    def shuffle_inside(self, mode: str, b: Value, c: Value) -> Value:
        """The predicate of a shuffle: whether the source lane is in the segment."""
        if not isinstance(b, int) or not isinstance(c, int):
            return Unknown(Leaf("the predicate of a shuffle", 0))
        return lanes_of([int(_SOURCES[mode](lane, int(b) & 31, int(c))[1]) for lane in range(WARP)])

    @_by_answer
    def reduce(self, a: Value, mode: str, sign: int, members: int) -> Value:
        """``redux.sync`` of 32-bit integers."""
        if isinstance(a, Unknown):
            return a.whole
        seen = self._each(a, members)
        unknown = _unknown(seen, None)
        if unknown is not None:
            return unknown
        if mode in _FOLDS:
            return fold(_FOLDS[mode], seen)
        values = [signed(v, 32) if sign else v for v in seen]
        found = sum(values) if mode == "add" else min(values) if mode == "min" else max(values)
        return found & FULL


_FOLDS = {"and": and_, "or": or_, "xor": xor}


def _not(a: int) -> int:
    return 0 if a else 1


def _segment(lane: int, c: int) -> tuple[int, int]:
    """First and last lane of the segment of a lane, from the operand c."""
    clamp, mask = c & 31, c >> 8 & 31
    return lane & mask, (lane & mask) | (clamp & ~mask & 31)


def _from_index(lane: int, b: int, c: int) -> tuple[int, bool]:
    low, high = _segment(lane, c)
    at = low | (b & ~(c >> 8) & 31)
    return at, at <= high


def _beside(move: Callable[[int, int], int], is_inside: Callable[[int, int], bool]) -> Source:
    """The lane at a distance, which is inside if it compares so with the last one, for ``up`` the first."""

    def source(lane: int, b: int, c: int) -> tuple[int, bool]:
        at = move(lane, b)
        return at, is_inside(at, _segment(lane, c)[1])

    return source


_SOURCES = {"idx": _from_index, "bfly": _beside(xor, le), "up": _beside(sub, ge), "down": _beside(add, le)}
