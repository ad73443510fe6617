"""Copies by tensor maps whose box the launch does not give: which bytes the phases that count them leave for each.

A phase says what its copies have together, less the bytes that are known. With that a kernel is followed, and what is
wrong whatever the bytes are is found. It does not show that the kernel is right: one that leaves out a copy wherever
it should be beside another one leaves its bytes to that one, in every phase. Where no bytes complete all phases the
kernel is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from pipesim.model.barrier import BarrierState
from pipesim.model.groups import ASKS, ASYNC_BYTES, BARRIER, LIFE, MAY_BLOCK, ON_BARRIER, PLAIN_WAITS
from pipesim.model.ops import AT, Op, Operation, operand
from pipesim.model.tables import LEAST_COPY
from pipesim.ptx.emit.record import Place, Stream
from pipesim.ptx.text.instruction import Instruction


def map_key(each: Instruction, map_address: object) -> object:
    """What distinguishes tensor maps: their address, else the instruction."""
    return map_address if isinstance(map_address, int) else ("at", each.position)


class LandedCopy(NamedTuple):
    """A copy by a map without a box: where its instruction is, and as many boxes as it moves."""

    key: object
    position: int
    boxes: int


class PhaseBytes(NamedTuple):
    """A complete phase: its copies without a box, and the bytes that these have together."""

    copies: tuple[LandedCopy, ...]
    total: int


@dataclass
class MapUse:
    """Who copies by a map without a box: positions of loads and of stores, and how many sizes its box has."""

    rank: int
    loads: dict[int, None] = field(default_factory=dict)
    stores: dict[int, None] = field(default_factory=dict)


@dataclass
class BoxlessCopies:
    """The copies of one run. ``sizes``: bytes of a box of each map, as an earlier run leaves them: see :meth:`solved`.

    ``open``: maps of which the phases do not determine the bytes. ``late``: mbarriers that are not complete before
    others are.
    """

    sizes: dict[object, int] = field(default_factory=dict)
    open: frozenset[object] = frozenset()
    late: frozenset[Place] = frozenset()
    none_fits: bool = False  #: some phase is not complete with these sizes, nor with any others
    issued: dict[int, list[LandedCopy]] = field(default_factory=dict)  #: by agent, in the order of its code
    counted: set[Place] = field(default_factory=set)  #: mbarriers that count such copies
    uses: dict[object, MapUse] = field(default_factory=dict)
    phases: list[PhaseBytes] = field(default_factory=list)
    _landed: dict[Place, list[LandedCopy]] = field(default_factory=dict)
    _settled: set[Place] = field(default_factory=set)
    _early: set[Place] = field(default_factory=set)
    _starts: dict[int, set[object]] = field(default_factory=dict)

    def again(self, late: frozenset[Place] = frozenset()) -> BoxlessCopies:
        """For another run, with what is known."""
        return BoxlessCopies(self.sizes, self.open, self.late | late, self.none_fits)

    def use(self, each: Instruction, key: object, rank: int, *, load: bool) -> None:
        """A copy by this map."""
        use = self.uses.setdefault(key, MapUse(rank))
        (use.loads if load else use.stores)[each.position] = None

    def begins(self, offset: int, key: object) -> None:
        """A copy begins at this byte of shared memory; ``key``: of the map without a box, else None."""
        self._starts.setdefault(offset, set()).add(key)

    def land(self, place: Place, copy: LandedCopy) -> None:
        """A copy whose bytes are not known has landed."""
        self._landed.setdefault(place, []).append(copy)

    def known_bytes(self, place: Place, state: BarrierState) -> None:
        """Bytes that are known have landed: too many, if a phase was complete without them that they are part of."""
        if state.tx < 0 and place in self._settled:
            self._early.add(place)

    def settle(self, state_of: Callable[[Place], BarrierState]) -> Place | None:
        """The mbarrier whose phase is complete where nothing else can happen: its copies have what it expects.

        None if there is no such phase. Of several it is the one whose copies have landed first.
        """
        ready = [place for place in self._landed if not state_of(place).pending and state_of(place).tx > 0]
        if not ready:
            return None
        place = next((each for each in ready if each not in self.late), ready[0])
        self.phases.append(PhaseBytes(tuple(self._landed.pop(place)), state_of(place).tx))
        self._settled.add(place)
        return place

    def too_early(self) -> frozenset[Place]:
        """Mbarriers with a phase that was taken to be complete, perhaps before all of its copies had been issued."""
        return frozenset((self._settled & self._landed.keys()) | self._early) - self.late

    def unfinished(self, state_of: Callable[[Place], BarrierState]) -> bool:
        """Whether a phase lacks bytes alone which copies may have given to the phase before, ahead of it."""
        return any(not state_of(place).pending and state_of(place).tx > 0 for place in self.counted)

    def solved(self, state_of: Callable[[Place], BarrierState]) -> BoxlessCopies | None:
        """For another run: bytes of each map with which all phases are complete, None if there are none.

        Where the phases leave several, a box reaches as far as to where the next copy begins, if that is possible.
        """
        keys = [key for key, use in self.uses.items() if use.loads]
        rows = [_row(phase.copies, phase.total, keys) for phase in self.phases]
        waiting = [(c, state_of(p).tx) for p, c in self._landed.items() if state_of(p).pending and state_of(p).tx > 0]
        found = None
        for more in ([_row(copies, total, keys) for copies, total in waiting], []):
            found = found or solve_boxes(keys, rows + more, [self._reach(key) for key in keys])
        if found is None:
            return None
        sizes, unknown = found
        return BoxlessCopies(sizes, unknown, self.late)

    def contradicted(self, streams: Sequence[Stream], barriers: Mapping[Place, int]) -> BoxlessCopies | None:
        """For another run: bytes with which the first phases are complete, if no bytes complete all; else None."""
        keys = [key for key, use in self.uses.items() if use.loads]
        used = []
        for place, bar in barriers.items():
            beside = {number for other, number in barriers.items() if other[1] == place[1]}
            used.append(_use_by_one_agent(streams, bar, beside, self.issued))
        for backwards in (False, True):
            phases = [ends for each in used for ends in each.phases(keys, backwards=backwards)]
            if _some_fit(sorted(phases, key=len), [], [_MOST_TRIED]):
                continue
            rows: list[Row] = []
            for ends in phases:
                rows += [ends[-1]] if _possible([*rows, ends[-1]]) else []
            solved = solve_boxes(keys, rows, [self._reach(key) for key in keys])
            sizes = solved[0] if solved is not None else dict.fromkeys(keys, LEAST_COPY)
            return BoxlessCopies(sizes, frozenset(), self.late, none_fits=True)
        return None

    def _reach(self, key: object) -> int:
        """The fewest bytes from where a copy by this map begins to where another copy does."""
        starts = sorted(self._starts)
        gaps = [end - at for at, end in pairwise(starts) if key in self._starts[at]]
        return min(gaps, default=LEAST_COPY)


Row = tuple[Fraction, ...]  #: boxes of each map, and the bytes of all


def _row(copies: Iterable[LandedCopy], total: int, keys: Sequence[object]) -> Row:
    boxes = dict.fromkeys(keys, 0)
    for each in copies:
        boxes[each.key] += each.boxes
    return (*map(Fraction, boxes.values()), Fraction(total))


_MOST_TRIED = 2_000  #: ways to say where phases end


class _Change(NamedTuple):
    """What one agent does to an mbarrier: it arrives, or changes the bytes, by a number or by boxes of a map."""

    arrives: bool
    expects: int
    copy: LandedCopy | None = None


class _UseByOne(NamedTuple):
    """All of it in order, what may land in any order together; and how many phases have to end."""

    events: Sequence[Sequence[_Change]] = ()
    needed: int = 0

    def phases(self, keys: Sequence[object], *, backwards: bool) -> list[list[Row]]:
        """For each phase what may hold where it ends: the bytes expected until then are those landed until then.

        In a right kernel a phase ends between its arrive and the next one, in every schedule: also in the one in which
        a copy lands immediately, and ``backwards``, where the copies until the agent waits land last to first.
        """
        boxes, left = dict.fromkeys(keys, 0), 0
        found: list[list[Row]] = []
        for together in self.events:
            for each in reversed(together) if backwards else together:
                left += each.expects
                if each.copy is not None:
                    boxes[each.copy.key] += each.copy.boxes
                found += [[]] if each.arrives else []
                if found:
                    found[-1].append((*map(Fraction, boxes.values()), Fraction(left)))
        return found[: self.needed]


def _use_by_one_agent(
    streams: Sequence[Stream], bar: int, beside: Container[int], issued: Mapping[int, Sequence[LandedCopy]]
) -> _UseByOne:
    """The use of an mbarrier of count 1 on which one agent alone arrives and copies; nothing of another mbarrier.

    ``beside``: the mbarriers at the same place in all CTAs, which a multicast may signal.
    """

    def signals(op: Operation) -> bool:
        if op[0] not in ON_BARRIER - LIFE - ASKS:
            return False
        at = operand(op, "barrier")
        return at == bar or (at in beside and op[0] in AT["cta_mask"] and operand(op, "cta_mask") != 0)

    mine = [agent for agent, stream in enumerate(streams) if any(map(signals, stream.code))]
    lives = [op for stream in streams for op in stream.code if op[0] in LIFE and op[BARRIER] == bar]
    if len(mine) != 1 or lives != [(Op.INIT, bar, 1)]:
        return _UseByOne()
    stream, copies = streams[mine[0]], iter(issued.get(mine[0], ()))
    events: list[list[_Change]] = [[]]
    for pc, op in enumerate(stream.code):
        copy = next(copies, None) if op[0] == Op.TMA_LOAD and pc in stream.unsure else None
        if op[0] in MAY_BLOCK:
            events.append([])
        if not signals(op):
            continue
        match op[0]:
            case Op.TMA_LOAD if not operand(op, "cta_mask"):
                events[-1].append(_Change(False, 0 if copy is not None else -op[ASYNC_BYTES], copy))
            case Op.EXPECT_TX:
                events += [[_Change(False, operand(op, "bytes"))], []]
            case Op.ARRIVE if operand(op, "count") == 1:
                events += [[_Change(True, operand(op, "expect"))], []]
            case _:
                return _UseByOne()
    if any(op[0] == Op.JUMP_IF for op in stream.code):
        return _UseByOne()
    arrives = sum(each.arrives for together in events for each in together)
    return _UseByOne(events, max(arrives - 1, *(_phases_awaited(each, bar) for each in streams)))


def _phases_awaited(stream: Stream, bar: int) -> int:
    """How many phases of the mbarrier are complete where the agent ends."""
    complete = 0
    for op in stream.code:
        complete += op[0] in PLAIN_WAITS and op[BARRIER] == bar and operand(op, "parity") == complete & 1
    return complete


def _some_fit(phases: Sequence[Sequence[Row]], rows: list[Row], tries: list[int]) -> bool:
    """Whether some bytes complete all these phases beside ``rows``; True where that takes too long to find out."""
    tries[0] -= 1
    if not phases or tries[0] < 0:
        return True
    more = ([*rows, end] if end not in rows else rows for end in dict.fromkeys(phases[0]))
    return any(_possible(each) and _some_fit(phases[1:], each, tries) for each in more)


def _possible(rows: Sequence[Row]) -> bool:
    """Whether the rows agree, and none leaves a map bytes that cannot be."""
    reduced = _reduced(rows)
    alone = [row for row in reduced.values() if sum(map(bool, row[:-1])) == 1]
    return all(any(row[:-1]) for row in reduced.values()) and all(
        row[-1] > 0 and row[-1] % LEAST_COPY == 0 for row in alone
    )


def _reduced(rows: Iterable[Row]) -> dict[int, list[Fraction]]:
    """The rows in reduced echelon form, by the column of the first that is not 0."""
    found: dict[int, list[Fraction]] = {}
    for each in dict.fromkeys(rows):
        row = list(each)
        for column, other in found.items():
            row = [a - row[column] * b for a, b in zip(row, other, strict=True)]
        first = next((i for i, value in enumerate(row) if value), None)
        if first is None:
            continue
        row = [value / row[first] for value in row]
        for column, other in found.items():
            found[column] = [a - other[first] * b for a, b in zip(other, row, strict=True)]
        found[first] = row
    return found


def solve_boxes(
    keys: Sequence[object], rows: Iterable[Row], reach: Sequence[int]
) -> tuple[dict[object, int], frozenset[object]] | None:
    """Bytes of a box of each map, and the maps of which the rows do not determine them; None if the rows disagree."""
    reduced = _reduced(rows)
    if len(keys) in reduced:
        return None
    free = [i for i in range(len(keys)) if i not in reduced]
    for guess in (reach, [LEAST_COPY] * len(keys)):
        sizes = {i: Fraction(guess[i]) for i in free}
        sizes |= {i: row[-1] - sum(row[f] * guess[f] for f in free) for i, row in reduced.items()}
        if all(size > 0 and size.denominator == 1 for size in sizes.values()):
            unknown = {i for i in range(len(keys)) if i in free or any(reduced[i][f] for f in free)}
            return {key: int(sizes[i]) for i, key in enumerate(keys)}, frozenset(keys[i] for i in unknown)
    return None
