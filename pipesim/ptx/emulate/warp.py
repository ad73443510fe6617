"""One warp: registers, the lanes that execute, and how they part and meet again.

Where the predicate of a branch differs between lanes, one side runs first, then the other, until both have come to the
branch's post-dominator; a stack holds who still has to run. A branch on the answer of a try is run both ways in the
same manner, where the way of the answer "not yet" is the one that counts. A branch on a value that is not known is
passed over if nothing on its ways synchronises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from pipesim.model.ops import Engine
from pipesim.ptx.emulate.accesses import Pending, Recorded, flush
from pipesim.ptx.emulate.code import After, Code, DecodedStep, StraightRun
from pipesim.ptx.emulate.groups import CopyGroups
from pipesim.ptx.emulate.lanes import WarpLanes
from pipesim.ptx.emulate.malformed import MALFORMED, malformed
from pipesim.ptx.emulate.memory import LocalMemory
from pipesim.ptx.emulate.regions import BranchRegion
from pipesim.ptx.emulate.values import (
    WARP,
    Leaf,
    OpenAnswer,
    PerLane,
    Unknown,
    Value,
    answer_of,
    joined,
    lanes_in,
    leaf_of,
    same,
)
from pipesim.ptx.flow.opcodes import ACCESSES

#: What is carried out under a guard that is not known: of accesses all that they may do, of fences nothing.
_PERHAPS = ACCESSES | {"fence", "membar"}


class Parted(Enum):
    """Why there are two ways: lanes differ, the answer of a try is open, or a predicate is not known."""

    LANES = 0
    ANSWER = 1
    UNKNOWN = 2


class Status(Enum):
    """Whether a warp can go on."""

    READY = 0
    BLOCKED = 1
    STOPPED = 2
    ENDED = 3


@dataclass(frozen=True)
class WarpStop:
    """Why a warp was not followed further: the instruction's position, a sentence, and the unknown value, if any."""

    position: int
    line: int
    what: str
    leaf: Leaf | None = None


class Stopped(Exception):  # noqa: N818  # ends the emulation of one warp, which is a result
    """An instruction whose effect is not known, and that others may notice."""

    def __init__(self, what: str, leaf: Leaf | None = None) -> None:
        super().__init__(what)
        self.what, self.leaf = what, leaf


@dataclass
class Parting:
    """Ways that parted: those that still have to be run, and the registers after those that have.

    ``joins``: where they may meet, one place as soon as one side has come there. ``asked``: the try whose answer parted
    the ways; ``mark``: of the recorder, where the first of them begins; ``unknown``: the predicate that is not known.
    """

    joins: frozenset[int]
    branch: int
    written: tuple[int, ...]
    saved: dict[int, Value]
    pending: list[tuple[int, int]]
    done: list[tuple[int, dict[int, Value]]] = field(default_factory=list)
    kind: Parted = Parted.LANES
    asked: int = -1
    mark: int = -1
    unknown: Unknown | None = None


class Surroundings(Recorded, Protocol):
    """What a warp needs of its cluster."""

    def ended(self, warp: EmulatedWarp) -> None:
        """A warp has ended."""

    def parted(self, region: BranchRegion) -> None:
        """Lanes of a warp part."""

    def assume_no_time_out(self, position: int) -> None:
        """A time-out is not followed."""

    def assume_not_taken(self, position: int) -> None:
        """A trap is not followed."""

    def passed_over(self, position: int) -> None:
        """A branch on an unknown value is passed over, or run both ways."""

    def undefined(self, position: int, what: str) -> None:
        """PTX does not define what happens here."""

    def left_out(self, warp: EmulatedWarp, step: DecodedStep, leaf: Leaf | None) -> None:
        """An access is left out."""


class EmulatedWarp(WarpLanes):
    """A warp of a CTA. ``R``: its registers; ``K``: the constants of its code; ``mask``: the lanes that execute."""

    __slots__ = (
        "K", "R", "agent", "asked", "cluster", "code", "count", "cta", "frames", "groups", "joins", "local", "maybe",
        "number", "pc", "pending", "products", "ready", "status", "stop", "stores", "tensor_reads", "tensor_writes",
        "tries", "whole",
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
        self.whole = mask  #: the lanes that executed before the guard of the instruction
        self.joins: frozenset[int] = frozenset()  #: where lanes that parted last may meet
        self.frames: list[Parting] = []
        self.status = Status.READY
        self.ready: Callable[[], bool] | None = None
        self.stop: WarpStop | None = None
        self.count = 0
        self.agent = -1
        self.local = LocalMemory()
        self.maybe = 0  #: ways by predicates that are not known, one inside the other
        self.pending = Pending()
        self.stores: dict[tuple[int, tuple[int, int, int]], int] = {}  #: how often it has stored there, by position
        self.products: dict[tuple[int, ...], int] = {}
        self.tensor_reads: list[tuple[int, int, list[tuple[int, int]]]] = []  #: ``maybe``, position, ranges
        self.tensor_writes: list[tuple[int, int, list[tuple[int, int]]]] = []
        self.groups = {Engine.BULK: CopyGroups(), Engine.CP_ASYNC: CopyGroups()}
        self.asked: tuple[int, ...] = ()  #: position, barrier and parity of a wait whose loop goes round before it
        self.tries: dict[int, tuple[int, ...]] = {}  #: the same of each try whose answer is open

    @property
    def threads(self) -> int:
        """How many of the threads that a barrier counts are those of the lanes followed here: a warp is whole."""
        return self.lanes.bit_count() if self.is_part else WARP

    @property
    def is_part(self) -> bool:
        """Whether other lanes of the warp are followed apart from these."""
        return self.lanes != self.all_lanes

    @property
    def leads(self) -> bool:
        """Whether it is the part that carries out what a warp does as a whole."""
        return bool(self.lanes & -self.all_lanes & self.all_lanes)

    def lanes_that_wait_to_run(self) -> int:
        """The lanes that parted from those that are blocked, and that would synchronise before they meet them again."""
        for frame in self.frames:
            if frame.kind is Parted.LANES:
                found = 0
                for pc, mask in frame.pending:
                    found |= mask if self.code.regions.synchronises_before(pc, frame.branch) else 0
                if found:
                    return found
        return 0

    def run(self, most: int) -> int:
        """Go on until it is blocked, stopped or ended, or ``most`` instructions are done; how many were.

        PtxError for an instruction with operands that it cannot have.
        """
        before = self.count
        try:
            self._run(before + most)
        except Stopped as stopped:
            self.end_at(stopped.what, stopped.leaf)
        except MALFORMED as error:
            raise malformed(self.code.body[min(self.pc, self.code.end - 1)]) from error
        return self.count - before

    @property
    def has_two_ways(self) -> bool:
        """Whether it runs what happens by one answer of a try, and not by the other."""
        return any(frame.kind is Parted.ANSWER for frame in self.frames)

    def was_answered_no(self, question: tuple[int, ...]) -> bool:
        """Whether this is where a try that asked the same has said no."""
        return any(
            frame.kind is Parted.ANSWER and frame.pending and self.tries.get(frame.asked) == question
            for frame in self.frames
        )

    def ready_now(self) -> bool:
        """Whether a blocked warp can go on."""
        return self.ready is not None and self.ready()

    def end_at(self, what: str, leaf: Leaf | None) -> None:
        """Follow this warp no further."""
        line = self.code.body[self.pc].line if self.pc < self.code.end else 0
        self.stop = WarpStop(self.pc, line, what, leaf)
        self.status = Status.STOPPED

    def _run(self, limit: int) -> None:
        code, registers, constants = self.code, self.R, self.K
        segments = code.segments
        if self.status is Status.BLOCKED:
            self.status, self.ready = Status.READY, None  # the cluster has asked
            self.pc += 1
        pc = self.pc
        while self.count < limit:
            if pc in self.joins:
                self.pc = pc
                pc = self._meet(pc)
                continue
            segment: StraightRun = segments.get(pc) or code.segment(pc)
            self.pc = segment.position
            if segment.run is not None:
                segment.run(registers, constants, self)
            self.count += segment.count
            after = segment.after
            if after is After.BRANCH:
                if segment.guard < 0:
                    pc = segment.target
                    continue
                p = registers[segment.guard]
                if p.__class__ is int or p.__class__ is bool:
                    pc = segment.target if bool(p) is not segment.negated else segment.next
                else:
                    pc = self._part(segment, p)
            elif after is After.NEXT:
                pc = segment.next
            elif after is After.EXIT:
                pc = self._exit()
                if pc < 0:
                    return
            else:
                pc = self._effect(segment)
                if pc < 0:
                    return
        self.pc = pc

    # instructions that do more than compute

    def _effect(self, segment: StraightRun) -> int:
        """Carry it out in the lanes whose guard holds; the next position, -1 if the warp is blocked."""
        step = segment.step
        assert step is not None
        if step.converges:
            if self.frames and self.frames[-1].kind is Parted.LANES:
                return self._converge(segment.position)
            if self.is_part and not self.leads and not step.by_threads:
                return segment.next
        if step.guard < 0:
            self.whole = self.mask
            jump = step.effect(self.cluster, self, step)
        else:
            try:
                mask = self._guarded(step.guard, negated=step.negated)
            except Stopped as stopped:
                if step.needed:
                    raise
                if step.instruction.opcode in _PERHAPS:
                    self._perhaps(step, stopped.leaf)
                    return segment.next
                self.cluster.left_out(self, step, stopped.leaf)
                return segment.next
            if not mask:
                return segment.next
            self.whole = self.mask
            all_lanes, self.mask = self.mask, mask
            if step.together and mask != all_lanes:
                self.cluster.undefined(segment.position, "only some lanes run what all of a warp have to run together")
            try:
                jump = step.effect(self.cluster, self, step)
            finally:
                self.mask = all_lanes
        if self.status is Status.BLOCKED:
            return -1
        return segment.next if jump is None else int(jump)

    def _converge(self, here: int) -> int:
        """An instruction that the lanes of a warp execute together: those that parted meet here, wherever that is."""
        frame = self.frames[-1]
        if frame.done:
            raise Stopped("lanes that parted reach different instructions which a warp executes together")
        return self._meet(here)

    def _guarded(self, guard: int, *, negated: bool) -> int:
        """The lanes that execute and whose predicate holds. Stopped if that is not known."""
        p = self.R[guard]
        if isinstance(p, int):
            return self.mask if bool(p) is not negated else 0
        if isinstance(p, PerLane):
            found = 0
            for lane in lanes_in(self.mask):
                value = p.each[lane]
                if not isinstance(value, int):
                    raise Stopped("whether it runs depends on a value that is not known", leaf_of(value))
                found |= (bool(value) is not negated) << lane
            return found
        raise Stopped("whether it runs depends on a value that is not known", leaf_of(p))

    def _perhaps(self, step: DecodedStep, leaf: Leaf | None) -> None:
        """An access or fence under a guard that is not known: it may have happened, and what it loads is not known."""
        p = self.R[step.guard]
        each = p.each if isinstance(p, PerLane) else [p] * WARP
        self.whole, mask = self.mask, self.mask
        for lane in lanes_in(mask):
            value = each[lane]
            if isinstance(value, int) and bool(value) is step.negated:
                self.mask &= ~(1 << lane)
        self.maybe += 1
        try:
            step.effect(self.cluster, self, step)
        finally:
            self.mask = mask
            self.maybe -= 1
        for register in step.results:
            self.R[register] = self.code.unknown_value(leaf)

    def block(self, ready: Callable[[], bool]) -> None:
        """Stand here until ``ready``; the position after this one follows."""
        self.status, self.ready = Status.BLOCKED, ready

    def write(self, register: int, value: Value) -> None:
        """A result in the lanes that execute."""
        self.R[register] = value if self.mask == self.whole else joined(self.mask, value, self.R[register])

    # lanes that part

    def _part(self, segment: StraightRun, p: Value) -> int:
        """A branch whose predicate is not one known integer."""
        if isinstance(p, PerLane):
            taken = 0
            for lane in lanes_in(self.mask):
                value = p.each[lane]
                if not isinstance(value, int):
                    return self._pass_over(segment, value)
                taken |= (bool(value) is not segment.negated) << lane
            if taken == self.mask:
                return segment.target
            if not taken:
                return segment.next
            return self._fork(segment, segment.next, self.mask & ~taken, segment.target, taken)
        if isinstance(p, OpenAnswer):
            return self._ask(segment, p)
        return self._pass_over(segment, p)

    def _fork(self, segment: StraightRun, first: int, first_mask: int, second: int, second_mask: int) -> int:
        region = self.code.regions.of(segment.position)
        written = tuple(map(self.code.register, region.written))
        saved = {r: self.R[r] for r in written}
        frame = Parting(frozenset((region.join,)), segment.position, written, saved, [(second, second_mask)])
        self.frames.append(frame)
        self.cluster.parted(region)
        self.mask, self.joins = first_mask, frame.joins
        return first

    def _meet(self, here: int) -> int:
        """Where the lanes that parted last meet again: the other side runs, or all go on."""
        frame = self.frames[-1]
        frame.joins = self.joins = frozenset((here,))
        frame.done.append((self.mask, {r: self.R[r] for r in frame.written}))
        return self._other_side(frame) if frame.pending else self._all_met(frame, here)

    def _other_side(self, frame: Parting) -> int:
        for r, value in frame.saved.items():
            self.R[r] = value
        if frame.kind is Parted.ANSWER:
            flush(self.cluster, self)
            self.cluster.recorder.hold(self.agent)
        pc, self.mask = frame.pending.pop()
        return pc

    def _all_met(self, frame: Parting, here: int) -> int:
        self._leave_frame()
        if frame.kind is not Parted.LANES:
            (mask, first), (_, second) = frame.done
            self.mask = mask
        if frame.kind is Parted.UNKNOWN:
            self.maybe -= 1
            for r in frame.written:
                self.R[r] = first[r] if same(first[r], second[r]) else frame.unknown
            return here
        if frame.kind is Parted.ANSWER:
            for r in frame.written:
                self.R[r] = answer_of(frame.asked, first[r], second[r])
            flush(self.cluster, self)
            self.cluster.recorder.release(self.agent, frame.asked, frame.mark)
            return here
        self.mask = 0
        for mask, values in frame.done:
            if self.mask:
                for r in frame.written:
                    self.R[r] = joined(mask, values[r], self.R[r])
            else:
                for r in frame.written:
                    self.R[r] = values[r]
            self.mask |= mask
        return here

    def _leave_frame(self) -> None:
        self.frames.pop()
        self.joins = self.frames[-1].joins if self.frames else frozenset()

    def _exit(self) -> int:
        """The lanes that execute end. Those that parted from them go on."""
        self.mask = 0
        while self.frames:
            frame = self.frames[-1]
            if frame.kind is Parted.ANSWER:
                raise Stopped("the kernel ends, or not, by the result of a try_wait")
            if frame.kind is Parted.UNKNOWN:
                leaf = leaf_of(frame.unknown)
                raise Stopped("the kernel ends, or not, by a value that is not known", leaf)
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
        """A branch on the answer of a try: both ways are run where they differ."""
        ways = []
        for value in (p.if_false, p.if_true):
            if isinstance(value, int):
                ways.append(segment.target if bool(value) is not segment.negated else segment.next)
                continue
            ways.append(self._inside_a_spin(segment))
            if ways[-1] < 0:
                raise Stopped("a branch depends on the result of a try_wait and on the lane", leaf_of(value))
            self.cluster.assume_no_time_out(segment.position)
        if ways[0] == ways[1]:
            return ways[0]
        region = self.code.regions.of(segment.position)
        written = tuple(map(self.code.register, region.written))
        saved = {r: self.R[r] for r in written}
        flush(self.cluster, self)
        mark = self.cluster.recorder.mark(self.agent)
        joins = frozenset((region.join, *self.code.regions.ahead(ways[1])))
        frame = Parting(joins, segment.position, written, saved, [(ways[1], self.mask)])
        frame.kind, frame.asked, frame.mark = Parted.ANSWER, p.asked, mark
        self.frames.append(frame)
        self.joins = joins
        return ways[0]

    def _pass_over(self, segment: StraightRun, p: Value) -> int:
        """A branch on a value that is not known: both ways, if nothing on them makes others wait or go on."""
        here = segment.position
        leaf = leaf_of(p)
        region = self.code.regions.of(here)
        stays = self._inside_a_spin(segment)
        if stays >= 0:
            self.cluster.assume_no_time_out(here)
            return stays
        if region.noticed:
            for way, other in (segment.target, segment.next), (segment.next, segment.target):
                if self.code.regions.leads_nowhere(way):
                    self.cluster.assume_not_taken(here)
                    return other
            raise Stopped("a branch depends on a value that is not known", leaf)
        unknown = p if isinstance(p, Unknown) else Unknown(leaf or Leaf("an unknown value", 0))
        self.cluster.passed_over(here)
        if region.join < self.code.end and (region.accesses or not region.has_loop):
            return self._both_ways(segment, region, unknown)
        if region.accesses:
            raise Stopped("a branch depends on a value that is not known", leaf)
        for name in region.varying:
            register = self.code.register(name)
            self.R[register] = unknown
        if region.stores:
            self.local.forget()
        return region.join

    def _both_ways(self, segment: StraightRun, region: BranchRegion, unknown: Unknown) -> int:
        """Run both; what they store may or may not be stored, and registers that differ afterwards are not known."""
        written = tuple(map(self.code.register, region.written))
        saved = {r: self.R[r] for r in written}
        frame = Parting(frozenset((region.join,)), segment.position, written, saved, [(segment.target, self.mask)])
        frame.kind, frame.unknown = Parted.UNKNOWN, unknown
        self.frames.append(frame)
        self.joins = frame.joins
        self.maybe += 1
        return segment.next

    def _inside_a_spin(self, segment: StraightRun) -> int:
        """The way of a branch inside a loop that spins on an mbarrier, where the other way leaves the loop; else -1."""
        for loop in self.code.regions.spins.values():
            if segment.position in loop:
                target, after = segment.target in loop, segment.next in loop
                if target != after:
                    return segment.target if target else segment.next
        return -1


def known(value: Value, what: str) -> int:
    """An integer that all lanes agree on. Stopped if it is not known, or differs."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, PerLane):
        first = value.each[0]
        if isinstance(first, int) and all(same(first, v) for v in value.each):
            return int(first)
    raise Stopped(f"{what} is not known", leaf_of(value) or Leaf(f"{what} differs between lanes", 0))
