"""Copies by tensor maps whose box the launch does not give: which bytes the phases that count them leave for each.

A phase says what its copies have together, less the bytes that are known. With that a kernel is followed, and what is
wrong whatever the bytes are is found. It does not show that the kernel is right: one that leaves out a copy wherever
it should be beside another one leaves its bytes to that one, in every phase.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from pipesim.model.barrier import BarrierState
from pipesim.model.tables import LEAST_COPY
from pipesim.ptx.emit.record import Place
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
    uses: dict[object, MapUse] = field(default_factory=dict)
    phases: list[PhaseBytes] = field(default_factory=list)
    _landed: dict[Place, list[LandedCopy]] = field(default_factory=dict)
    _settled: set[Place] = field(default_factory=set)
    _early: set[Place] = field(default_factory=set)
    _starts: dict[int, set[object]] = field(default_factory=dict)

    def again(self, late: frozenset[Place] = frozenset()) -> BoxlessCopies:
        """For another run, with what is known."""
        return BoxlessCopies(self.sizes, self.open, self.late | late)

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
