"""The amounts of work on a path: instructions by class, and how many results that take long follow each other.

Arithmetic counts by its instructions, since a warp issues one after another; loads and shuffles count by the
longest chain in which each needs the result of the one before, and only where that result is read on the path.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pipesim.ptx.emulate.code import Code, RunEnd
from pipesim.ptx.flow.opcodes import COMPARED, is_step, is_try
from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.text.declarations import Function
from pipesim.ptx.text.instruction import CodeLabel, Immediate, Instruction, Operand, Register, Vector

LANES = 32
#: Only a name for a register, a constant or an address, or folded into what uses it.
_FREE = frozenset({"mov", "cvta", "createpolicy", "prefetch", "prefetchu", "brkpt", "pmevent", "alloca", "stacksave"})
_SPECIAL = frozenset({"ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh"})
#: Instructions whose result takes as long as that of a shuffle: other lanes take part in it.
_ACROSS_LANES = frozenset({"shfl", "redux", "match"})
_ARITHMETIC = frozenset({"abs", "add", "fma", "mad", "max", "min", "mul", "neg", "sub"})
_FLOATS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64")
_TWO_WORDS = frozenset(
    {"add", "sub", "and", "or", "xor", "not", "shl", "shr", "selp", "min", "max", "setp", "neg", "abs"}
)
_LOADS, _STORES = frozenset({"ld", "ldu", "ldmatrix"}), frozenset({"st", "stmatrix"})
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_BITS = {"b128": 128} | {f"{kind}{width}": width for kind in "usbf" for width in (8, 16, 32, 64)}
_BITS |= {"f16x2": 32, "bf16": 16, "bf16x2": 32}


def class_of(each: Instruction) -> str:
    """A class of :data:`~pipesim.model.tables.WORK_CLASSES` by which one instruction of a warp counts, "" for none.

    What is an operation of the program (a barrier, a copy, a product of a warp group) has a price of its own.
    """
    opcode = each.opcode
    if opcode in _FREE or opcode in ("wgmma", "tcgen05") or is_step(each) or is_try(each):
        return ""
    if opcode == "mma" or (opcode == "wmma" and each.has("mma")):
        return "warp_products"
    if opcode == "wmma":
        return "rounds" if each.has("load") else "shared_bytes"
    if opcode in _SPECIAL:
        return "exp2"
    if opcode == "div":
        return "exp2" if each.has_any(*_FLOATS) else "alu"
    if opcode in _ACROSS_LANES:
        return "shuffles"
    if opcode in _ARITHMETIC and each.has_any(*_FLOATS):
        return "fma"
    if opcode in _LOADS | _STORES | {"atom", "red"}:
        return _access(each)
    return "alu"


def _access(each: Instruction) -> str:
    spaces = each.spaces
    if spaces & {"param", "const"}:
        return ""
    if "local" in spaces:  # of the stack: mostly in registers
        return "alu"
    shared = "shared" in spaces or each.opcode in ("ldmatrix", "stmatrix")
    if each.opcode in _STORES | {"red"}:
        return "shared_bytes" if shared else "global_bytes"
    return "rounds" if shared else "global_accesses"


def machine_instructions(each: Instruction) -> int:
    """How many machine instructions an integer instruction takes: what the hardware has none for is a sequence."""
    wide = each.has_any("s64", "u64", "b64")
    if each.opcode in ("div", "rem"):
        if isinstance(each.operands[-1], Immediate):
            return 12 if wide else 5  # a multiplication by the reciprocal, and shifts
        return 80 if wide else 20
    if each.opcode in ("popc", "clz", "brev", "bfind", "fns"):
        return 4  # a quarter of the rate of others
    if wide and each.opcode in ("mul", "mad"):
        return 4
    return 2 if wide and each.opcode in _TWO_WORDS else 1


def loads(kind: str) -> bool:
    """Whether an instruction of this class has a result for which the next one that reads it has to wait."""
    return kind in ("rounds", "global_accesses", "shuffles")


def is_proxy_fence(each: Instruction) -> bool:
    """Whether it orders accesses of the generic proxy with those of another one."""
    return each.opcode == "fence" and each.has("proxy")


def bytes_of(each: Instruction) -> int:
    """How many bytes a load or store moves for a whole warp."""
    if each.opcode in ("ldmatrix", "stmatrix"):
        times = next((int(m[1:]) for m in each.modifiers if m in ("x1", "x2", "x4")), 1)
        return 128 * times  # each a matrix of 8 rows of 16 bytes
    width = next((_BITS[m] for m in reversed(each.modifiers) if m in _BITS), 32)
    vector = next((len(o.parts) for o in each.operands if isinstance(o, Vector)), 1)
    return width * vector * LANES // 8


def products_of(each: Instruction) -> int:
    """A warp's ``mma`` in parts of 256 multiply-adds of 16 bits; narrower ones take less, wider ones more."""
    found = next((m for m in map(_SHAPE.fullmatch, each.modifiers) if m is not None), None)
    if found is None:
        return 8
    m, n, k = map(int, found.groups())
    types = [name for name in each.modifiers if name in _WIDTHS]
    width = _WIDTHS[types[1]] if len(types) > 1 else 16  # of the results, A, B, and what is added
    return max(1, m * n * k * width // (16 * 256) // (2 if each.has_any("sp", "sp::ordered_metadata") else 1))


_WIDTHS = {"f64": 64, "tf32": 32, "f32": 32, "s32": 32, "f16": 16, "bf16": 16} | dict.fromkeys(
    ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "s8", "u8"), 8
) | dict.fromkeys(("s4", "u4"), 4) | {"b1": 1}  # fmt: skip


def group_product(each: Instruction) -> tuple[str, int]:
    """A ``wgmma.mma_async``: the class of its multiply-adds, and those of one warp, were its operands of 16 bits.

    All types have 32 bytes of K, sparse ones twice that of B, and take equally long (PTX ISA, "wgmma.mma_async").
    """
    shape = next(m for m in map(_SHAPE.fullmatch, each.modifiers) if m is not None)
    kind = "mma_registers" if isinstance(each.operands[1], Vector) else "mma"
    return kind, int(shape[1]) * int(shape[2]) * 16 // 4


MOST_TRIPS = 4096  #: that are counted


class PassedLoop(NamedTuple):
    """A loop that was executed once: where its first instruction is, and how many iterations it has."""

    begin: int
    trips: int


class LoopTrips:
    """The loops of one body that end with a branch which decides nothing."""

    def __init__(self, function: Function, uses: Uses) -> None:
        self._function, self._writers = function, uses.writers

    def ending_at(self, branch: Instruction) -> PassedLoop | None:
        """The loop whose last instruction this is; None if it is not a branch back."""
        if branch.opcode != "bra" or branch.guard is None or not isinstance(branch.operands[0], CodeLabel):
            return None
        begin = self._function.labels[branch.operands[0].name]
        return PassedLoop(begin, self._trips(begin, branch)) if begin <= branch.position else None

    def _trips(self, begin: int, branch: Instruction) -> int:
        assert branch.guard is not None
        test = self._only(branch.guard.register, begin, branch.position)
        if test is None or test.opcode != "setp" or len(test.operands) != 3:
            return 1
        compared = next((COMPARED[name][0] for name in test.modifiers if name in COMPARED), None)
        counters = [each for each in test.operands[1:] if self._step(each, begin, branch.position)]
        if compared is None or len(counters) != 1:
            return 1
        first, second = (self._begins_with(each, begin, branch.position) for each in test.operands[1:])
        if first is None or second is None:
            return 1
        step, added = self._step(counters[0], begin, branch.position) or (0, 0)
        counts_first = counters[0] is test.operands[1]
        for trip in range(1, MOST_TRIPS):
            ahead = step * (trip if added < test.position else trip - 1)
            holds = compared(first + ahead, second) if counts_first else compared(first, second + ahead)
            if holds is branch.guard.negated:
                return trip
        return MOST_TRIPS

    def _only(self, name: str, begin: int, end: int) -> Instruction | None:
        """The one instruction of the loop that writes a register."""
        inside = [position for position in self._writers.get(name, ()) if begin <= position <= end]
        return self._function.body[inside[0]] if len(inside) == 1 else None

    def _step(self, operand: Operand, begin: int, end: int) -> tuple[int, int] | None:
        """By how much the loop changes a counter, and where; None for what is not a counter."""
        if not isinstance(operand, Register):
            return None
        each = self._only(operand.name, begin, end)
        if each is None or each.opcode not in ("add", "sub") or each.guard is not None or each.operands[1] != operand:
            return None
        by = each.operands[2]
        if not isinstance(by, Immediate):
            return None
        return (_to_signed(by.value) if each.opcode == "add" else -_to_signed(by.value)), each.position

    def _begins_with(self, operand: Operand, begin: int, end: int) -> int | None:
        """The constant that an operand has when the loop begins."""
        if isinstance(operand, Immediate):
            return _to_signed(operand.value)
        if not isinstance(operand, Register):
            return None
        before = [position for position in self._writers.get(operand.name, ()) if not begin <= position <= end]
        if len(before) != 1:
            return None
        each = self._function.body[before[0]]
        constant = each.operands[1] if each.opcode == "mov" and each.guard is None else None
        return _to_signed(constant.value) if isinstance(constant, Immediate) else None


def _to_signed(value: int) -> int:
    """A constant as a number of 32 or 64 bits with a sign: compilers write -1 as 4294967295 as well."""
    for width in (32, 64):
        if 1 << (width - 1) <= value < 1 << width:
            return value - (1 << width)
    return value


Amounts = dict[str, int]
Depth = tuple[int, int, int]  #: of the chains of the classes in ``_CHAINED``
READ_BYTES = "read_bytes"  #: shared memory that is loaded: of the class ``shared_bytes``, as what is stored
_NO_CHAIN: Depth = (0, 0, 0)
_MOST_PASSED = 1 << 16  #: instructions of the iterations of one loop that are executed
_CHAINED = ("rounds", "global_accesses", "shuffles")


class Paths:
    """The amounts of the paths of one kernel's body. A path is a sequence of runs, each by where it begins."""

    def __init__(self, code: Code, uses: Uses) -> None:
        self._code = code
        self._uses = uses
        self._loops = LoopTrips(code.function, uses)
        self._known: dict[tuple[int, ...], Amounts] = {}
        self._classes: dict[int, str] = {}

    def amounts(self, runs: tuple[int, ...]) -> Amounts:
        """What a warp does on a path."""
        found = self._known.get(runs)
        if found is None:
            found = self._known[runs] = self._measure(runs)
        return found

    def products(self, runs: Iterable[int]) -> Iterator[tuple[str, int]]:
        """Class and multiply-adds of each product of a warp group on a path."""
        for each in self._instructions(runs):
            if each.opcode == "wgmma" and each.has("mma_async"):
                yield group_product(each)

    def _instructions(self, runs: Iterable[int]) -> Iterator[Instruction]:
        for start in runs:
            run = self._code.segment(start)
            end = start + run.count
            yield from self._code.body[start:end]
            if run.after is RunEnd.NEXT and end > start:
                yield from self._passed_over(end, run.next)

    def _passed_over(self, end: int, after: int) -> Iterator[Instruction]:
        """What the branch before ``end``, which decides nothing for others, leaves out: the way that it skips, or
        further iterations of the loop that it ends.
        """
        yield from self._way(end, after)
        yield from self._again(end - 1)

    def _way(self, begin: int, after: int) -> Iterator[Instruction]:
        """The way from ``begin`` on that takes no branch forwards, to where the ways meet or the warp ends."""
        position = begin
        while position < after:
            each = self._code.body[position]
            yield each
            yield from self._again(position)
            if each.opcode in ("ret", "exit") and each.guard is None:
                return
            jump = each.operands[0] if each.opcode == "bra" and each.guard is None else None
            target = self._code.function.labels[jump.name] if isinstance(jump, CodeLabel) else position + 1
            if target <= position:
                return
            position = target

    def _again(self, position: int) -> Iterator[Instruction]:
        """The iterations after the first of a loop that ends there with a branch which decides nothing."""
        loop = self._loops.ending_at(self._code.body[position])
        if loop is None or position in self._code.kept:
            return
        for _ in range(min(loop.trips - 1, _MOST_PASSED // (position + 1 - loop.begin))):
            yield from self._way(loop.begin, position)
            yield self._code.body[position]

    def _measure(self, runs: Sequence[int]) -> Amounts:
        counts: Counter[str] = Counter()
        depth: dict[str, Depth] = {}
        longest, accessed = [0, 0, 0], False
        for each in self._instructions(runs):
            kind = self._class(each)
            counts["instructions"] += 1
            position = each.position
            read = self._uses.reads[position]
            if each.guard is not None:
                read = (*read, each.guard.register)
            before = [0, 0, 0]
            for name in read:
                for i, value in enumerate(depth.get(name, ())):
                    before[i] = max(before[i], value)
            longest = list(map(max, longest, before))
            if loads(kind):
                before[_CHAINED.index(kind)] += 1
            for name in self._uses.writes[position]:
                older = depth.get(name, _NO_CHAIN) if each.guard is not None else _NO_CHAIN  # it may keep its value
                depth[name] = max(before[0], older[0]), max(before[1], older[1]), max(before[2], older[2])
            counts["proxy_fences"] += accessed and is_proxy_fence(each)
            accessed |= kind in ("rounds", "shared_bytes")
            _count(counts, kind, each)
        for kind, chain in zip(_CHAINED, longest, strict=True):
            counts[kind] = chain
        return {kind: amount for kind, amount in sorted(counts.items()) if amount}

    def _class(self, each: Instruction) -> str:
        found = self._classes.get(each.position)
        if found is None:
            found = self._classes[each.position] = class_of(each)
        return found


def _count(counts: Counter[str], kind: str, each: Instruction) -> None:
    """Enter one instruction by what its class is measured in; chains are entered at the end."""
    match kind:
        case "":
            pass
        case "rounds":
            counts[READ_BYTES] += bytes_of(each)
        case "shared_bytes" | "global_bytes":
            counts[kind] += bytes_of(each)
        case "global_accesses" | "shuffles":
            counts["alu"] += 1
        case "warp_products":
            counts[kind] += products_of(each)
        case "alu":
            counts[kind] += machine_instructions(each)
        case _:
            counts[kind] += 1
