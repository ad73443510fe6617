"""One warp: what its lanes execute, instruction by instruction, until it is blocked, stopped or ended."""

from collections.abc import Callable

from pipesim.model.ops import Op
from pipesim.ptx.emit.record import Place
from pipesim.ptx.emulate.accesses import flush, record
from pipesim.ptx.emulate.code import DecodedStep, RunEnd, StraightRun
from pipesim.ptx.emulate.global_memory.waits_for_words import LoopOfWait
from pipesim.ptx.emulate.memory import from_generic, place_of
from pipesim.ptx.emulate.stop import MALFORMED, EmulationStop, IllegalOperand, Status, WarpStop, malformed_operands
from pipesim.ptx.emulate.values import (
    WARP,
    Leaf,
    PerLane,
    Value,
    each_lane,
    join_lanes,
    lanes_in,
    lanes_that_hold,
    leaf_of,
    of_lane,
)
from pipesim.ptx.emulate.ways import DividedWarp, PartingKind
from pipesim.ptx.flow.divergence import counts_each_thread
from pipesim.ptx.flow.opcodes import ACCESSES, EXCHANGES, may_touch_shared
from pipesim.ptx.text.instruction import Address

MOST_RUNS = 1 << 16  #: of one path that are remembered; what a warp computes after them is not estimated
_NOT_ITS_OWN = "its mask does not name the lane itself, or names one with another mask"
_MOST_RUNS_OF_A_SPIN = 400  #: on all ways of a loop around a try, to see whether it is a wait
_MOST_TRIES_OF_A_SPIN = 6  #: of which each answer is followed; of more an answer is a value that is not known
_ARRIVES = "arrive", "arrive_drop"
#: What is carried out under a guard that is not known: of accesses all that they may do, of fences nothing.
_PERHAPS = ACCESSES | {"fence", "membar", "multimem", "tensormap"}


class EmulatedWarp(DividedWarp):
    """A warp that executes the instructions of its code."""

    __slots__ = ()

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
            if frame.kind is PartingKind.LANES:
                found = 0
                for pc, mask in frame.pending:
                    found |= mask if self.code.regions.synchronises_before(pc, frame.branch) else 0
                if found:
                    return found
        return 0

    def run(self, most: int) -> int:
        """Run until it is blocked, stopped or ended, or ``most`` instructions are done; how many were.

        PtxError for an instruction with operands that it cannot have.
        """
        before = self.count
        ran = self.cluster.recorder.streams[self.agent].ran
        del ran[MOST_RUNS:]
        try:
            self._run(before + most)
        except EmulationStop as stopped:
            if isinstance(stopped, IllegalOperand) and not self.maybe and not self.has_two_ways:
                record(self.cluster, self, self.pc, Op.WORK, 0)  # the place that the finding is about
                self.cluster.notes.illegal.setdefault(self.pc, (self.agent, stopped.what, stopped.correction))
            self.end_at(stopped.what, stopped.leaf)
        except MALFORMED as error:
            raise malformed_operands(self.code.body[min(self.pc, self.code.end - 1)]) from error
        return self.count - before

    @property
    def has_two_ways(self) -> bool:
        """Whether it runs what happens by one result of a try_wait, and not by the other."""
        return any(frame.kind is PartingKind.ANSWER for frame in self.frames)

    def was_answered_no(self, question: tuple[int, ...]) -> bool:
        """Whether this is where a try that asked the same has said no."""
        return any(
            frame.kind is PartingKind.ANSWER
            and frame.pending
            and [self.tries.get(asked) for asked in frame.asked] == [question]
            for frame in self.frames
        )

    @property
    def places(self) -> tuple[int, ...]:
        """Where its lanes are: those that execute, and those that parted from them and run later.

        Also the branch of which one way is left out, as the result of a try_wait decides there.
        """
        branches = (frame.branch for frame in self.frames if frame.kind is PartingKind.ANSWER and not frame.pending)
        return (self.pc, *branches, *(pc for frame in self.frames for pc, _ in frame.pending))

    def ready_now(self) -> bool:
        """Whether a blocked warp can continue."""
        return self.ready is not None and self.ready()

    def end_at(self, what: str, leaf: Leaf | None) -> None:
        """Follow this warp no further."""
        if not self.cluster.recorder.streams[self.agent].held:
            flush(self.cluster, self)
        line = self.code.body[self.pc].line if self.pc < self.code.end else 0
        self.stop = WarpStop(self.pc, line, what, leaf)
        self.status = Status.STOPPED

    def _run(self, limit: int) -> None:
        code, registers, constants = self.code, self.R, self.K
        segments = code.segments
        ran = self.cluster.recorder.streams[self.agent].ran
        if self.status is Status.BLOCKED:
            self.status, self.ready = Status.READY, None  # the cluster has asked
            self.pc += 1
        pc, pauses = self.pc, self.cluster.pauses
        while self.count < limit:
            if pc in self.joins:
                self.pc = pc
                pc = self._meet(pc)
                continue
            segment: StraightRun = segments.get(pc) or code.segment(pc)
            ran.append(pc)
            self.pc = segment.position
            if segment.meets:
                self._meet_all(segment)
            if segment.run is not None:
                segment.run(registers, constants, self)
            self.count += segment.count
            after = segment.after
            if after is RunEnd.BRANCH:
                p = registers[segment.guard] if segment.guard >= 0 else not segment.negated
                if p.__class__ is int or p.__class__ is bool:
                    pc = segment.target if bool(p) is not segment.negated else segment.next
                else:
                    pc = self._part(segment, p)
            elif after is RunEnd.NEXT:
                pc = segment.next
            elif after is RunEnd.EXIT:
                pc = self._exit()
                if pc < 0:
                    return
            else:
                pc = self._effect(segment)
                if pc < 0:
                    return
            if pauses and after is RunEnd.BRANCH and pc <= segment.position:
                break
        self.pc = pc

    # instructions that do more than compute

    def _effect(self, segment: StraightRun) -> int:
        """Carry it out in the lanes whose guard holds; the next position, -1 if the warp is blocked."""
        step = segment.step
        assert step is not None
        self.cluster.inputs.position = segment.position
        if step.converges and not self._among_themselves(step):
            if self.frames and self.frames[-1].kind is PartingKind.LANES:
                return self._converge(segment.position)
            if self.is_part and not self.leads and not step.by_threads:
                return segment.next
        if step.guard < 0:
            self.whole = self.mask
            if step.together and self.mask != self.all_lanes and not self.is_part and not step.by_threads:
                self.cluster.notes.partial.setdefault(segment.position, self.number)
            self._signal(step, segment.position, self.mask)
            jump = step.effect(self.cluster, self, step)
        else:
            try:
                mask = self._guarded_lanes(step)
            except EmulationStop as stopped:
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
                self.cluster.notes.partial.setdefault(segment.position, self.number)
            self._signal(step, segment.position, mask)
            try:
                jump = step.effect(self.cluster, self, step)
            finally:
                self.mask = all_lanes
        if self.status is Status.BLOCKED:
            return -1
        return segment.next if jump is None else int(jump)

    def _meet_all(self, segment: StraightRun) -> None:
        """All lanes execute an instruction together, which lanes that parted from these and have not ended do not."""
        if all(frame.kind is not PartingKind.LANES for frame in self.frames):
            self.execute_together(orders=segment.orders)
        if segment.exchange >= 0 and not self.is_part and self.mask | self.ended_lanes != self.all_lanes:
            self._miss(segment.exchange, self.all_lanes & ~(self.mask | self.ended_lanes))

    def _miss(self, position: int, lanes: int) -> None:
        """An instruction needs these lanes of the warp, which took another branch.

        Where that leads them past all such instructions to a barrier of the CTA, the lanes wait for each other.
        """
        if self.code.body[position].opcode not in EXCHANGES:
            what = "all lanes of a warp have to execute it, and some took another branch"
            self.cluster.notes.undefined[position] = what
            return
        what, regions = "its mask names lanes that took another branch", self.code.regions
        ways = [
            pc
            for frame in self.frames
            for pc, mask in (*frame.pending, *((frame.branch + 1, mask) for mask, _ in frame.done))
            if mask & lanes
        ]
        if self.maybe or self.has_two_ways or not ways or not all(map(regions.comes_to_a_barrier, ways)):
            self.cluster.notes.undefined[position] = what
        elif position not in self.cluster.notes.illegal:
            record(self.cluster, self, position, Op.WORK, 0)  # the place that the finding is about
            correction = f"name the lanes that execute it ({self.mask:#x}), or let all lanes execute it"
            self.cluster.notes.illegal[position] = self.agent, what, correction

    def takes_part(self, position: int, masks: Value, guard: Value) -> None:
        """Lanes reach an instruction in which they wait for those that their mask names, if its guard holds."""
        lanes = lanes_that_hold(guard, self.mask) if isinstance(guard, PerLane) else guard
        each = [of_lane(masks, n) for n in lanes_in(self.mask)]
        if not isinstance(lanes, int) or not all(isinstance(mask, int) for mask in each):
            self.cluster.notes.unknown_meetings.add(position)
            return
        lanes = self.mask & lanes if isinstance(guard, PerLane) else self.mask * bool(lanes)
        right = self.name_themselves(position, masks, lanes)
        elsewhere = 0 if self.is_part else self.live & ~lanes
        missing = [int(of_lane(masks, n)) & elsewhere for n in lanes_in(lanes)] if right else []
        if any(missing):
            self._miss(position, missing[0] if missing[0] & ~self.mask == missing[0] else 0)

    def name_themselves(self, position: int, masks: Value, lanes: int) -> bool:
        """Whether these lanes are all among those that their masks name, which have the same mask."""
        named = {n: mask for n in lanes_in(lanes) if isinstance(mask := of_lane(masks, n), int)}
        if any(not mask >> n & 1 or any(named[m] != mask for m in lanes_in(mask & lanes)) for n, mask in named.items()):
            self.cluster.notes.undefined[position] = _NOT_ITS_OWN
            return False
        return True

    def _signal(self, step: DecodedStep, here: int, mask: int) -> None:
        """What others learn of an instruction: other lanes may not have done yet what these signal, unless they met."""
        if step.logged:
            self.cluster.recorder.execute(self.agent, here, mask)
        if step.hands_on and not step.instruction.has_any(*_ARRIVES):
            self.apart.hand_on([mask], here)
        if step.act is not None:
            told = self._signalled_phase(step) if mask != self.live else None
            self.apart.act(step.act, mask, here, hands_on=step.hands_on, alone=mask != self.live, told=told)

    def _signalled_phase(self, step: DecodedStep) -> tuple[Place, int] | None:
        """The one mbarrier on which lanes arrive, or of which a copy completes bytes, and its phase."""
        each = step.instruction
        copies = each.has("mbarrier::complete_tx::bytes") and not each.has("multicast::cluster")
        if not copies and not (each.opcode == "mbarrier" and each.has_any("arrive", "expect_tx")):
            return None
        named = [n for n, one in enumerate(each.operands) if isinstance(one, Address)]
        address = step.get(named[-1], self) if named else None
        place = place_of(from_generic(address)) if address.__class__ is int else None
        return None if place is None else (place, self.cluster.barrier(place).done)

    def _among_themselves(self, step: DecodedStep) -> bool:
        """Whether it is a ``bar.warp.sync`` of lanes that name none of those that parted from them."""
        masks = step.get(0, self) if step.instruction.has("warp") else None
        each = [of_lane(masks, lane) for lane in lanes_in(self.mask)] if masks is not None else [None]
        return all(isinstance(mask, int) and not mask & self.live & ~self.mask for mask in each)

    def _converge(self, here: int) -> int:
        """An instruction that the lanes of a warp execute together: those that parted meet here, wherever that is."""
        frame = self.frames[-1]
        if frame.done and here not in frame.joins:
            both = [self.code.body[at] for at in (here, *frame.joins)]
            if all(map(counts_each_thread, both)):
                self.to_part = self.mask
                raise EmulationStop("lanes that parted wait at different barriers, and are not followed apart")
            parted = all(each.has("aligned") or each.opcode == "bar" for each in both)
            if parted and not all(each.has("warp") for each in both):
                self.cluster.notes.partial.setdefault(here, self.number)  # bar is barrier.aligned (PTX ISA, "bar")
            raise EmulationStop("lanes that parted reach different instructions which a warp executes together")
        return self._meet(here)

    def _guarded_lanes(self, step: DecodedStep) -> int:
        """The lanes that execute and whose predicate holds. EmulationStop if that is not known."""
        p, negated = self.R[step.guard], step.negated
        if self.cluster.data is not None:
            p = self.cluster.data.decided(p, self.mask, step.instruction.position, self.cta, ask=step.needed)
        if isinstance(p, int):
            return self.mask if bool(p) is not negated else 0
        if isinstance(p, PerLane):
            found = lanes_that_hold(p, self.mask)
            if isinstance(found, int):
                return self.mask & ~found if negated else found
            p = found
        raise EmulationStop("whether it runs depends on a value that is not known", leaf_of(p))

    def _perhaps(self, step: DecodedStep, leaf: Leaf | None) -> None:
        """An access or fence under a guard that is not known: it may have happened, and what it loads is not known."""
        p = self.R[step.guard]
        each = each_lane(p)
        self.whole, mask = self.mask, self.mask
        for lane in lanes_in(mask):
            value = each[lane]
            if isinstance(value, int) and bool(value) is step.negated:
                self.mask &= ~(1 << lane)
        self.maybe += 1
        self.guarded = leaf
        if leaf is not None and may_touch_shared(step.instruction):
            self.cluster.notes.perhaps.setdefault(step.instruction.position, leaf.what)
        try:
            step.effect(self.cluster, self, step)
        except IllegalOperand as stopped:
            raise EmulationStop(stopped.what) from stopped  # it may not happen
        finally:
            self.mask, self.guarded = mask, None
            self.maybe -= 1
        for register in step.results:
            self.R[register] = self.code.unknown_value(leaf)

    def ends_on_no(self, step: DecodedStep) -> bool:
        """Whether the loop around a try is left by the answer "not yet" alone: it waits for the other parity."""
        found = self.code.ends_on_no.get(step.instruction.position)
        if found is None:
            found = self.asks_again(step, 1, may_end=False) and not self.asks_again(step, 0, may_end=False)
            self.code.ends_on_no[step.instruction.position] = found
        return found

    def asks_again(self, step: DecodedStep, answer: int, *, may_end: bool) -> bool:
        """Whether a try is asked again after this answer, whatever others answer; ``may_end``: or the loop ends.

        What the loop computes is run on a copy of the registers, both ways of a branch on a value that is not known,
        and for both answers of the other tries: a kernel may collect them as bits of a word.
        """
        code, here = self.code, step.instruction.position
        loop = code.regions.loops.spins[here]
        tries = loop & code.regions.loops.spins.keys()
        few = len(tries) <= _MOST_TRIES_OF_A_SPIN
        open_ = self._ways_of_a_spin(step, answer, tries if few else frozenset())
        for _ in range(_MOST_RUNS_OF_A_SPIN):
            if not open_:
                return True
            pc, registers = open_.pop()
            segment = code.segments.get(pc) or code.segment(pc)
            if pc not in loop or segment.position not in loop or segment.after is RunEnd.EXIT:
                if may_end:
                    continue
                return False
            if segment.run is not None:
                segment.run(registers, self.K, self)
            effect = segment.step
            guard, negated = (segment.guard, segment.negated) if effect is None else (effect.guard, effect.negated)
            p: Value = not negated if guard < 0 else registers[guard]
            runs = bool(p) is not negated if isinstance(p, int) else None
            if segment.position == here and runs is not False and effect is not None:
                if runs is None:
                    return False
                continue
            if effect is not None and runs is not False:
                both = runs and few and segment.position in tries
                for register in effect.results:
                    registers[register] = 1 if both else code.unknown_value(None)
                    if both:
                        open_.append((segment.next, _with(registers, register, 0)))
            if segment.after is RunEnd.BRANCH and runs is not False:
                open_.append((segment.target, list(registers)))
            if segment.after is not RunEnd.BRANCH or not runs:
                open_.append((segment.next, registers))
        return False

    def loop_of_wait(self, step: DecodedStep) -> LoopOfWait:
        """The loop around a load or an atomic, from here on."""
        return LoopOfWait(self.code, step, list(self.R), self.mask, self)

    def _ways_of_a_spin(self, step: DecodedStep, answer: int, tries: frozenset[int]) -> list[tuple[int, list[Value]]]:
        """Where a loop continues after this result of a try, and its registers, for all answers of the other tries."""
        code, here = self.code, step.instruction.position
        writes, first = code.regions.uses.writes, list(self.R)
        for name in {name for position in code.regions.loops.spins[here] for name in writes[position]}:
            first[code.register(name)] = code.unknown_value(None)  # whatever an earlier iteration left
        for register in step.results:
            first[register] = answer
        found = [(here + 1, first)]
        answers = {code.register(name) for position in tries for name in writes[position]}
        for register in sorted(answers.difference(step.results)):
            found = [(at, _with(held, register, value)) for at, held in found for value in (0, 1)]
        return found

    def block(self, ready: Callable[[], bool]) -> None:
        """Stand here until ``ready``; the position after this one follows."""
        self.status, self.ready = Status.BLOCKED, ready

    def begin_later(self, ready: Callable[[], bool]) -> None:
        """Begin when it is ready."""
        self.pc = -1
        self.block(ready)

    def write_results(self, step: DecodedStep, value: Value) -> None:
        """The same for every result of an instruction."""
        for register in step.results:
            self.write(register, value)

    def write(self, register: int, value: Value) -> None:
        """A result in the lanes that execute."""
        self.R[register] = value if self.mask == self.whole else join_lanes(self.mask, value, self.R[register])


def _with(registers: list[Value], register: int, value: int) -> list[Value]:
    """A copy of the registers, in which one has another value."""
    return [*registers[:register], value, *registers[register + 1 :]]
