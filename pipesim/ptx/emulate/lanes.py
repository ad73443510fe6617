"""What the lanes of a warp tell each other: votes, shuffles, elections, reductions (PTX ISA, "Parallel Synchronization
and Communication"). Each sees the lanes that execute, and of them those that the instruction's mask names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce as fold
from operator import and_, or_, xor

from pipesim.ptx.emulate.integers import signed
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
    lift,
)

_FIRST = [1] + [0] * 31


Source = Callable[[int, int, int], tuple[int, bool]]  #: lane, operand b, operand c: the lane read, whether inside


class WarpLanes:
    """The part of a warp that these instructions need."""

    __slots__ = ("all_lanes", "lanes", "mask")

    mask: int  #: the lanes that execute
    lanes: int  #: the lanes that are followed here
    all_lanes: int  #: of the warp

    def _members(self, members: Value) -> int:
        """The lanes that take part. Those of a warp that is followed in parts are all together until they part."""
        executing = self.mask if self.mask != self.lanes else self.all_lanes
        return executing & members if isinstance(members, int) else executing

    def _per_answer(self, function: Callable[[Value, Value], Value], value: OpenAnswer, members: Value) -> Value:
        return answer_of(value.asked, function(value.if_false, members), function(value.if_true, members))

    def vote_all(self, p: Value, members: Value) -> Value:
        """``vote.all``."""
        if isinstance(p, int):
            return p
        if isinstance(p, OpenAnswer):
            return self._per_answer(self.vote_all, p, members)
        if not isinstance(p, PerLane):
            return p
        seen = [p.each[i] for i in lanes_in(self._members(members))]
        if any(isinstance(v, int) and not v for v in seen):
            return 0
        return next((v for v in seen if not isinstance(v, int)), 1)

    def vote_any(self, p: Value, members: Value) -> Value:
        """``vote.any``."""
        if isinstance(p, int):
            return p
        return lift(_not, self.vote_all(lift(_not, p), members))

    def vote_uni(self, p: Value, members: Value) -> Value:
        """``vote.uni``."""
        if isinstance(p, int):
            return 1
        if not isinstance(p, PerLane):
            return p
        seen = [p.each[i] for i in lanes_in(self._members(members))]
        unknown = next((v for v in seen if not isinstance(v, int)), None)
        return unknown if unknown is not None else int(len(set(map(bool, seen))) == 1)

    def vote_ballot(self, p: Value, members: Value) -> Value:
        """``vote.ballot``."""
        lanes = self._members(members)
        if isinstance(p, int):
            return lanes if p else 0
        if isinstance(p, OpenAnswer):
            return self._per_answer(self.vote_ballot, p, members)
        if not isinstance(p, PerLane):
            return p
        found = 0
        for i in lanes_in(lanes):
            if not isinstance(p.each[i], int):
                return p.each[i]
            found |= (1 if p.each[i] else 0) << i
        return found

    def match_any(self, a: Value, members: Value) -> Value:
        """``match.any``: of each lane those that have its value."""
        lanes = self._members(members)
        if isinstance(a, int):
            return lanes
        if isinstance(a, OpenAnswer):
            return self._per_answer(self.match_any, a, members)
        if not isinstance(a, PerLane):
            return a
        alike: dict[int, int] = {}
        for i in lanes_in(lanes):
            if not isinstance(a.each[i], int):
                return a.each[i]
            alike[a.each[i]] = alike.get(a.each[i], 0) | 1 << i
        return lanes_of([alike[a.each[i]] if lanes >> i & 1 else 0 for i in range(WARP)])

    def match_all(self, a: Value, members: Value) -> Value:
        """``match.all``: the lanes that take part if all have one value, else 0."""
        if isinstance(a, int):
            return self._members(members)
        if isinstance(a, OpenAnswer):
            return self._per_answer(self.match_all, a, members)
        if not isinstance(a, PerLane):
            return a
        seen = [a.each[i] for i in lanes_in(self._members(members))]
        unknown = next((v for v in seen if not isinstance(v, int)), None)
        return unknown if unknown is not None else self._members(members) if len(set(seen)) == 1 else 0

    def leader(self, members: Value) -> Value:
        """``elect.sync``: the lane that is elected; PTX leaves open which, the hardware measured takes the lowest."""
        lanes = self._members(members)
        return (lanes & -lanes).bit_length() - 1

    def elected(self, members: Value) -> Value:
        """``elect.sync``: true in the lane that is elected."""
        lanes = self._members(members)
        first = (lanes & -lanes).bit_length() - 1
        if self.mask == 1 << first:
            return 1
        return PerLane(_FIRST) if first == 0 else PerLane([int(i == first) for i in range(WARP)])

    def _shuffle(self, a: Value, b: Value, c: Value, source: Source) -> Value:
        if isinstance(a, int | Unknown):
            return a
        if isinstance(a, OpenAnswer):
            if_false = self._shuffle(a.if_false, b, c, source)
            return answer_of(a.asked, if_false, self._shuffle(a.if_true, b, c, source))
        if isinstance(b, Unknown | OpenAnswer) or isinstance(c, Unknown | OpenAnswer):
            return b if isinstance(b, Unknown) else Unknown(Leaf("a shuffle from an unknown lane", 0))
        found = []
        for lane in range(WARP):
            of = b.each[lane] if isinstance(b, PerLane) else b
            clamp = c.each[lane] if isinstance(c, PerLane) else c
            if not isinstance(of, int) or not isinstance(clamp, int):
                found.append(of if not isinstance(of, int) else clamp)
                continue
            at, inside = source(lane, of & 31, clamp)
            found.append(a.each[at if inside else lane])
        return lanes_of(found)

    def shuffle_idx(self, a: Value, b: Value, c: Value, _members: Value) -> Value:
        """``shfl.idx``."""
        return self._shuffle(a, b, c, _from_index)

    def shuffle_bfly(self, a: Value, b: Value, c: Value, _members: Value) -> Value:
        """``shfl.bfly``."""
        return self._shuffle(a, b, c, _from_butterfly)

    def shuffle_up(self, a: Value, b: Value, c: Value, _members: Value) -> Value:
        """``shfl.up``."""
        return self._shuffle(a, b, c, _from_below)

    def shuffle_down(self, a: Value, b: Value, c: Value, _members: Value) -> Value:
        """``shfl.down``."""
        return self._shuffle(a, b, c, _from_above)

    def shuffle_inside(self, mode: str, b: Value, c: Value) -> Value:
        """The predicate of a shuffle: whether the source lane is in the segment."""
        if not isinstance(b, int) or not isinstance(c, int):
            return Unknown(Leaf("the predicate of a shuffle", 0))
        source = {"idx": _from_index, "bfly": _from_butterfly, "up": _from_below, "down": _from_above}[mode]
        return lanes_of([int(source(lane, b & 31, c)[1]) for lane in range(WARP)])

    def reduce(self, mode: str, a: Value, members: Value, sign: int) -> Value:
        """``redux.sync`` of 32-bit integers."""
        lanes = lanes_in(self._members(members))
        if isinstance(a, OpenAnswer):
            if_false = self.reduce(mode, a.if_false, members, sign)
            return answer_of(a.asked, if_false, self.reduce(mode, a.if_true, members, sign))
        if isinstance(a, Unknown):
            return a
        seen = [a.each[i] if isinstance(a, PerLane) else a for i in lanes]
        unknown = next((v for v in seen if not isinstance(v, int)), None)
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


def _from_butterfly(lane: int, b: int, c: int) -> tuple[int, bool]:
    at = lane ^ b
    return at, at <= _segment(lane, c)[1]


def _from_below(lane: int, b: int, c: int) -> tuple[int, bool]:
    at = lane - b
    return at, at >= _segment(lane, c)[1]


def _from_above(lane: int, b: int, c: int) -> tuple[int, bool]:
    at = lane + b
    return at, at <= _segment(lane, c)[1]
