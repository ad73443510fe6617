"""The ways of a warp: how its lanes part at a branch and meet again, and how a branch on an open value is run.

Where the predicate of a branch differs between lanes, one side runs first, then the other, until both have reached the
branch's post-dominator; a stack holds what still has to run. A branch on the result of a try_wait is run both ways in
the same manner, where the way of the answer "not yet" is the one that counts. A branch on a value that is not known is
passed over if nothing on its ways synchronises.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import reduce
from operator import or_
from typing import Protocol

from pipesim.model.barrier import BarrierState
from pipesim.model.ops import Engine
from pipesim.ptx.emit.record import Place, WaysDiffer
from pipesim.ptx.emulate.accesses import PendingAccesses, RecordingCluster, flush
from pipesim.ptx.emulate.code import Code, DecodedStep, StraightRun
from pipesim.ptx.emulate.data_answers import DataAnswers
from pipesim.ptx.emulate.lanes.apart import LaneFences, LanesApart
from pipesim.ptx.emulate.lanes.collectives import WarpLanes
from pipesim.ptx.emulate.lanes.copy_groups import CopyGroups
from pipesim.ptx.emulate.lanes.exchanges import LaneExchanges, Way
from pipesim.ptx.emulate.memory import LocalMemory
from pipesim.ptx.emulate.regions import BranchRegion
from pipesim.ptx.emulate.stop import EmulationStop, Status, WarpStop
from pipesim.ptx.emulate.values import (
    Leaf,
    OpenAnswer,
    PerLane,
    Uniform,
    Unknown,
    Value,
    answer_of,
    answered,
    are_known,
    join_lanes,
    lanes_that_hold,
    leaf_of,
    one_of_two,
    same,
    tries_of,
)
from pipesim.ptx.free.varying import FreeInputs

_MOST_FRAMES = 64  #: branches inside each other of which both ways are run; a loop that such a branch ends has more
_MOST_ANSWERS = 1024  #: branches inside each other by the answers of tries: a loop that asks once more each time


class PartingKind(Enum):
    """Why there are two ways: lanes differ, the result of a try_wait is open, or a predicate is not known."""

    LANES = 0
    ANSWER = 1
    UNKNOWN = 2


@dataclass
class BranchSplit:
    """Ways that parted: those that still have to be run, and the registers after those that have.

    ``joins``: where they may meet, one place as soon as one side has come there. ``asked``: the tries whose answers
    parted the ways; ``mark``: of the recorder, where the first way begins; ``unknown``: the predicate, if not known.
    """

    joins: frozenset[int]
    branch: int
    written: tuple[int, ...]
    saved: dict[int, Value]
    pending: list[tuple[int, int]]
    done: list[tuple[int, dict[int, Value]]] = field(default_factory=list)
    kind: PartingKind = PartingKind.LANES
    asked: tuple[int, ...] = ()
    mark: int = -1
    unknown: Unknown | None = None


class Surroundings(RecordingCluster, Protocol):
    """What a warp needs of its cluster."""

    inputs: FreeInputs
    data: DataAnswers | None
    pauses: bool

    def barrier(self, place: Place) -> BarrierState:
        """The state of the mbarrier at this place."""

    def lanes_ended(self, warp: DividedWarp) -> None:
        """Some lanes of a warp have ended, and others have not."""

    def ended(self, warp: DividedWarp) -> None:
        """A warp has ended."""

    def left_out(self, warp: DividedWarp, step: DecodedStep, leaf: Leaf | None) -> None:
        """An access is left out."""

    def leaves_out(self, warp: DividedWarp, positions: Sequence[int], leaf: Leaf | None) -> bool:
        """Leave out the accesses of a loop, of which it is not known how often it runs; whether that may be."""

    def leave_open(self, positions: Collection[int], leaf: Leaf | None) -> None:
        """It is not known whether and how often it accesses global memory at these positions."""


class DividedWarp(WarpLanes):
    """A warp of a CTA. ``R``: its registers; ``K``: the constants of its code; ``mask``: the lanes that execute."""

    __slots__ = (
        "K", "R", "agent", "apart", "asked", "cluster", "code", "count", "cta", "ended_lanes", "exchanges", "fences",
        "frames", "groups", "guarded", "joins", "local", "maybe", "number", "pc", "pending", "products", "ready",
        "status", "stop", "stores", "tensor_reads", "tensor_writes", "to_part", "tries", "uncommitted", "waited",
        "whole",
    )  # fmt: skip

    def __init__(
        self, cluster: Surroundings, code: Code, cta: int, number: int, mask: int, constants: list[Value]
    ) -> None:
        self.cluster, self.code, self.cta, self.number, self.mask = cluster, code, cta, number, mask
        undefined = Unknown(Leaf("a register that nothing has written", 0))
        self.R: list[Value] = [undefined] * code.registers
        self.K = constants
        self.pc = 0
        self.lanes = self.all_lanes = mask  #: those that this follows, and all that the warp has
        self.ended_lanes = 0
        self.uncommitted = 0  #: lanes that have issued products of tcgen05 since they last committed
        self.apart = LanesApart(cluster.notes.apart, cluster.notes.ahead, self.on_other_ways)
        self.fences = LaneFences(self.apart, cluster.notes.fences_passed_by)
        self.whole = mask  #: the lanes that executed before the guard of the instruction
        self.joins: frozenset[int] = frozenset()  #: where lanes that parted last may meet
        self.frames: list[BranchSplit] = []
        self.status = Status.READY
        self.ready: Callable[[], bool] | None = None
        self.stop: WarpStop | None = None
        self.count = 0
        self.agent = -1
        self.local = LocalMemory()
        self.maybe = 0  #: ways by predicates that are not known, one inside the other
        self.guarded: Leaf | None = None  #: what the guard of the instruction depends on that may or may not run
        self.pending = PendingAccesses()
        #: How often it has stored there, by positions.
        self.stores: dict[tuple[tuple[int, ...], tuple[int, int, int]], int] = {}
        self.products: dict[tuple[int, ...], int] = {}
        self.tensor_reads: list[tuple[int, int, list[tuple[int, int]]]] = []  #: ``maybe``, position, ranges
        self.tensor_writes: list[tuple[int, int, list[tuple[int, int]]]] = []
        self.groups = {Engine.BULK: CopyGroups(), Engine.CP_ASYNC: CopyGroups()}
        self.exchanges = LaneExchanges()
        self.waited = 0  #: lanes that have waited for earlier kernels, or met one that has
        self.to_part = 0  #: lanes that wait at another barrier than those that parted from them
        self.asked: tuple[int, ...] = ()  #: position, barrier and parity of a wait whose loop goes round before it
        self.tries: dict[int, tuple[int, ...]] = {}  #: the same of each try whose answer is open

    @property
    def unsure(self) -> int:
        """Whether what it does now may not happen: 1 by a value that is not known, 2 where one of them
        is a word that the launch leaves open, or tells of what others have done.
        """
        if not self.maybe:
            return 0
        leaves = [self.guarded, *(leaf_of(frame.unknown) for frame in self.frames)]
        return 1 + any(leaf is not None and (leaf.option or leaf.orders) for leaf in leaves)

    @property
    def live(self) -> int:
        """The lanes followed here that have not ended."""
        return self.lanes & ~self.ended_lanes

    def execute_together(self, *, orders: bool) -> None:
        """All lanes execute an instruction together, which ``orders`` their accesses or not."""
        if orders:
            self.exchanges.meet()
            self.apart.meet()
            self.waited = self.all_lanes if self.waited else 0
        else:
            self.exchanges.execute()
            self.apart.execute()

    @property
    def way(self) -> Way:
        """The sides of the branches at which the lanes that execute are apart from others."""
        return tuple((each, len(each.done)) for each in self.frames if each.kind is PartingKind.LANES)

    def on_other_ways(self, some: int) -> int:
        """Those that have reached the end of another way of a branch at which these parted from them, with ``some``."""
        done = (mask for each in self.frames if each.kind is PartingKind.LANES for mask, _ in each.done)
        return reduce(or_, (mask for mask in done if mask & some), 0)

    def _part(self, segment: StraightRun, p: Value) -> int:
        """A branch whose predicate is not one plain integer."""
        self.cluster.inputs.position = segment.position
        if self.cluster.data is not None and not isinstance(p, int):
            p = self.cluster.data.decided(p, self.mask, segment.position, self.cta, ask=self._is_noticed(segment))
        if isinstance(p, int):
            return segment.target if bool(p) is not segment.negated else segment.next
        if isinstance(p, PerLane):
            taken = lanes_that_hold(p, self.mask)
            if not isinstance(taken, int):
                return self._pass_over(segment, taken.whole)
            taken = self.mask & ~taken if segment.negated else taken
            if taken == self.mask:
                return segment.target
            if not taken:
                return segment.next
            if all(frame.kind is PartingKind.LANES for frame in self.frames):
                if self.code.regions.ends_at(segment.target):
                    return self._end_lanes(taken, segment.next)
                if self.code.regions.ends_at(segment.next):
                    return self._end_lanes(self.mask & ~taken, segment.target)
            return self._fork(segment, segment.next, self.mask & ~taken, segment.target, taken)
        if isinstance(p, OpenAnswer):
            return self._ask(segment, p)
        return self._pass_over(segment, p)

    def _end_lanes(self, ended: int, here: int) -> int:
        """Some of the lanes that execute end, and the others continue here."""
        self.mask &= ~ended
        self.ended_lanes |= ended
        self.cluster.lanes_ended(self)
        return here

    def _fork(self, segment: StraightRun, first: int, first_mask: int, second: int, second_mask: int) -> int:
        region = self.code.regions.region_at(segment.position)
        self._open(segment, region, frozenset((region.join,)), (second, second_mask))
        self.mask = first_mask
        return first

    def _open(
        self, segment: StraightRun, region: BranchRegion, joins: frozenset[int], later: tuple[int, int]
    ) -> BranchSplit:
        """Two ways: one runs now, the other one later, from the registers as they are."""
        written = tuple(map(self.code.register, region.written))
        frame = BranchSplit(joins, segment.position, written, {r: self.R[r] for r in written}, [later])
        self.frames.append(frame)
        self.joins = joins
        return frame

    def _meet(self, here: int) -> int:
        """Where the lanes that parted last meet again: the other side runs, or all continue."""
        frame = self.frames[-1]
        if here == self.code.end and frame.kind is PartingKind.LANES and frame.pending:
            self.ended_lanes |= self.mask
            self.cluster.lanes_ended(self)
            return self._other_side(frame)
        frame.joins = self.joins = frozenset((here,))
        frame.done.append((self.mask, {r: self.R[r] for r in frame.written}))
        return self._other_side(frame) if frame.pending else self._all_met(frame, here)

    def _other_side(self, frame: BranchSplit) -> int:
        for r, value in frame.saved.items():
            self.R[r] = value
        if frame.kind is PartingKind.ANSWER:
            flush(self.cluster, self)
            self.cluster.recorder.hold(self.agent)
        pc, self.mask = frame.pending.pop()
        return pc

    def _all_met(self, frame: BranchSplit, here: int) -> int:
        self._leave_frame()
        if frame.kind is not PartingKind.LANES:
            (mask, first), (_, second) = frame.done
            self.mask = mask
        if frame.kind is PartingKind.UNKNOWN:
            assert frame.unknown is not None
            self.maybe -= 1
            for r in frame.written:
                self.R[r] = first[r] if same(first[r], second[r]) else one_of_two(frame.unknown, second[r], first[r])
            return here
        if frame.kind is PartingKind.ANSWER:
            for r in frame.written:
                self.R[r] = _after_tries(frame, first[r], second[r])
            flush(self.cluster, self)
            try:
                self.cluster.recorder.release(self.agent, frame.asked, frame.mark)
            except WaysDiffer:
                self.frames.append(frame)  # it has both ways still
                raise
            return here
        if len(frame.done) > 1:
            region = self.code.regions.region_at(frame.branch)
            self.apart.join(here, parted=bool(region.synchronising or region.accesses))
        self.mask = 0
        for mask, values in frame.done:
            if self.mask:
                for r in frame.written:
                    self.R[r] = join_lanes(mask, values[r], self.R[r])
            else:
                for r in frame.written:
                    self.R[r] = values[r]
            self.mask |= mask
        return here

    def leave_ways(self, *, branches: bool) -> None:
        """It is followed no further: what it has done by an answer "not yet" depends on that."""
        for frame in reversed(self.frames):
            if frame.kind is PartingKind.ANSWER:
                both = not frame.pending
                self.cluster.recorder.leave(self.agent, frame.asked, frame.mark, both=both, branches=branches)

    def _leave_frame(self) -> None:
        self.frames.pop()
        self.joins = self.frames[-1].joins if self.frames else frozenset()

    def _exit(self) -> int:
        """The lanes that execute end. Those that parted from them continue."""
        self.ended_lanes |= self.mask
        self.mask = 0
        while self.frames:
            frame = self.frames[-1]
            if frame.kind is PartingKind.ANSWER:
                raise EmulationStop("the kernel ends, or not, by the result of a try_wait")
            if frame.kind is PartingKind.UNKNOWN:
                leaf = leaf_of(frame.unknown)
                raise EmulationStop("the kernel ends, or not, by a value that is not known", leaf)
            if frame.pending or frame.done:
                self.cluster.lanes_ended(self)
            if frame.pending:
                return self._other_side(frame)
            if frame.done:
                (here,) = frame.joins
                return self._all_met(frame, here)
            self._leave_frame()
        flush(self.cluster, self)
        self.pc = self.code.end
        self.status = Status.ENDED
        self.cluster.ended(self)
        return -1

    # answers of tries, unknown values

    def _ask(self, segment: StraightRun, p: OpenAnswer) -> int:
        """A branch on the result of a try_wait: both ways are run where they differ."""
        ways, tries = list[int](), sorted(tries_of(p))
        if tries[1:]:
            trap = any(map(self.code.regions.leads_nowhere, (segment.target, segment.next)))
            if trap or not _needs_all(p, tries) or self._inside_a_spin(segment) >= 0:
                return self._pass_over(segment, Unknown(Leaf("the answers of two tries", 0)))
            self.cluster.notes.asked_together.add(segment.position)
        for value in (answered(p, dict.fromkeys(tries, answer)) for answer in (False, True)):
            if isinstance(value, int):
                ways.append(segment.target if bool(value) is not segment.negated else segment.next)
                continue
            ways.append(self._inside_a_spin(segment))
            if ways[-1] < 0:
                raise EmulationStop("a branch depends on the result of a try_wait and on the lane", leaf_of(value))
            self.cluster.notes.time_outs.add(segment.position)
        if ways[0] == ways[1]:
            return ways[0]
        if self.code.regions.leads_nowhere(ways[0]):  # a trap: asked again where it said no, it is a wait
            asked_at = self.tries[p.asked][0]
            if segment.position not in self.code.regions.ahead(asked_at + 1):
                raise EmulationStop("the kernel traps, or not, by the result of a try_wait")
            self.cluster.notes.time_outs.add(segment.position)
            ways[0] = asked_at
        if len(self.frames) >= _MOST_ANSWERS:
            raise EmulationStop(f"what follows depends on the answers of more than {_MOST_ANSWERS:,} tries")
        region = self.code.regions.region_at(segment.position)
        flush(self.cluster, self)
        mark = self.cluster.recorder.mark(self.agent, tries[0])
        joins = frozenset((region.join, *self.code.regions.ahead(ways[1])))
        frame = self._open(segment, region, joins, (ways[1], self.mask))
        frame.kind, frame.asked, frame.mark = PartingKind.ANSWER, tuple(tries), mark
        return ways[0]

    def _pass_over(self, segment: StraightRun, p: Value) -> int:
        """A branch on a value that is not known: both ways, if nothing on them makes others wait or continue."""
        here = segment.position
        leaf = leaf_of(p)
        region = self.code.regions.region_at(here)
        stays = self._inside_a_spin(segment)
        if stays >= 0:
            self.cluster.notes.time_outs.add(here)
            return stays
        if region.noticed or region.accesses or region.stores:
            for way, other in (segment.target, segment.next), (segment.next, segment.target):
                if self.code.regions.leads_nowhere(way):
                    self.cluster.notes.traps.add(here)
                    return other
        if region.noticed:
            raise EmulationStop("a branch depends on a value that is not known", leaf)
        unknown = p if isinstance(p, Unknown) else Unknown(leaf or Leaf("an unknown value", 0))
        whole = unknown.whole
        self.cluster.notes.passed_over.add(here)
        if here in self.code.parting:
            self.cluster.notes.unknown_meetings |= region.meetings
        accesses = region.accesses and not region.polls
        if accesses and leaf is not None:
            self.cluster.notes.perhaps.setdefault(here, leaf.what)
        if region.join < self.code.end and (accesses or not region.has_loop) and len(self.frames) < _MOST_FRAMES:
            return self._both_ways(segment, region, unknown)
        if region.on_global:
            self.cluster.leave_open(region.on_global, leaf)
        if accesses and (not region.touching or not self.cluster.leaves_out(self, region.touching, leaf)):
            raise EmulationStop("a branch depends on a value that is not known", leaf)
        for name in region.varying:
            register = self.code.register(name)
            self.R[register] = whole
        if region.stores:
            self.local.forget()
        return region.join

    def _is_noticed(self, segment: StraightRun) -> bool:
        """Whether others notice which way a branch takes that is none to a trap or out of a wait."""
        regions = self.code.regions
        if not regions.region_at(segment.position).noticed or self._inside_a_spin(segment) >= 0:
            return False
        return not any(map(regions.leads_nowhere, (segment.target, segment.next)))

    def _both_ways(self, segment: StraightRun, region: BranchRegion, unknown: Unknown) -> int:
        """Run both; what they store may or may not be stored, and registers that differ afterwards are not known."""
        frame = self._open(segment, region, frozenset((region.join,)), (segment.target, self.mask))
        taken = unknown ^ 1 if segment.negated and isinstance(unknown, Uniform) else unknown
        frame.kind, frame.unknown = PartingKind.UNKNOWN, taken
        self.maybe += 1
        return segment.next

    def _inside_a_spin(self, segment: StraightRun) -> int:
        """The way of a branch inside a loop that spins on an mbarrier, where the other way leaves the loop; else -1."""
        for loop in self.code.regions.loops.spins.values():
            if segment.position in loop:
                target, after = segment.target in loop, segment.next in loop
                if target != after:
                    return segment.target if target else segment.next
        return -1


def _needs_all(p: OpenAnswer, tries: Sequence[int]) -> bool:
    """Whether a predicate is the same whichever of the tries says "not yet", and another one if none does."""
    answers = [dict.fromkeys(tries, False), *({other: other != each for other in tries} for each in tries)]
    some = [answered(p, each) for each in answers]
    complete = answered(p, dict.fromkeys(tries, True))
    return are_known((*some, complete)) and {bool(each) for each in some} == {not complete}


def _after_tries(frame: BranchSplit, first: Value, second: Value) -> Value:
    """A register after both ways of the answers of tries."""
    if len(frame.asked) == 1:
        return answer_of(frame.asked[0], first, second)
    complete = answered(second, dict.fromkeys(frame.asked, True))
    return complete if same(first, complete) else Unknown(Leaf("the answers of two tries", 0))
