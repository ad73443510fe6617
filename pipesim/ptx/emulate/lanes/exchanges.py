"""Bytes of shared memory that lanes of one warp hand to each other, and whether PTX orders the two accesses.

Program order is a lane's own, and the lanes of a warp are scheduled independently: what one has stored another sees
after a barrier in which both take part (``bar.warp.sync``), or by an mbarrier (PTX ISA, "bar.warp.sync", "Memory
Consistency Model"). What is not ordered so is in order as long as the lanes run in step, which is assumed, except on
two ways of one branch.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple, assert_never

from pipesim.ptx.emulate.stop import Notes
from pipesim.ptx.emulate.values import lanes_in

Way = tuple[tuple[object, int], ...]  #: of each branch at which the lanes are apart: the branch, and its side
_WORD = 4
_MOST = 2_048  #: accesses and events of a warp that are remembered while its lanes do not meet


class Starts(NamedTuple):
    """The first bytes that lanes access, as numbers of four bytes: a long loop leaves very many."""

    each: array[int]
    first: int
    last: int
    whole: bool  #: whether each is the first byte of a word


@lru_cache(maxsize=1 << 9)
def _starts_of(numbers: bytes) -> Starts:
    """The same ones are accessed in each lap of a loop."""
    each = array("I", numbers)
    return Starts(each, min(each), max(each), not any(at % _WORD for at in each))


class LaneStarts(NamedTuple):
    """Lanes as a mask, and the first bytes that they access; ``together``: each of these lanes accesses all of them."""

    mask: int
    starts: Starts
    together: bool = False

    def by_lane(self) -> Iterator[tuple[int, int]]:
        """Each with its byte; all where some access other memory, and it is not known here which."""
        starts = self.starts.each
        lanes = lanes_in(self.mask) if len(starts) > 1 and not self.together else ()
        masks = (1 << lane for lane in lanes) if len(lanes) == len(starts) else repeat(self.mask)
        return zip(masks, starts, strict=False)

    def within(self, mask: int) -> LaneStarts:
        """Those of these lanes."""
        if not self.mask & ~mask:
            return self
        return lanes_at(self.mask & mask, (at for lane, at in self.by_lane() if lane & mask))


class ExchangeOrder(IntEnum):
    """What orders two accesses of different lanes: PTX, that the lanes run in step, or nothing."""

    PTX = 0
    IN_STEP = 1
    NONE = 2


def note_exchange(notes: Notes, position: int, order: ExchangeOrder) -> None:
    """An access that may be in order after those of other lanes."""
    match order:
        case ExchangeOrder.PTX:
            pass
        case ExchangeOrder.IN_STEP:
            notes.exchanged.add(position)
        case ExchangeOrder.NONE:
            notes.undefined[position] = "lanes on two ways of a branch access the same bytes, and nothing orders it"
        case _:
            assert_never(order)


class LaneEvent(Enum):
    """What may order the accesses of lanes: they meet, they arrive on an mbarrier, or they have waited for one.

    FENCE: lanes execute a proxy fence, for what each of them has stored itself.
    """

    MEET = 0
    ARRIVE = 1
    WAIT = 2
    FENCE = 3


class Signalled(NamedTuple):
    """An arrival, or a wait, of lanes of a warp. ``place``: the mbarrier.

    ``phase``: in which they arrive, or for whose end they have waited.
    """

    event: LaneEvent
    lanes: int
    place: object = None
    phase: int = 0


class _LaneAccess(NamedTuple):
    """An access of lanes to ``size`` bytes each; ``after``: the events before it; ``alike``: atomics, in any order.

    ``steps``: the instructions before it that all lanes have executed together.
    """

    lanes: LaneStarts
    size: int
    after: int
    steps: int
    way: Way
    alike: bool = False

    @property
    def grain(self) -> int:
        """The bytes that it is compared by."""
        return _WORD if self.lanes.starts.whole and not self.size % _WORD else 1

    def words(self, at: int, grain: int) -> range:
        """Those of the lanes that access from this byte on."""
        return range(at // grain, -(-(at + self.size) // grain))


@dataclass
class _LaneAccesses:
    """The reads or the writes of a CTA's memory since the lanes last met, and who they are by word, once asked for.

    ``lost``: the bytes, from the first to the last, whose accesses are forgotten.
    """

    all: list[_LaneAccess] = field(default_factory=list)
    first: int = 1 << 62
    end: int = 0
    grain: int = _WORD
    lost: tuple[int, int] = 0, 0
    _indexed: int = 0
    _owners: dict[int, list[tuple[_LaneAccess, int]]] = field(default_factory=dict)

    def add(self, access: _LaneAccess) -> None:
        """One more."""
        first, end = _bounds(access)
        self.first, self.end = min(self.first, first), max(self.end, end)
        self.all.append(access)
        if len(self.all) > _MOST:
            self.lost = self.first, self.end
            del self.all[: _MOST // 2]
            self._begin(self.grain)

    def _begin(self, grain: int) -> None:
        self._indexed, self.grain, self._owners = 0, grain, {}

    def by_word(self, grain: int, *, last: bool) -> dict[int, list[tuple[_LaneAccess, int]]]:
        """By word, or by byte, who has accessed it; ``last``: only the last access of each."""
        grain = min(self.grain, grain, *(each.grain for each in self.all[self._indexed :]))
        if grain < self.grain:
            self._begin(grain)
        owners = self._owners
        for each in self.all[self._indexed :]:
            for lanes, at in each.lanes.by_lane():
                for word in each.words(at, grain):
                    held = owners.setdefault(word, [])
                    if held and held[-1][0] is each:
                        held[-1] = each, held[-1][1] | lanes
                    elif last and held:
                        held[:] = [(each, lanes)]
                    else:
                        if held[1:]:
                            _forget_alike(held, each.way)
                        held.append((each, lanes))
        self._indexed = len(self.all)
        return owners


class _LaneCopy(NamedTuple):
    """Copies that lanes have issued by one ``cp.async``."""

    cta: int
    lanes: LaneStarts
    size: int


class _LaneGroup(NamedTuple):
    """Copies that lanes have committed together."""

    by: int
    copies: list[_LaneCopy]


class LaneExchanges:
    """The accesses of a warp's lanes since all of them last met, and what may order them.

    A lane's wait for its groups of ``cp.async`` makes its own copies accesses of this lane, and no one else's.
    ``inits``: lanes that have initialised an mbarrier, and have executed no fence since.
    """

    __slots__ = ("_events", "_gone", "_groups", "_open", "_phases", "_quiet", "_reads", "_steps",
                 "_writes", "inits")  # fmt: skip

    def __init__(self) -> None:
        self._phases: dict[object, int] = {}  #: by place, or place and lanes: the first phase that a wait may be for
        self._reads: dict[int, _LaneAccesses] = {}
        self._writes: dict[int, _LaneAccesses] = {}
        self._events: list[Signalled] = []
        self._quiet = True  #: whether nothing was accessed since the last event
        self._open: list[_LaneCopy] = []
        self._groups: list[_LaneGroup] = []
        self.inits = 0
        self._steps = self._gone = 0

    def execute(self) -> None:
        """All lanes execute an instruction together, which does not order what they access."""
        self._steps += 1

    def meet(self) -> None:
        """All lanes meet."""
        if self._writes or self._reads:
            self._writes, self._reads, self._events, self._gone, self._quiet = {}, {}, [], 0, True
        self._phases = {}

    def happens(
        self, event: LaneEvent, lanes: int, place: object = None, phase: int = 0, *, relaxed: bool = False
    ) -> None:
        """Something that may order what was accessed before, which nothing ``relaxed`` does.

        A wait may be for an earlier phase of its parity: others of the warp may have arrived since, that run by
        themselves. It is for the first one of which its lanes have not seen the end, since all last met.
        """
        if place is not None:
            first = self._phases.setdefault(place, phase)
            if event is LaneEvent.WAIT:
                first = min(self._phases.get((place, lanes), first), phase)
                phase = first + (phase - first & 1)
                self._phases[place, lanes] = phase + 1
        if relaxed:
            return
        found = Signalled(event, lanes, place, phase)
        if not (self._writes or self._reads) or (self._quiet and self._events and self._events[-1] == found):
            return
        self._events.append(found)
        self._quiet = True
        if len(self._events) > _MOST:
            del self._events[: _MOST // 2]
            self._gone += _MOST // 2

    def read(self, cta: int, lanes: LaneStarts, size: int, way: Way) -> ExchangeOrder:
        """Lanes load; what orders it after what other lanes have stored."""
        access = self._access(lanes, size, way)
        found = self._order(self._writes.get(cta), access, reads=True)
        self._reads.setdefault(cta, _LaneAccesses()).add(access)
        return found

    def write(self, cta: int, lanes: LaneStarts, size: int, way: Way, *, alike: bool = False) -> ExchangeOrder:
        """Lanes store; what orders it after what other lanes have loaded and stored there."""
        access = self._access(lanes, size, way, alike=alike)
        found = self._overwrites(cta, access)
        self._writes.setdefault(cta, _LaneAccesses()).add(access)
        return found

    def write_together(self, cta: int, starts: Sequence[int], size: int, way: Way) -> None:
        """All lanes store by one instruction: the bytes are no lane's own."""
        access = self._access(lanes_at(0, starts), size, way)
        self._writes.setdefault(cta, _LaneAccesses()).add(access)

    def copy(self, cta: int, lanes: LaneStarts, size: int, way: Way) -> ExchangeOrder:
        """Lanes issue ``cp.async``; what orders it after what other lanes have loaded and stored there."""
        self._open.append(_LaneCopy(cta, lanes, size))
        return self._overwrites(cta, self._access(lanes, size, way))

    def order(self, cta: int, lanes: LaneStarts, size: int, way: Way, *, writes: bool) -> ExchangeOrder:
        """What orders a copy of these bytes, that lanes begin now, after what other lanes have done to them."""
        access = _LaneAccess(lanes, size, self._gone + len(self._events), self._steps, way)
        return self._overwrites(cta, access) if writes else self._order(self._writes.get(cta), access, reads=True)

    def commit(self, lanes: int) -> None:
        """What these lanes have issued is a group."""
        self._groups.append(_LaneGroup(lanes, _of(self._open, lanes)))
        self._open = _of(self._open, ~lanes)

    def copied(self, lanes: int, groups: int, way: Way) -> None:
        """These lanes have waited for all of their groups but this many."""
        mine = [group for group in self._groups if group.by & lanes]
        for group in mine[: len(mine) - groups]:
            for each in _of(group.copies, lanes):
                self.write(each.cta, each.lanes, each.size, way)
            group.copies[:] = _of(group.copies, ~lanes)
            if not group.copies:
                self._groups.remove(group)
        del self._groups[:-_MOST]

    def stored_by_others(self, lanes: int) -> tuple[list[tuple[int, int]], bool]:
        """Bytes that other lanes have stored and not fenced, with nothing that orders it before what these do now.

        And whether some are in order only as all lanes have executed an instruction together since.
        """
        found, in_step = [], False
        for each in (each for accesses in self._writes.values() for each in accesses.all):
            fenced = lanes
            for event in self._since(each.after):
                fenced |= event.lanes if event.event is LaneEvent.FENCE else 0
            others = ((mask & ~fenced, at) for mask, at in each.lanes.by_lane())
            open_ = [(at, at + each.size) for mask, at in others if mask and not self._is_ordered(each, mask, lanes)]
            if each.steps < self._steps:
                in_step = in_step or bool(open_)
            else:
                found += open_
        return found, in_step

    def _access(self, lanes: LaneStarts, size: int, way: Way, *, alike: bool = False) -> _LaneAccess:
        self._quiet = False
        return _LaneAccess(lanes, size, self._gone + len(self._events), self._steps, way, alike)

    def _since(self, after: int) -> list[Signalled]:
        """The events that came after this many, as far as they are remembered."""
        return self._events[max(after - self._gone, 0) :]

    def _overwrites(self, cta: int, access: _LaneAccess) -> ExchangeOrder:
        stored = self._order(self._writes.get(cta), access, reads=False)
        loaded = self._order(self._reads.get(cta), access, reads=False)
        return max(stored, loaded)

    def _order(self, before: _LaneAccesses | None, access: _LaneAccess, *, reads: bool) -> ExchangeOrder:
        """What orders this access after those of other lanes to the same bytes."""
        if before is None:
            return ExchangeOrder.PTX
        first, end = _bounds(access)
        if end <= before.first or first >= before.end:
            return ExchangeOrder.PTX
        found = ExchangeOrder.PTX
        if first < before.lost[1] and end > before.lost[0]:
            found = ExchangeOrder.NONE if access.way else ExchangeOrder.IN_STEP
        owners = before.by_word(access.grain, last=reads)
        judged: dict[tuple[int, int, int], ExchangeOrder] = {}
        for lanes, at in access.lanes.by_lane():
            for word in access.words(at, before.grain):
                for other, theirs in owners.get(word, ()):
                    key = id(other), theirs, lanes
                    if key not in judged:
                        judged[key] = self._between(other, theirs, access, lanes, reads=reads)
                        found = max(found, judged[key])
        return found

    def _between(
        self, other: _LaneAccess, theirs: int, access: _LaneAccess, lanes: int, *, reads: bool
    ) -> ExchangeOrder:
        alone = theirs == lanes and lanes & (lanes - 1) == 0
        itself = alone or (reads and not other.alike and theirs & lanes == lanes)
        if itself or (other.alike and access.alike):
            return ExchangeOrder.PTX
        ways = zip(access.way, other.way, strict=False)
        apart = any(mine is yours and side != other_side for (mine, side), (yours, other_side) in ways)
        if self._is_ordered(other, theirs, lanes, signals=not apart):  # lanes that signal there are followed apart
            return ExchangeOrder.PTX
        return ExchangeOrder.NONE if apart else ExchangeOrder.IN_STEP

    def _is_ordered(self, access: _LaneAccess, theirs: int, lanes: int, *, signals: bool = True) -> bool:
        """Whether what happened since then orders an access of each of some lanes before what others do now."""
        if access.after == self._gone + len(self._events) or not theirs:
            return False
        return all(self._told(access.after, 1 << lane, signals) & lanes == lanes for lane in lanes_in(theirs))

    def _told(self, after: int, lane: int, signals: bool) -> int:  # noqa: FBT001
        """The lanes before whose next access one of this lane is ordered; ``signals``: not only as they meet.

        By mbarrier the first phase in which it was ``sent``: whoever arrives in the phase whose end is waited for, or
        before that, comes before it.
        """
        told, sent = lane, dict[object, int]()
        for each in self._since(after):
            if each.event is LaneEvent.MEET:
                told |= each.lanes if told & each.lanes else 0
            elif not signals:
                pass
            elif each.event is LaneEvent.ARRIVE and told & each.lanes:
                sent.setdefault(each.place, each.phase)
            elif each.event is LaneEvent.WAIT and sent.get(each.place, each.phase + 1) <= each.phase:
                told |= each.lanes
        return told


def _forget_alike(held: list[tuple[_LaneAccess, int]], way: Way) -> None:
    """Of accesses by the same lanes the last one: what orders it orders those before.

    ``way``: of what comes now. Branches that are not on it have ended.
    """
    last, lanes = held[-1]
    for at, (each, by) in enumerate(held[:-1]):
        if by == lanes and each.alike == last.alike and _sides(each.way, way) == _sides(last.way, way):
            del held[at]
            return


def _sides(then: Way, now: Way) -> list[int]:
    return [side for (branch, side), (other, _) in zip(then, now, strict=False) if branch is other]


def _bounds(access: _LaneAccess) -> tuple[int, int]:
    return access.lanes.starts.first, access.lanes.starts.last + access.size


def _of(copies: list[_LaneCopy], lanes: int) -> list[_LaneCopy]:
    """Those of these lanes."""
    return [each._replace(lanes=each.lanes.within(lanes)) for each in copies if each.lanes.mask & lanes]


def lanes_at(mask: int, starts: Iterable[int], *, together: bool = False) -> LaneStarts:
    """The lanes that execute, each with the first byte that it accesses."""
    return LaneStarts(mask, _starts_of(array("I", starts).tobytes()), together)
