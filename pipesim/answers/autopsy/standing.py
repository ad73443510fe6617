"""Where the lanes of a warp are, by the instruction at their program counter, and what they wait for there.

Measured on H100 and H200: a lane that waits for an mbarrier or at ``BAR.SYNC`` is after that instruction, one in
``UCGABAR_WAIT`` or ``WARPSYNC`` at it. A loop that only asks (``test_wait``, a load, a compare-and-swap,
``setmaxnreg.inc``) may stop anywhere in it, so the shortest way from the program counter back to it is looked at.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from pipesim.answers.views.autopsy import UNKNOWN_PLACE
from pipesim.coredump.cubin import MachineCode
from pipesim.coredump.dump import LANES, CoreDump, DumpLane, DumpWarp
from pipesim.coredump.sass.lanes import LaneState, Value, together
from pipesim.coredump.sass.memory import is_ordinary
from pipesim.coredump.sass.steps import writes
from pipesim.coredump.sass.sync import SassSync, SyncInstruction, sync_of
from pipesim.coredump.sass.walk import address_of
from pipesim.coredump.sass.word import PT, RZ, SIZE, URZ, Word, branch_target

_LONGEST_SPIN = 256  #: instructions of a loop that only asks
_DEFERRED = 12  #: instructions from a barrier that defers its wait to where the warp waits; seen: 2, and 12 by -G
_WINDOW = 24  #: bits of an address within the shared memory of a CTA; above them is the CTA's rank in its cluster


class WaitsFor(Enum):
    """What lanes wait for. The value is a phrase for a sentence."""

    MBARRIER = "an mbarrier"
    NAMED = "a named barrier"
    CLUSTER = "the cluster barrier"
    GROUPS = "its groups of asynchronous copies"
    WGMMA = "its wgmma groups"
    REGISTERS = "registers"
    LANES = "lanes of its own warp"
    GLOBAL = "a value in global memory"
    SHARED = "a value in shared memory"
    SLEEP = "nothing: it sleeps"
    PRIMARY = "the launch before (griddepcontrol.wait)"
    NOTHING = "nothing: it runs"
    UNREAD = "it waits for what its registers do not say any more"
    UNKNOWN = UNKNOWN_PLACE


@dataclass(frozen=True)
class Standing:
    """Lanes of one warp that are together. ``offset``: in ``code``, of the instruction that waits.

    ``address``: of an mbarrier within the shared memory of the CTA with this ``rank`` in the cluster; -1 if it is not
    known. ``parity``: that was asked for. ``number`` and ``count``: of a named barrier with
    its threads (0: all of the CTA), of groups that may remain, or registers asked for.
    """

    warp: DumpWarp
    lanes: tuple[DumpLane, ...]
    code: MachineCode | None
    offset: int
    pc: int
    waits: WaitsFor
    address: int = -1
    rank: int = -1
    parity: int = -1
    number: int = -1
    count: int = -1
    written: frozenset[int] = frozenset()
    otherwise: "Standing | None" = None  #: where they are if the named barrier that they came from is complete


class CodeFlow:
    """The ways through one kernel's code: what each instruction synchronises, and which ones may come after it."""

    def __init__(self, code: MachineCode, *, wide: bool) -> None:
        self.code = code
        self._wide = wide

    @cached_property
    def syncs(self) -> list[SyncInstruction | None]:
        """What each instruction does that others notice."""
        return [sync_of(word, wide=self._wide) for word in self.code.words]

    def at(self, index: int) -> SyncInstruction | None:
        """The same of one instruction, None outside the code."""
        return self.syncs[index] if 0 <= index < len(self.syncs) else None

    def after(self, index: int) -> Iterator[int]:
        """The instructions that may come next. A call is taken to return; a jump to a register leads nowhere."""
        sync, word = self.syncs[index], self.code.words[index]
        always = word.guard == (PT, False)
        jumps = sync is not None and sync.kind is SassSync.BRANCH and word.opcode in (0x947, 0x547)
        ends = sync is not None and (sync.kind is SassSync.EXIT or word.opcode in (0x949, 0x94A, 0x950))
        if jumps:
            target = branch_target(word, index * SIZE) // SIZE
            if 0 <= target < len(self.syncs):
                yield target
            always = always and word.opcode == 0x947 and word.high >> 23 & 7 == PT and not word.high >> 32 & 3
        if index + 1 < len(self.syncs) and not (always and (jumps or ends)):
            yield index + 1

    def way_back(self, start: int) -> Sequence[int]:
        """The shortest way from an instruction back to itself, with it; () if there is none of a spin's length.

        Where that asks for nothing, as what other lanes do, it is one by what asks: a compare-and-swap, or an addition
        of 0.
        """
        way = self._way(start, start)
        if way and _asks(self, way) is None:
            near = range(max(start - _LONGEST_SPIN // 4, 0), min(start + _LONGEST_SPIN // 4, len(self.syncs)))
            for n in near:
                sync = self.syncs[n]
                if sync is not None and n != start and (sync.kind is SassSync.SWAP or _adds_nothing(self, n)):
                    there, back = self._way(start, n), self._way(n, start)
                    if there and back and _asks(self, (*there, *back)) is not None:
                        return (*there, *back)
        return way

    def _way(self, start: int, goal: int) -> Sequence[int]:
        """The shortest way from one instruction to another, without that."""
        came: dict[int, int] = {}
        front = [start]
        while front and len(came) < 8 * _LONGEST_SPIN:
            reached = []
            for index in front:
                for following in self.after(index):
                    if following == goal:
                        way = [index]
                        while way[-1] != start:
                            way.append(came[way[-1]])
                        return way[::-1] if len(way) <= _LONGEST_SPIN else ()
                    if following not in came:
                        came[following] = index
                        reached.append(following)
            front = reached
        return ()

    def leads_past(self, start: int, passed: frozenset[int]) -> int:
        """A branch after ``start`` by which an end is reached without these instructions, and else one of them is met;
        -1 if there is none.
        """
        before: dict[int, list[int]] = {}
        for index in range(len(self.syncs)):
            for following in self.after(index):
                before.setdefault(following, []).append(index)
        ends = [n for n, sync in enumerate(self.syncs) if sync is not None and sync.kind is SassSync.EXIT]
        without = _reached(ends, lambda n: before.get(n, ()), passed)
        for n in sorted(_reached([start], self.after, passed) & without):
            arms = set(self.after(n))
            if (len(arms) > 1 or n in ends) and arms - without:
                return n
        return -1


def _reached(starts: Sequence[int], following: Callable[[int], Iterable[int]], barred: frozenset[int]) -> set[int]:
    """What can be reached from some instructions without others."""
    found, front = set(starts), list(starts)
    while front:
        new = {n for n in following(front.pop()) if n not in found and n not in barred}
        found |= new
        front += new
    return found


_EITHER = {
    SassSync.GROUP_WAIT: WaitsFor.GROUPS, SassSync.WGMMA_WAIT: WaitsFor.WGMMA, SassSync.PRIMARY_WAIT: WaitsFor.PRIMARY,
}  # fmt: skip
_AT = _EITHER | {SassSync.CLUSTER_WAIT: WaitsFor.CLUSTER, SassSync.LANES: WaitsFor.LANES}
_BEHIND = _EITHER | {SassSync.WAIT: WaitsFor.MBARRIER, SassSync.BAR_SYNC: WaitsFor.NAMED}
#: What a loop asks again and again, in the order of what says most.
_ASKS = {
    SassSync.WAIT: WaitsFor.MBARRIER, SassSync.ASK_REGISTERS: WaitsFor.REGISTERS, SassSync.SWAP: WaitsFor.GLOBAL,
    SassSync.ATOMIC: WaitsFor.GLOBAL,
    SassSync.LOAD: WaitsFor.GLOBAL, SassSync.SHARED_ATOMIC: WaitsFor.SHARED, SassSync.SHARED_LOAD: WaitsFor.SHARED,
    SassSync.SLEEP: WaitsFor.SLEEP,
}  # fmt: skip
_HARMLESS = frozenset({*_ASKS, SassSync.BRANCH, SassSync.LANES})
#: With what a loop may also do that asks for a lock or a turn: one lane tells the others of the CTA what it got.
HARMLESS = _HARMLESS | {SassSync.SHARED_STORE, SassSync.BAR_SYNC}


class Standings:
    """Where the lanes of a dump are. ``codes``: the machine code of the dump, by address."""

    def __init__(self, dump: CoreDump, codes: Sequence[MachineCode], *, wide: bool) -> None:
        self._dump = dump
        self._codes = sorted((each for each in codes if each.address), key=lambda each: each.address)
        self._wide = wide
        self._flows: dict[int, CodeFlow] = {}

    def flow(self, code: MachineCode) -> CodeFlow:
        """The ways through a kernel's code."""
        return self._flows.setdefault(code.address, CodeFlow(code, wide=self._wide))

    def code_at(self, pc: int) -> MachineCode | None:
        """The kernel whose code is at an address."""
        return next((each for each in self._codes if each.address <= pc < each.address + len(each.code)), None)

    def of(self, warp: DumpWarp) -> Iterator[Standing]:
        """The lanes of a warp, those with one program counter, in the same calls, together."""
        places: dict[tuple[int, tuple[int, ...]], list[DumpLane]] = {}
        for lane in warp.lanes:
            places.setdefault((lane.pc, self._dump.callers(warp, lane)), []).append(lane)
        for (pc, _), lanes in places.items():
            yield self._standing(warp, tuple(lanes), pc)

    def _standing(self, warp: DumpWarp, lanes: tuple[DumpLane, ...], pc: int) -> Standing:
        code = self.code_at(pc)
        if code is None:
            return Standing(warp, lanes, None, lanes[0].offset, pc, WaitsFor.UNKNOWN)
        flow, index = self.flow(code), (pc - code.address) // SIZE
        here = flow.at(index)
        way = flow.way_back(index)
        asks = _asks(flow, way)
        if here is not None and here.kind in _AT and (asks is None or len(lanes) < len(warp.lanes)):
            return self._waiting(warp, lanes, flow, index, index, _AT[here.kind])
        behind = _behind(flow, index)
        if behind < 0 and not flow.code.words[index].low:
            return Standing(warp, lanes, None, lanes[0].offset, pc, WaitsFor.UNKNOWN)
        asking = None
        if asks is not None:
            asking = self._waiting(warp, lanes, flow, index, *asks)
            asking = replace(asking, written=frozenset(flow.code.words[n].rd + k for n in way for k in (0, 1)))
        if behind >= 0:
            found = self._waiting(warp, lanes, flow, index, behind, _BEHIND[flow.syncs[behind].kind])  # type: ignore[union-attr]
            return replace(found, otherwise=asking) if behind < index - 1 else found
        if asking is not None:
            return asking
        return self._called(warp, lanes, code, pc) or Standing(warp, lanes, code, index * SIZE, pc, WaitsFor.NOTHING)

    def _called(self, warp: DumpWarp, lanes: tuple[DumpLane, ...], code: MachineCode, pc: int) -> Standing | None:
        """Lanes in a function, which does nothing that others notice, of a loop that only asks: without optimisation.

        The registers are those of the function, so that what the loop asks for is not known.
        """
        for call in self._dump.callers(warp, lanes[0]):
            if not {sync.kind for sync in self.flow(code).syncs if sync is not None} <= _HARMLESS | {SassSync.CALL}:
                return None
            caller = self.code_at(call)
            if caller is None:
                return None
            flow = self.flow(caller)
            asks = _asks(flow, flow.way_back((call - caller.address) // SIZE))
            if asks is not None:
                return Standing(warp, lanes, caller, asks[0] * SIZE, pc, WaitsFor.UNREAD)
            code = caller
        return None

    def _waiting(
        self, warp: DumpWarp, lanes: tuple[DumpLane, ...], flow: CodeFlow, index: int, at: int, waits: WaitsFor
    ) -> Standing:
        """What the instruction at index ``at`` waits for, with the values that its registers have."""
        sync = flow.syncs[at]
        assert sync is not None
        state = lane_state(self._dump, warp, lanes[:1], index, wide=self._wide)
        found = Standing(warp, lanes, flow.code, at * SIZE, flow.code.address + index * SIZE, waits)
        match waits:
            case WaitsFor.MBARRIER:
                address, asked = address_of(state, sync.address), state.registers[sync.register]
                if address is not None:
                    found = replace(found, address=address & (1 << _WINDOW) - 1, rank=address >> _WINDOW & 0xFF)
                return found if asked is None else replace(found, parity=asked >> 31)
            case WaitsFor.NAMED:
                words = flow.code.words[max(at - 1, 0) : index]
                registers = [each for each in (sync.register, sync.threads) if each >= 0]
                lost = any(writes(word, each) for word in words[2:] for each in registers)
                if lost and not _unpack(words, state, sync):
                    return replace(found, waits=WaitsFor.UNREAD)
                number, count = _named(state, sync)
                return replace(found, number=number, count=count)
            case _:
                return replace(found, number=sync.number)


def _asks(flow: CodeFlow, way: Sequence[int]) -> tuple[int, WaitsFor] | None:
    """The instruction by which a loop asks for something, if asking is all that it does."""
    if not all(flow.code.words[n].low for n in way):
        return None  # of a text of cuda-gdb, which has some instructions
    kinds = {sync.kind for n in way if (sync := flow.syncs[n]) is not None}
    tells = SassSync.SWAP in kinds or any(_adds_nothing(flow, n) for n in way)
    if not (kinds <= _HARMLESS or (tells and kinds <= HARMLESS)):
        return None
    asked = ((kind, n) for kind in _ASKS for n in way if (sync := flow.syncs[n]) is not None and sync.kind is kind)
    return next(((n, _ASKS[kind]) for kind, n in asked if _is_asked(flow, way, kind, n)), None)


def _is_asked(flow: CodeFlow, way: Sequence[int], kind: SassSync, at: int) -> bool:
    """Whether a loop asks there for the same again and again, and does not go through memory.

    A compiler takes an ordinary load of one address out of its loop, so that one that is left asks if it is volatile or
    relaxed; an atomic operation, or a load of shared memory, if nothing in the loop writes its address.
    """
    words = flow.code.words
    sync = flow.syncs[at]
    if kind is SassSync.LOAD or (kind is SassSync.SHARED_LOAD and sync is not None and sync.remote):
        return not is_ordinary(words[at])
    if kind not in (SassSync.ATOMIC, SassSync.SHARED_ATOMIC, SassSync.SHARED_LOAD) or _adds_nothing(flow, at):
        return True
    address = words[at].ra, words[at].ra + 1
    return words[at].rd != RZ and not any(writes(words[n], register) for n in way for register in address)


def _adds_nothing(flow: CodeFlow, at: int) -> bool:
    """Whether it is an atomic addition of 0, which only asks."""
    sync, word = flow.syncs[at], flow.code.words[at]
    return sync is not None and sync.kind is SassSync.ATOMIC and (sync.number, word.rb) == (0, RZ) and word.rd != RZ


def _behind(flow: CodeFlow, index: int) -> int:
    """The instruction after which lanes at ``index`` wait, -1 if there is none.

    ``BAR.SYNC.DEFER_BLOCKING`` lets a warp continue for a few instructions that others do not notice.
    """
    for before in range(index - 1, max(index - 1 - _DEFERRED, -1), -1):
        sync = flow.syncs[before]
        if sync is not None:
            near = before == index - 1 or sync.kind is SassSync.BAR_SYNC
            return before if near and sync.kind in _BEHIND else -1
    return -1


def lane_state(dump: CoreDump, warp: DumpWarp, lanes: Sequence[DumpLane], index: int, *, wide: bool) -> LaneState:
    """Lanes that are together, with the registers and predicates that the dump has of them."""
    state = LaneState(sum(1 << lane.lane for lane in lanes), index)
    own = {lane.lane: dump.registers(warp, lane) for lane in lanes}
    said = {lane.lane: dump.predicates(warp, lane) for lane in lanes}
    for n in range(min(*map(len, own.values()), RZ)):
        state.registers[n] = _of_lanes({lane: values[n] for lane, values in own.items()})
    for n in range(min(*map(len, said.values()), PT)):
        state.predicates[n] = _of_lanes({lane: bool(values[n]) for lane, values in said.items()})
    for n, value in enumerate(dump.uniform_registers(warp)[: RZ if wide else URZ]):
        state.uniform[n] = value
    return state


def _of_lanes(values: Mapping[int, Value]) -> Value:
    """The values of some lanes; the others have none, and take that of the first."""
    first = next(iter(values.values()))
    return together([values.get(n, first) for n in range(LANES)])


def _unpack(words: Sequence[Word], state: LaneState, sync: SyncInstruction) -> bool:
    """Whether the register of a named barrier is made again from those that it was made of: as ``-G`` makes it.

    ``R |= 15 & N``, the barrier, and ``R >>= 16``, with R the threads.
    """
    made, shifted, packed = words[0], words[2], sync.register
    threads, number = state.registers[packed], state.registers[made.high & 0xFF]
    as_made = (made.opcode, made.rd, made.low >> 32, sync.threads) == (0x812, packed, 15, packed)
    right, by = shifted.high >> 12 & 1, shifted.low >> 32
    as_shifted = (shifted.opcode, shifted.rd, shifted.ra, right, by) == (0x819, packed, packed, 1, 16)
    if any(writes(word, each) for word in words[3:] for each in (packed, made.high & 0xFF)):
        return False
    if not (as_made and as_shifted and isinstance(threads, int) and isinstance(number, int)):
        return False
    state.registers[packed] = threads << 16 | number & 15
    return True


def _named(lanes: LaneState, sync: SyncInstruction) -> tuple[int, int]:
    """The number of a named barrier, and its threads: both may be in one register, the threads from bit 16 on."""
    number, count = sync.number, sync.count
    if sync.register >= 0:
        value = lanes.registers[sync.register]
        number = value & 0xF if value is not None else -1
    if sync.threads >= 0:
        value = lanes.registers[sync.threads]
        count = -1 if value is None else value >> 16 & 0xFFF if sync.threads == sync.register else value & 0xFFF
    return number, count
