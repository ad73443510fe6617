"""The path of a warp through its code: what it synchronises on it, with the addresses and values that it has there.

Every wait is taken to end. Where a branch depends on what is not known, such as a load of global memory, the path of
those lanes goes both ways, each once. Lanes that part are followed separately.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from pipesim.coredump.sass.lanes import LaneState, Value, lift, of_lane
from pipesim.coredump.sass.memory import CALL_FAR
from pipesim.coredump.sass.operands import CodeInputs, Step, predicate
from pipesim.coredump.sass.steps import step_of
from pipesim.coredump.sass.sync import GLOBAL_MEMORY, MachineAddress, SassSync, SyncInstruction, sync_of
from pipesim.coredump.sass.word import PT, RZ, SIZE, Word, branch_target

_QUIET = frozenset({
    SassSync.LOAD, SassSync.SHARED_LOAD, SassSync.STORE, SassSync.SHARED_STORE, SassSync.LANES, SassSync.SLEEP,
})  # fmt: skip


#: Instructions under a uniform predicate: those of uniform registers, SYNCS.EXCH and S2UR.
_UNIFORM_GUARDS = frozenset({*range(0x80, 0xC0), 0x1B2, 0x1C3})
_ANY = 20  #: the bit of BRA.U.ANY in the upper word
_TURNS = frozenset({SassSync.BRANCH, SassSync.EXIT, SassSync.CALL})


class WalkEnd(Enum):
    """Why a path is over."""

    EXIT = "the lanes end"
    STEPS = "it took as many steps as it may"
    LOST = "where the code continues is not known"
    STOPPED = "it came where it was to stop"


@dataclass(frozen=True, slots=True)
class SyncEvent:
    """One instruction that a path reached: which, for how many lanes, and the values of its operands, None if unknown.

    ``sure``: no branch before it went both ways. ``address``: of its barrier, as the first lane has it; ``addresses``
    of all lanes, where they differ. ``value``: of its register.
    """

    index: int
    sync: SyncInstruction
    lanes: int
    address: int | None
    value: int | None
    addresses: tuple[int | None, ...]
    sure: bool


@dataclass(frozen=True, slots=True)
class _Decoded:
    sync: SyncInstruction | None
    step: Step | None
    guard: Callable[[LaneState], Value] | None  #: None: always


class WarpCode:
    """The code of a kernel, made ready to be followed; ``stays``: an end with a condition is also gone past; ``alone``:
    its module has no function in another place, so that far calls are of the driver's.
    """

    def __init__(
        self, words: Sequence[Word], around: CodeInputs, *, stays: bool = False, alone: bool = True
    ) -> None:  # fmt: skip
        self.words, self.around, self.stays, self.alone = words, around, stays, alone
        self._decoded: dict[int, _Decoded] = {}

    def at(self, index: int) -> _Decoded:
        """One instruction."""
        found = self._decoded.get(index)
        if found is None:
            word = self.words[index]
            number, inverted = word.guard
            uniform = word.opcode & 0x1FF in _UNIFORM_GUARDS
            guard = None if number == PT and not inverted else predicate(number | inverted << 3, uniform=uniform)
            found = _Decoded(sync_of(word, wide=self.around.wide), step_of(word, self.around), guard)
            self._decoded[index] = found
        return found


def comes_to(code: WarpCode, lanes: LaneState, index: int, most: int = 64) -> LaneState | None:
    """These lanes when they come from a wait, which does not end, to an instruction; None if they do not, or part."""
    here = lanes.with_lanes(lanes.mask, lanes.pc)
    for _ in range(most):
        if here.pc == index:
            return here
        if not goes_on(code, here):
            return None
    return here if here.pc == index else None


def goes_on(code: WarpCode, here: LaneState) -> bool:
    """One instruction of lanes that stay together, where no wait ends; False if they part, or it is not known."""
    found = code.at(here.pc) if 0 <= here.pc < len(code.words) else None
    if found is None:
        return False
    word, sync = code.words[here.pc], found.sync
    condition = True if found.guard is None else found.guard(here)
    here.pc += 1
    if sync is not None and sync.kind is SassSync.BRANCH and word.opcode in (0x947, 0x547):
        yes, unknown = here.lanes_where(taken(here, word, condition))
        here.pc = branch_target(word, (here.pc - 1) * SIZE) // SIZE if yes else here.pc
        return not unknown and yes in (0, here.mask)
    if sync is not None and sync.kind is SassSync.WAIT:
        here.put(here.predicates, word.high >> 17 & 7, False, condition)
    elif sync is not None and sync.kind is SassSync.ASK_REGISTERS:
        here.uniform_predicates[word.high >> 17 & 7] = False
    elif found.step is not None and condition is not False:
        found.step(here, condition)
    return True


def address_of(lanes: LaneState, address: MachineAddress | None, *, wide: bool = False) -> Value:
    """An address of 32 bits, or, of global memory, of 64 bits in two registers."""
    if address is None:
        return None
    own = lanes.registers[address.register] if address.register >= 0 else 0
    above = lanes.registers[address.register + 1] if wide and 0 <= address.register < RZ else 0
    shared = lanes.uniform[address.uniform] if address.uniform >= 0 else 0
    mask = (1 << 64) - 1 if wide else (1 << 32) - 1
    return lift(lambda a, b, c: (b << 32 | a) + c + address.offset & mask, own, above, shared)


def taken(lanes: LaneState, word: Word, condition: Value) -> Value:
    """The condition of a branch: its guard and another predicate. Lanes are not apart where it asks for that; by
    ``.U.ANY`` all go where one does.
    """
    if word.opcode == 0x547:
        other = predicate(word.ra & 0xF, uniform=True)(lanes)
    elif word.low >> 32 & 3 == 2:
        return False
    else:
        other = predicate(word.high >> 23 & 0xF)(lanes)
    found = lift(lambda a, b: a and b, condition, other)
    if word.opcode == 0x947 and word.high >> _ANY & 1 and type(found) is tuple:
        yes, unknown = lanes.lanes_where(found)
        return True if yes else None if unknown else False
    return found


def target_of(lanes: LaneState, word: Word, index: int) -> int | None:
    """Where a branch, a call or a return leads, None if that is not known: a return is to a register, from the start of
    the kernel.
    """
    target = branch_target(word, index * SIZE)
    if word.opcode == 0x950:
        back = lanes.registers[word.ra]
        return (target + back) // SIZE if type(back) is int else None
    return target // SIZE if word.opcode in (0x947, 0x547, 0x944) else None


class Walk:
    """A path of lanes of one warp from where they are, at one place or at several.

    ``stop``: asked at each event, with the lanes; where it says so, these lanes stay there. ``loads``: instructions
    that are events as well, although other warps do not notice them.
    """

    def __init__(
        self,
        code: WarpCode,
        starts: Sequence[LaneState],
        most: int,
        stop: Callable[[LaneState, SyncEvent], bool] = lambda _lanes, _event: False,
        loads: frozenset[int] = frozenset(),
    ) -> None:
        self._code, self._most, self._stop, self._loads = code, most, stop, loads
        self._open = [(start, True) for start in starts]
        self._parked: list[tuple[LaneState, bool]] = []
        self.forked: set[tuple[int, int]] = set()
        self._whole = sum(start.mask for start in starts)  #: the lanes that have not ended
        self.ends: list[WalkEnd] = []
        self.stopped = 0  #: the lanes that came where they were to stop
        self.there: list[LaneState] = []  #: these, as they came
        self.turned: list[int] = []  #: the branches with a condition that it executed
        self.steps = 0

    def events(self) -> Iterator[SyncEvent]:
        """What the lanes synchronise, in their order; of lanes that part, one after the other."""
        while self._open:
            lanes, sure = self._open.pop()
            end = yield from self._follow(lanes, sure=sure)
            if end is not None:
                self.ends.append(end)
                self._whole &= ~lanes.mask
                self.stopped |= lanes.mask if end is WalkEnd.STOPPED else 0
            stays = WalkEnd.STOPPED in self.ends  # lanes that wait for those that are there wait on
            if not self._open and self._parked and end is not WalkEnd.STEPS and not stays:
                self._open.append(self._met())

    def _met(self) -> tuple[LaneState, bool]:
        """Lanes that wait for each other at one place continue together."""
        at = min(lanes.pc for lanes, _ in self._parked)
        here = [each for each in self._parked if each[0].pc == at]
        self._parked = [each for each in self._parked if each[0].pc != at]
        (first, sure), *others = here
        for other, also in others:
            first.join(other)
            sure = sure and also
        first.pc += 1
        return first, sure

    def _follow(self, lanes: LaneState, *, sure: bool) -> Generator[SyncEvent, None, WalkEnd | None]:
        """Until the lanes end, or wait for others of the warp."""
        code = self._code
        count = len(code.words)
        while True:
            if self.steps >= self._most:
                self._open.clear()
                return WalkEnd.STEPS
            if not 0 <= lanes.pc < count:
                return WalkEnd.LOST
            self.steps += 1
            index = lanes.pc
            found = code.at(index)
            condition = True if found.guard is None else found.guard(lanes)
            sync = found.sync
            if sync is not None and sync.kind in _TURNS:
                ended, sure = self._turn(lanes, sync, index, condition, sure=sure)
                if ended is not None:
                    return ended
                continue
            if sync is not None and sync.kind is SassSync.LANES and lanes.mask != self._whole:
                self._parked.append((lanes, sure))
                return None
            noticed = sync is not None and (sync.kind not in _QUIET or index in self._loads)
            if sync is not None and noticed and condition is not False:
                event = self._event(lanes, sync, index, condition, sure=sure)
                if event.lanes:
                    yield event
                    if self._stop(lanes, event):
                        self.there.append(lanes)
                        return WalkEnd.STOPPED
                self._succeed(lanes, sync, code.words[index], condition)
            if found.step is not None and condition is not False:
                if code.words[index].opcode & 0x1FF == CALL_FAR and not code.alone:
                    return WalkEnd.LOST
                found.step(lanes, condition)
            lanes.pc = index + 1

    def _succeed(self, lanes: LaneState, sync: SyncInstruction, word: Word, condition: Value) -> None:
        """A wait ends, and registers that are asked for are given; what an atomic operation gives is not known."""
        if sync.kind is SassSync.WAIT:
            lanes.put(lanes.predicates, word.high >> 17 & 7, True, condition)
        elif sync.kind is SassSync.ASK_REGISTERS:
            lanes.uniform_predicates[word.high >> 17 & 7] = True
        elif sync.kind in (SassSync.ATOMIC, SassSync.SWAP, SassSync.SHARED_ATOMIC) and word.rd < 255:
            lanes.put(lanes.registers, word.rd, None, condition)

    def _event(
        self, lanes: LaneState, sync: SyncInstruction, index: int, condition: Value, *, sure: bool
    ) -> SyncEvent:  # fmt: skip
        yes, unknown = lanes.lanes_where(condition)
        mask = yes or unknown
        first = (mask & -mask).bit_length() - 1 if mask else 0
        address = address_of(lanes, sync.address, wide=sync.kind in GLOBAL_MEMORY)
        value = None
        if sync.register >= 0:
            where = lanes.uniform if sync.kind in (SassSync.INIT, SassSync.COPY) else lanes.registers
            value = of_lane(where[sync.register], first)
        addresses = tuple(address[n] for n in range(32) if mask >> n & 1) if type(address) is tuple else ()
        return SyncEvent(index, sync, mask, of_lane(address, first), value, addresses, sure and not unknown)

    def _turn(
        self, lanes: LaneState, sync: SyncInstruction, index: int, condition: Value, *, sure: bool
    ) -> tuple[WalkEnd | None, bool]:  # fmt: skip
        """A branch, call or end: lanes for which it is not taken continue, the others there; unknown ones both ways."""
        word = self._code.words[index]
        target = None if sync.kind is SassSync.EXIT else target_of(lanes, word, index)
        if sync.kind is not SassSync.EXIT and target is None:
            lanes.pc = index + 1
            return (WalkEnd.LOST, sure) if condition is not False else (None, sure)
        if sync.kind is not SassSync.CALL:
            condition = taken(lanes, word, condition)
        if self._code.stays and sync.kind is SassSync.EXIT and condition is True and word.guard != (PT, False):
            condition = None
        if word.guard != (PT, False) or word.opcode == 0x547:
            self.turned.append(index)
        yes, unknown = lanes.lanes_where(condition)
        stay = lanes.mask & ~yes & ~unknown
        if unknown:
            sure = False
            if (index, lanes.mask) in self.forked:
                stay |= unknown if target is not None and target <= index else 0  # a loop is left the second time
                yes |= 0 if target is not None and target <= index else unknown
            else:
                self.forked.add((index, lanes.mask))
                stay, yes = stay | unknown, yes | unknown
        if not yes:
            lanes.pc = index + 1
            return None, sure
        if target is None:
            self._whole &= ~yes
        if not stay:
            if target is None:
                return WalkEnd.EXIT, sure
            lanes.pc = target
            return None, sure
        if target is not None:
            self._open.append((lanes.with_lanes(yes, target), sure))
        lanes.mask, lanes.pc = stay, index + 1
        return None, sure
