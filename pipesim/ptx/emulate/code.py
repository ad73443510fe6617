"""A kernel's body, ready to run: registers and constants by number, straight runs compiled, the rest in steps.

What an instruction computes is the text of a Python expression; nothing of the file is in it. Expressions see ``R``,
the registers of a warp; ``K``, its constants (special registers, addresses, parameters); and ``W``, the warp, for
what depends on the lanes that execute (PTX ISA, "Instruction Set").
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, cast

from pipesim.model.tables import ALL_LANES
from pipesim.ptx.emulate.arithmetic import integers
from pipesim.ptx.emulate.expressions.arithmetic import ARITHMETIC, CHOICES, float_arithmetic
from pipesim.ptx.emulate.expressions.moves import (
    FLOATS,
    LANES,
    MOVES,
    Assignment,
    NameTable,
    NotAnExpression,
    operand_text,
)
from pipesim.ptx.emulate.lanes.apart import LaneAct, lane_act
from pipesim.ptx.emulate.memory import at_rank, from_generic, rank_of, to_generic
from pipesim.ptx.emulate.regions import Regions
from pipesim.ptx.emulate.stop import MALFORMED, malformed_operands
from pipesim.ptx.emulate.values import Leaf, Unknown, Value, at_most, select
from pipesim.ptx.flow.addresses import MisalignedCopies, ParameterPlaces, only_loaded
from pipesim.ptx.flow.divergence import converges, masks_of_all_lanes, needs_others, orders_lanes
from pipesim.ptx.flow.opcodes import EXCHANGES, VALUES, hands_on, is_step, is_try, on_tensor_maps, synchronises
from pipesim.ptx.flow.slice import Slice
from pipesim.ptx.launch.values import Parameter
from pipesim.ptx.text.declarations import Function
from pipesim.ptx.text.instruction import (
    Address,
    CodeLabel,
    Float,
    Immediate,
    Instruction,
    NegatedPredicate,
    Operand,
    Register,
    Sink,
    Special,
    Symbol,
    TensorAddress,
    Vector,
    parts_of,
)

_OF_BITS = frozenset({"mov", "selp", "setp"})  #: also move, choose and compare floating-point numbers
_OF_FLOATS = frozenset({"add", "sub", "mul"})  #: of scalars that decide, such as a factor that may be 0
_WRITERS = ARITHMETIC | CHOICES | MOVES | LANES


def assignments(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """The registers that it writes with their expressions. NotAnExpression if it does more than compute integers."""
    writer = _WRITERS.get(instruction.opcode)
    if instruction.opcode in _OF_FLOATS and instruction.has("f32"):
        return float_arithmetic(instruction, names)
    if writer is None or (instruction.opcode not in _OF_BITS and not FLOATS.isdisjoint(instruction.modifiers)):
        raise NotAnExpression
    return writer(instruction, names)


Run = Callable[[list[Value], list[Value], Any], None]  #: registers, constants, warp
Getter = Callable[[list[Value], list[Value], Any], Value]


class RunEnd(Enum):
    """What ends a straight run."""

    NEXT = 0  #: nothing: another run begins
    BRANCH = 1
    EXIT = 2
    EFFECT = 3


@dataclass
class StraightRun:
    """A straight run of computations, and what ends it.

    ``guard``: the register of the predicate, -1 for none; ``target``: of a branch; ``next``: the position after it.
    """

    run: Run | None
    count: int
    after: RunEnd
    position: int
    next: int
    guard: int = -1
    negated: bool = False
    target: int = -1
    step: "DecodedStep | None" = None
    meets: bool = False  #: whether the lanes of a warp execute one of its instructions together
    orders: bool = False  #: whether one of them puts their accesses in order
    exchange: int = -1  #: the first of those at which lanes wait for all others, as ``shfl.sync`` and ``mma.sync``


@dataclass
class DecodedStep:
    """An instruction that does more than compute: its operands as functions of the warp."""

    instruction: Instruction
    guard: int
    negated: bool
    getters: tuple[Getter | None, ...]
    results: tuple[int, ...]
    needed: bool  #: others may notice whether it runs
    valued: bool  #: its result matters
    converges: bool  #: all lanes of a warp execute it together
    by_threads: bool  #: a barrier, which counts threads
    together: bool  #: PTX wants all lanes of a warp to execute it
    logged: bool  #: it is a step on the path of its warp
    hands_on: bool  #: others may learn by it of what its thread has done before
    act: LaneAct | None
    effect: Callable[..., Any] = field(default=lambda *_: None)

    def get(self, index: int, warp: Any) -> Value:
        """The value of an operand."""
        getter = self.getters[index]
        assert getter is not None
        return getter(warp.R, warp.K, warp)

    def tensor(self, index: int, warp: Any) -> tuple[Value, list[Value]]:
        """The address of a tensor map and the coordinates of a box."""
        map_, coordinates = self.get(index, warp)
        return map_, coordinates


_WIDTHS = {"pred": 1, "b128": 128} | {f"{k}{w}": w for k in "usbf" for w in (8, 16, 32, 64)} | {"f16x2": 32, "bf16": 16}
_PLAIN = (int, bool)
_NAMESPACE: dict[str, Any] = {
    name: function
    for name, function in vars(integers).items()
    if callable(function) and not name.startswith("_") and name not in ("lift", "Value")
}
_NAMESPACE |= {
    "select": select,
    "at_most": at_most,
    "PLAIN": _PLAIN,
    "to_generic": to_generic,
    "from_generic": from_generic,
}
_NAMESPACE |= {"at_rank": at_rank, "rank_of": rank_of, "__builtins__": {}}


class Code:
    """A kernel's body. ``part``: the positions that matter; the rest is passed over.

    ``constants`` are what ``K`` holds, in order: special registers, and addresses of variables and parameters.
    """

    def __init__(self, function: Function, regions: Regions, part: Slice) -> None:
        self.function = function
        self.body = function.body
        self.regions = regions
        self.kept, self.opaque, self.valued = part.kept, part.opaque, part.valued
        self.on_global, self.untracked = part.on_global, part.untracked
        self.checked, self.parting = part.checked, part.parting
        self.global_operations: tuple[
            tuple[int, int], ...
        ] = ()  #: bytes of global memory whose accesses are operations
        self.global_base = 0  #: where the memory begins that they are in
        self.any_data = part.any_data  #: whether what is made of data is the same where it is made in the same way
        self.only_loaded = only_loaded(function, regions.uses) if part.any_data else frozenset[int]()
        self.misaligned = MisalignedCopies(function, regions.uses)
        self.words_met: frozenset[int] = frozenset()  #: addresses of words by which agents talk, where runs met some
        self.long_with: tuple[Parameter, ...] = ()  #: parameters with which a run is whole only without laps
        self.wanted = part.wanted
        self.on_written = self.on_global and self.on_global - only_loaded(function, regions.uses)
        maps = [at.map for each in self.body for at in each.operands if isinstance(at, TensorAddress)]
        places = ParameterPlaces(function, regions.uses) if maps else None
        changes = places is not None and any(places.parameter(each) is None for each in maps)  # perhaps, by stores
        self.changes_maps = changes or any(map(on_tensor_maps, self.body))
        self.waits_for_kernels = any(each.opcode == "griddepcontrol" and each.has("wait") for each in self.body)
        self._writes, self._reads = regions.uses.writes, regions.uses.reads
        self.read = frozenset(name for names in regions.uses.reads for name in names)  #: registers that are used
        self.masks = masks_of_all_lanes(self.body, self._writes)  #: registers that name all lanes of a warp
        self.end = len(function.body)
        self.constants: list[Special | Symbol | Address] = []
        self._constant_at: dict[Special | Symbol | Address, int] = {}
        self._number: dict[str, int] = {name: i for i, name in enumerate(function.registers)}
        self._space = dict(_NAMESPACE)
        self.segments: dict[int, StraightRun] = {}
        self.ends_on_no: dict[int, bool] = {}  #: of tries: whether their loop is left by "not yet" alone
        self._starts = frozenset(function.labels.values())
        for position in sorted(self.kept | self.checked | self.opaque.keys()):
            for operand in self.body[position].operands:
                self._collect(operand)
            for name in (
                *self._writes[position],
                *regions.uses.reads[position],
            ):  # also the carry, which is not an operand
                self.register(name)
        self.read_early: frozenset[int] = (
            frozenset()
        )  #: wgmmas whose registers are read on every way, perhaps too early
        self.loaded_at_once: frozenset[int] = frozenset()  #: loads of tensor memory that end when they are used
        self.effect_of: Callable[[Instruction], Callable[..., Any]] = lambda _: lambda *__: None
        self.watched: dict[int, Callable[[Any], None]] = {}  #: by position, what each warp that comes there is given to

    @property
    def registers(self) -> int:
        """How many registers there are."""
        return len(self._number)

    @property
    def of_lanes_together(self) -> frozenset[int]:
        """Each ``activemask`` that has run and decides something: PTX does not say which lanes it names. And each vote
        by which lanes pass a wait that was over for others, which orders no accesses to memory.
        """
        tried = {name for each in self.body if is_try(each) for name in self._writes[each.position]}
        return frozenset(
            p
            for p in self.kept
            if self.body[p].opcode == "activemask"
            or (self.body[p].opcode == "vote" and self.body[p].has("any") and not tried.isdisjoint(self._reads[p]))
            if any(first <= p <= each.position for first, each in self.segments.items())
        )

    # Names

    def register(self, name: str) -> int:
        """The number of a register; one that is not declared gets a number too."""
        return self._number.setdefault(name, len(self._number))

    def width(self, name: str) -> int:
        """Its width in bits."""
        return _WIDTHS.get(self.function.registers.get(name, "b32"), 32)

    def constant(self, operand: Special | Symbol | Address) -> str:
        """What does not change while a warp runs."""
        if isinstance(operand, Address) and not isinstance(operand.base, Symbol):
            base = operand_text(operand.base, self, 64)
            return f"({base}+{operand.offset})"
        if operand not in self._constant_at:
            self._constant_at[operand] = len(self.constants)
            self.constants.append(operand)
        return f"K[{self._constant_at[operand]}]"

    def _collect(self, operand: Operand) -> None:
        """Give the constants and registers of an operand their numbers, before any warp has its own."""
        if isinstance(operand, Special | Symbol) or (isinstance(operand, Address) and isinstance(operand.base, Symbol)):
            self.constant(operand)
            return
        if isinstance(operand, Register):
            self.register(operand.name)
        for part in parts_of(operand):
            self._collect(part)

    def unknown(self, leaf: Leaf) -> str:
        """A value of which nothing is known."""
        name = f"u{len(self._space)}"
        self._space[name] = Unknown(leaf)
        return name

    def unknown_value(self, leaf: Leaf | None) -> Unknown:
        """A value of which nothing is known."""
        return Unknown(leaf or Leaf("an unknown value", 0))

    # what runs

    def segment(self, position: int) -> StraightRun:
        """The straight run that begins here, and what ends it."""
        found = self.segments.get(position)
        if found is None:
            found = self._compile_run(position)
            end = found.position + (
                found.after is not RunEnd.NEXT
            )  # where another run begins, its first is not of this
            together = [each for each in self.body[position:end] if converges(each, self.masks)]
            found.meets = bool(together)
            found.orders = any(orders_lanes(each, self.masks) for each in together)
            found.exchange = next((each.position for each in together if needs_others(each)), -1)
            watch = self.watched.get(found.position)
            if watch is not None:
                found.run = _watched(found.run, watch)
            self.segments[position] = found
        return found

    def _compile_run(self, start: int) -> StraightRun:
        lines: list[str] = []
        position = start
        count = 0
        while position < self.end:
            each = self.body[position]
            if position > start and position in self._starts:
                return StraightRun(self._function(lines), count, RunEnd.NEXT, position, position)
            if each.opcode in _CONTROL:
                return self._control(each, self._function(lines), count)
            if position in self.checked:
                lines.append(self._takes_part(each))
            if position in self.opaque:
                lines += [f"R[{register}]={text}" for register, text in self._unknowns(each)]
            elif position in self.kept:
                computed = self.assignments(each)
                if computed is None:
                    step = self._step(each)
                    run = self._function(lines)
                    return StraightRun(run, count + 1, RunEnd.EFFECT, position, position + 1, step=step)
                lines += self._lines(each, computed)
            count += 1
            position += 1
        return StraightRun(self._function(lines), count, RunEnd.EXIT, position, position)

    def _takes_part(self, each: Instruction) -> str:
        mask = operand_text(each.operands[-1], self, 32) if each.opcode in EXCHANGES else str(ALL_LANES)
        guard = "1" if each.guard is None else f"R[{self.register(each.guard.register)}]{'^1' * each.guard.negated}"
        return f"W.takes_part({each.position},{mask},{guard})"

    def assignments(self, each: Instruction) -> list[Assignment] | None:
        """What a mere computation assigns, None for what does more."""
        try:
            return assignments(each, self)
        except NotAnExpression:
            if each.opcode in _COMPUTED and not each.has_any("load", "store"):
                return self._unknowns(each)
            return None
        except MALFORMED as error:
            raise malformed_operands(each) from error

    def _unknowns(self, each: Instruction) -> list[Assignment]:
        origin = self.body[self.opaque.get(each.position, each.position)]
        of = "" if origin is each else f", made of that of {origin.mnemonic} in line {origin.line}"
        text = self.unknown(Leaf(f"the result of {each.mnemonic}{of}", each.line))
        made_of = _shape(each) if self.any_data and each.position not in self.opaque else None
        if made_of is not None:
            reads = ",".join(f"R[{self.register(name)}]" for name in self._reads[each.position])
            written = enumerate(self._writes[each.position])
            texts = [(name, f"W.cluster.data.computed({(n, made_of)!r},{text},{reads})") for n, name in written]
            return [(self.register(name), text) for name, text in texts]
        return [(self.register(name), text) for name in self._writes[each.position]]

    def _lines(self, each: Instruction, computed: list[Assignment]) -> list[str]:
        if each.guard is None:
            return [f"R[{register}]={text}" for register, text in computed]
        holds = self.register(each.guard.register)
        if any(register == holds for register, _ in computed[:-1]):  # it is a result before the last one is chosen
            computed = self._unknowns(each)
        guard = f"R[{holds}]"
        made = []
        for register, text in computed:
            order = f"R[{register}],{text}" if each.guard.negated else f"{text},R[{register}]"
            made.append(f"R[{register}]=select({guard},{order})")
        return made

    def _function(self, lines: list[str]) -> Run | None:
        if not lines:
            return None
        text = "def run(R,K,W):\n " + "\n ".join(lines)
        space: dict[str, Any] = {}
        exec(compile(text, "<a run of PTX>", "exec"), self._space, space)  # noqa: S102  # our own text: numbers and names of ours
        return cast("Run", space["run"])

    def _control(self, each: Instruction, run: Run | None, count: int) -> StraightRun:
        guard = self.register(each.guard.register) if each.guard is not None else -1
        negated = each.guard is not None and each.guard.negated
        here, after = each.position, each.position + 1
        if each.guard is not None and here not in self.kept:  # decides nothing
            return StraightRun(run, count + 1, RunEnd.NEXT, here, self.regions.graph.meeting_point(here))
        if each.opcode == "bra" and isinstance(each.operands[0], CodeLabel):
            target = self.function.labels[each.operands[0].name]
            return StraightRun(run, count + 1, RunEnd.BRANCH, here, after, guard, negated, target)
        if each.opcode in ("ret", "exit"):
            if guard >= 0:
                return StraightRun(run, count + 1, RunEnd.BRANCH, here, after, guard, negated, self.end)
            return StraightRun(run, count + 1, RunEnd.EXIT, here, after)
        return StraightRun(run, count + 1, RunEnd.EFFECT, here, after, step=self._step(each))

    def _step(self, each: Instruction) -> DecodedStep:
        guard = self.register(each.guard.register) if each.guard is not None else -1
        negated = each.guard is not None and each.guard.negated
        getters = tuple(self.getter(operand) for operand in each.operands)
        results = tuple(map(self.register, self._writes[each.position]))
        valued = each.position in self.valued
        together = each.has("aligned") or (each.opcode in ("bar", "barrier") and not each.has("cluster"))
        needed = synchronises(each) or each.opcode == "trap"
        counts = each.opcode in ("bar", "barrier")
        aligned = each.has("aligned") or (each.opcode == "bar" and not each.has("warp"))
        logged = is_step(each) and not is_try(each)
        return DecodedStep(
            each, guard, negated, getters, results, needed, valued, together, counts, aligned, logged,
            hands_on(each), lane_act(each), self.effect_of(each),
        )  # fmt: skip

    def getter(self, operand: Operand) -> Getter | None:
        """A function that gives the value of an operand; None for one that is only written."""
        if isinstance(operand, Vector):
            return self._vector_getter(operand)
        if isinstance(operand, TensorAddress):
            map_, coordinates = self.getter(operand.map), self._vector_getter(operand.coordinates)
            return lambda r, k, w: (None if map_ is None else map_(r, k, w), coordinates(r, k, w))
        match operand:
            case Immediate(value):
                return lambda r, k, w: value
            case Register(name):
                at = self.register(name)
                return lambda r, k, w: r[at]
            case NegatedPredicate(Register(name)):
                at = self.register(name)
                return lambda r, k, w: r[at] ^ 1
            case Special() | Symbol() | Address(Symbol(), _):
                self.constant(operand)
                at = self._constant_at[operand]
                return lambda r, k, w: k[at]
            case Address(Register(name), offset):
                at = self.register(name)
                return (lambda r, k, w: r[at] + offset) if offset else (lambda r, k, w: r[at])
            case Address(Immediate(value), offset):
                return lambda r, k, w: value + offset
            case Float(bits, _):
                return lambda r, k, w: bits
            case _:
                return None

    def _vector_getter(self, vector: Vector) -> Getter:
        parts = [None if isinstance(part, Sink) else self.getter(part) for part in vector.parts]
        return lambda r, k, w: [None if part is None else part(r, k, w) for part in parts]


def _watched(run: Run | None, watch: Callable[[Any], None]) -> Run:
    def both(registers: list[Value], constants: list[Value], warp: Any) -> None:
        if run is not None:
            run(registers, constants, warp)
        if registers is warp.R:  # not a copy, on which a way is only tried
            watch(warp)

    return both


def _shape(each: Instruction) -> str | None:
    """How an instruction makes its results of the registers that it reads; None if of other things as well."""
    if each.opcode in _OF_OTHERS or each.opcode not in VALUES:
        return None
    found = [each.mnemonic]
    open_ = list(each.operands)
    for operand in open_:
        if isinstance(operand, Special | Address | Symbol):
            return None
        found.append(type(operand).__name__)
        found.append(repr(operand) if isinstance(operand, Immediate | Float) else "")
        open_ += parts_of(operand)
    return " ".join(found)


#: Where one of these is not an expression, its result is not known, and it does nothing else; the stack is memory.
_COMPUTED = VALUES - {"alloca", "stackrestore", "stacksave"} | {"elect"}
#: Have results that are not made of their operands alone.
_OF_OTHERS = EXCHANGES | {"activemask", "alloca", "createpolicy", "mma", "movmatrix", "suld", "tex", "tld4", "wmma"}
_CONTROL = frozenset({"bra", "brx", "ret", "exit", "trap"})
