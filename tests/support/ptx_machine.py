"""A machine for small kernels in PTX: every thread by itself, one instruction after the other, in a seeded order.

It knows what the tests need: the integers of ``naive_ptx``, shared and global memory, mbarriers, named barriers, bulk
copies (which land after a while), sleeping. ``%clock`` is the number of instructions that were executed.
"""

from dataclasses import dataclass, field
from random import Random

from pipesim.ptx.text.declarations import Function, Module
from pipesim.ptx.text.instruction import (
    Address,
    CodeLabel,
    Immediate,
    Instruction,
    NegatedPredicate,
    Operand,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)
from tests.support.naive_ptx import computed

GLOBAL = 1 << 33  #: where global memory begins
_ONES = (1 << 64) - 1
_STUCK = 20_000
_LANDS = 40  #: instructions after which a copy has landed
_FREQUENT = frozenset({"mov", "setp", "add", "and", "selp", "cvt", "sub", "mad", "shl", "shr", "not"})
_SIZES = {"u8": 1, "b8": 1, "u16": 2, "b16": 2, "u32": 4, "b32": 4, "s32": 4, "u64": 8, "b64": 8, "s64": 8, "pred": 1}


@dataclass
class Barrier:
    """An mbarrier: expected and pending arrivals, bytes, and completed phases."""

    expected: int
    pending: int
    tx: int = 0
    done: int = 0

    def settle(self) -> None:
        """Complete the phase if nothing is pending."""
        if self.pending == 0 and self.tx == 0:
            self.pending, self.done = self.expected, self.done + 1


@dataclass
class Thread:
    """A thread: its registers by name, and where it stands."""

    tid: int
    registers: dict[str, int] = field(default_factory=dict)
    pc: int = 0
    waits_at: int = -1  #: the named barrier that it has arrived at
    generation: int = 0
    ended: bool = False
    until: int = 0  #: the time until which it sleeps
    read_early: bool = False  #: what comes after the barrier that it is at has been executed


@dataclass
class Machine:
    """One CTA of a kernel; ``cta``: its number, x."""

    module: Module
    function: Function
    threads: int
    memory: bytearray
    symbols: dict[str, int]
    seed: int = 0
    cta: int = 0
    shared: bytearray = field(default_factory=lambda: bytearray(1 << 16))
    barriers: dict[int, Barrier] = field(default_factory=dict)
    steps: int = 0
    flights: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    named: dict[int, list[int]] = field(default_factory=dict)  #: arrived threads, generation
    taken: int = 0  #: compare-and-swaps that find that another CTA has written what they would write
    all_threads: list[Thread] = field(default_factory=list)
    skipped_ns: int = 0  #: of the time, beside that of the instructions

    @property
    def time(self) -> int:
        """Nanoseconds."""
        return 32 * (self.steps // 64) + self.skipped_ns

    def run(self) -> bool:
        """Run, or continue, until every thread has ended; False if nothing has changed for _STUCK instructions."""
        random = Random(self.seed)
        state, since = self._progress(), self.steps
        while self.turn(random):
            if self._progress() != state:
                state, since = self._progress(), self.steps
            elif self.steps - since > _STUCK:
                return False
        return True

    def turn(self, random: Random) -> bool:
        """Let every warp run for a while; False if all threads have ended before."""
        self.all_threads = threads = self.all_threads or [Thread(tid) for tid in range(self.threads)]
        warps = list(range(-(-self.threads // 32)))
        random.shuffle(warps)
        before = not all(thread.ended for thread in threads)
        for warp in warps:
            for _ in range(random.randrange(1, 8)):
                for thread in threads[32 * warp : 32 * warp + 32]:
                    if not thread.ended:
                        self._step(thread)
        return before

    def _progress(self) -> tuple[int, ...]:
        pending = sum(barrier.pending for barrier in self.barriers.values())
        ended = sum(thread.ended for thread in self.all_threads)
        arrived = sum(state[0] for state in self.named.values())
        return sum(barrier.done for barrier in self.barriers.values()), pending, ended, arrived, len(self.flights)

    # values

    def _value(self, thread: Thread, operand: Operand) -> int:
        if isinstance(operand, Register):  # most are
            return thread.registers.get(operand.name, 0)
        match operand:
            case NegatedPredicate(Register(name)):
                return 1 - thread.registers.get(name, 0)
            case Immediate(value):
                return value & _ONES
            case Symbol(name):
                return self._place(name)
            case Special(name):
                return self._special(thread, name)
            case Address(base, offset):
                return self._value(thread, base) + offset & _ONES
        raise AssertionError(operand)

    def _place(self, name: str) -> int:
        if name in self.symbols:
            return self.symbols[name]
        return next(each.offset for each in self.function.shared if each.name == name)

    def _special(self, thread: Thread, name: str) -> int:
        values = {
            "%tid.x": thread.tid,
            "%ntid.x": self.threads,
            "%laneid": thread.tid % 32,
            "%ntid.y": 1,
            "%ctaid.x": self.cta,
        }
        values |= {"%clock": self.steps & 0xFFFFFFFF, "%clock64": self.steps, "%globaltimer": self.time}
        values["%globaltimer_lo"] = self.time & 0xFFFFFFFF
        return values.get(name, 0)

    def _bytes(self, address: int, space: str) -> tuple[bytearray, int]:
        return (self.shared, address) if space == "shared" else (self.memory, address - GLOBAL)

    def _load(self, address: int, space: str, size: int) -> int:
        memory, at = self._bytes(address, space)
        assert 0 <= at <= len(memory) - size, (hex(address), space)
        return int.from_bytes(memory[at : at + size], "little")

    def _store(self, address: int, space: str, size: int, value: int) -> None:
        memory, at = self._bytes(address, space)
        assert 0 <= at <= len(memory) - size, (hex(address), space)
        assert at % size == 0
        memory[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")

    def _set(self, thread: Thread, operand: Operand, value: int, width: int = 64) -> None:
        if isinstance(operand, Register):
            kind = self.function.registers.get(operand.name, "b64")
            width = min(width, 8 * _SIZES.get(kind, 8)) if kind != "pred" else 1
            thread.registers[operand.name] = value & (1 << width) - 1
        elif not isinstance(operand, Sink):
            raise AssertionError(operand)

    # instructions

    def _step(self, thread: Thread) -> None:
        self.steps += 1
        while self.flights and self.flights[0][0] <= self.steps:
            _, address, nbytes, to, first = self.flights.pop(0)
            if 0 <= first <= len(self.memory) - nbytes:
                self.shared[to : to + nbytes] = self.memory[first : first + nbytes]
            self.barriers[address].tx -= nbytes
            self.barriers[address].settle()
        if thread.until and thread.until > self.time:
            return
        if thread.pc >= len(self.function.body):
            thread.ended = True
            return
        each = self.function.body[thread.pc]
        if each.guard is not None:
            holds = bool(thread.registers.get(each.guard.register, 0)) is not each.guard.negated
            if not holds:
                thread.pc += 1
                return
        before = thread.pc
        thread.pc += 1
        if not self._execute(thread, each):
            thread.pc = before

    def _execute(self, thread: Thread, each: Instruction) -> bool:
        """Carry an instruction out; False if the thread stays at it."""
        if each.opcode in _FREQUENT:
            self._compute(thread, each)
            return True
        match each.opcode:
            case "bra":
                (target,) = (part for part in each.operands if isinstance(part, CodeLabel))
                thread.pc = self.function.labels[target.name]
            case "ret" | "exit":
                thread.ended = True
            case "redux":  # of the one that is there
                self._set(thread, each.operands[0], self._value(thread, each.operands[1]))
            case "activemask":  # every thread runs by itself
                self._set(thread, each.operands[0], 1 << thread.tid % 32)
            case "bar" | "barrier":
                return self._bar(thread, each)
            case "mbarrier":
                self._mbarrier(thread, each)
            case "cp":
                if each.has("bulk") and each.has("mbarrier::complete_tx::bytes"):
                    to, first, size, barrier = (self._value(thread, part) for part in each.operands[:4])
                    self.flights.append((self.steps + _LANDS, barrier, size & 0xFFFFFFFF, to, first - GLOBAL))
            case "ld" | "st":
                self._access(thread, each)
            case "fence" | "membar" | "griddepcontrol":
                pass
            case "nanosleep":
                thread.until = self.time + self._value(thread, each.operands[0])
            case "atom" | "red":
                self._atom(thread, each)
            case _:
                self._compute(thread, each)
        return True

    def _bar(self, thread: Thread, each: Instruction) -> bool:
        """As a GPU: it blocks after a special register that is read next, and opens where threads end."""
        number = self._value(thread, each.operands[0])
        given = self._value(thread, each.operands[1]) if len(each.operands) > 1 else 0
        if each.has("warp"):  # the operand is the mask of the lanes
            number &= 0xFFFFFFFF
            number, given = number | 1 + thread.tid // 32 << 32, number.bit_count()
        state = self.named.setdefault(number, [0, 0])
        if thread.waits_at == number:
            if state[1] == thread.generation:
                if given or state[0] < self._going():
                    return False
                state[0], state[1] = 0, state[1] + 1
            thread.waits_at, thread.pc, thread.read_early = -1, thread.pc + thread.read_early, False
            return True
        state[0] += 1
        generation = state[1]
        if state[0] == (given or self._going()):
            state[0], state[1] = 0, state[1] + 1
        if each.has("arrive"):
            return True
        following = self.function.body[thread.pc]
        if following.opcode == "mov" and isinstance(following.operands[1], Special) and not each.has("warp"):
            self._compute(thread, following)
            thread.read_early = True
        thread.waits_at, thread.generation = number, generation
        return False

    def _going(self) -> int:
        return len(self.all_threads) - sum(thread.ended for thread in self.all_threads)

    def _mbarrier(self, thread: Thread, each: Instruction) -> None:
        operands = each.operands
        if each.has_any("try_wait", "test_wait"):
            barrier = self.barriers[self._value(thread, operands[1])]
            parity = self._value(thread, operands[2]) & 1
            self._set(thread, operands[0], int(barrier.done % 2 != parity), 1)
        elif each.has("init"):
            count = self._value(thread, operands[1]) & 0xFFFFFFFF
            self.barriers[self._value(thread, operands[0])] = Barrier(count, count)
        elif each.has("arrive"):
            barrier = self.barriers[self._value(thread, operands[1])]
            if each.has("expect_tx"):
                barrier.tx += self._value(thread, operands[2])
            barrier.pending -= 1
            assert barrier.pending >= 0
            barrier.settle()
        else:
            raise AssertionError(each.mnemonic)

    def _access(self, thread: Thread, each: Instruction) -> None:
        space = "shared" if each.has_any("shared", "shared::cta") else "global"
        size = _SIZES[each.modifiers[-1]]
        load = each.opcode == "ld"
        value, place = each.operands if load else each.operands[::-1]
        parts = value.parts if isinstance(value, Vector) else (value,)
        first = self._value(thread, place)
        assert first % (size * len(parts)) == 0, f"{each.mnemonic} at {first:#x}"
        for number, part in enumerate(parts):
            if load:
                self._set(thread, part, self._load(first + number * size, space, size), 8 * size)
            else:
                self._store(first + number * size, space, size, self._value(thread, part))

    def _atom(self, thread: Thread, each: Instruction) -> None:
        given = each.operands[each.opcode == "atom" :]
        place, first, *second = (self._value(thread, part) for part in given)
        size = _SIZES[each.modifiers[-1]]
        value = self._load(place, "global", size)
        if each.has("exch"):
            self._store(place, "global", size, first)
        elif each.has("add"):
            self._store(place, "global", size, value + first)
        elif value == first:
            assert each.has("cas")
            if self.taken:
                self.taken, value = self.taken - 1, second[0]
            else:
                self._store(place, "global", size, second[0])
        if each.opcode == "atom":
            self._set(thread, each.operands[0], value, 8 * size)

    def _compute(self, thread: Thread, each: Instruction) -> None:
        to, *sources = each.operands
        if isinstance(sources[0], Vector):
            low, high = (self._value(thread, part) & 0xFFFFFFFF for part in sources[0].parts)
            self._set(thread, to, high << 32 | low)
            return
        if isinstance(to, Vector):
            value = self._value(thread, sources[0])
            for number, part in enumerate(to.parts):
                self._set(thread, part, value >> 32 * number, 32)
            return
        narrow = (1 << 8 * _SIZES.get(each.modifiers[-1], 8)) - 1
        values = [self._value(thread, part) for part in sources]
        values[0] &= narrow
        if values[1:]:
            values[1] &= narrow
        self._set(thread, to, computed([each.opcode, *each.modifiers], values))


def run_grid(machines: list[Machine], seed: int = 0, most: int = 4_000) -> bool:
    """Run CTAs that share their memory and the time, in a seeded order; False if not all end within so many turns."""
    random, now = Random(seed), 0
    for _ in range(most):
        order = list(machines)
        random.shuffle(order)
        going = False
        for machine in order[: random.randrange(1, len(order) + 1)]:
            machine.steps = now
            machine.turn(random)
            now = machine.steps
        going = any(not thread.ended for machine in machines for thread in machine.all_threads or [Thread(0)])
        if not going:
            return True
    return False
