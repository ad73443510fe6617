"""Which registers an instruction reads and writes, and which of what it reads its synchronisation depends on."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pipesim.ptx.flow.graph import Graph, Loop, graph_of, reached
from pipesim.ptx.flow.opcodes import has_result
from pipesim.ptx.text.declarations import Function, once_for_each
from pipesim.ptx.text.instruction import (
    Address,
    Arguments,
    Float,
    Immediate,
    Instruction,
    Operand,
    Register,
    Sink,
    Symbol,
    TensorAddress,
    Vector,
    parts_of,
)

CARRY = "%CC.CF"  #: the carry flag, which ``add.cc`` writes and ``addc`` reads (PTX ISA, "Extended-Precision")
WITH_CARRY = frozenset({"addc", "subc", "madc"})  #: also read it
_SPACES = ("global", "shared::cta", "shared::cluster", "shared")
_SIZES = frozenset({"box_dim", "elemtype", "element_stride", "rank", "cp_fenceproxy"})
_WRITES_MULTICAST = frozenset({"st", "red"})
_OF_GROUPS = frozenset({"commit_group", "wait_group", "wait_all", "mbarrier"})

Names = tuple[str, ...]


@dataclass(frozen=True)
class Uses:
    """By position in a body, the registers that each instruction reads (without the guard), writes, and needs.

    ``needs`` are those on which its effect on synchronisation depends: which bytes, which barrier, how many. What is
    stored, added or multiplied is not among them; where in global memory a copy reads or writes only if that is asked.
    """

    reads: Sequence[Names]
    writes: Sequence[Names]
    needs: Sequence[Names]

    @cached_property
    def writers(self) -> Mapping[str, Sequence[int]]:
        """By register, the positions that write it, in order."""
        found = defaultdict[str, list[int]](list)
        for position, names in enumerate(self.writes):
            for name in names:
                found[name].append(position)
        return dict(found)


def uses_of(function: Function, *, global_memory: bool = False) -> Uses:
    """The registers of every instruction of a function; ``global_memory``: what copies do to it is needed."""
    return _uses(function, global_memory=True) if global_memory else _plain_uses(function)


@once_for_each
def _plain_uses(function: Function) -> Uses:
    return _uses(function, global_memory=False)


def _uses(function: Function, *, global_memory: bool) -> Uses:
    made = _Registers()
    reads, writes, needs = [], [], []
    for each in function.body:
        operands, result = each.operands, has_result(each)
        after = operands[1:] if result else operands
        wrote = made.names_of(operands[:1]) if result and _names_registers(each) else ()
        read = made.names_of(after)
        was = made.names_of(operands) if result and each.opcode == "wgmma" else read
        if "cc" in each.modifiers:
            wrote = (*wrote, CARRY)
        reads.append((*was, CARRY) if each.opcode in WITH_CARRY else was)
        writes.append(wrote)
        decisive = _all_of_copy(each) if global_memory and each.opcode == "cp" else _decisive(each, after)
        needs.append(read if decisive is after else made.names_of(decisive))
    return Uses(reads, writes, needs)


def _names_registers(instruction: Instruction) -> bool:
    """Whether the first operand can be a result: a call without one begins with the function's name."""
    return instruction.opcode != "call" or isinstance(next(iter(instruction.operands), None), Arguments)


@dataclass
class _Registers:
    """The registers in operands, remembered by identity: the reader shares operands of the same text."""

    _found: dict[int, Names] = field(default_factory=dict)

    def names_of(self, operands: Iterable[Operand]) -> Names:
        """The registers of some operands, in order."""
        found: Names = ()
        for operand in operands:
            names = self._found.get(id(operand))
            if names is None:
                names = self._found[id(operand)] = self._names(operand)
            found += names
        return found

    def _names(self, operand: Operand) -> Names:
        return (operand.name,) if isinstance(operand, Register) else self.names_of(parts_of(operand))


def _decisive(instruction: Instruction, after: Sequence[Operand]) -> Sequence[Operand]:
    """The operands on which the effect on synchronisation depends; ``after`` are those after a result."""
    opcode, operands, modifiers = instruction.opcode, instruction.operands, instruction.modifiers
    match opcode:
        case "ld" | "ldu" | "ldmatrix" | "atom":
            return operands[1:2]
        case "st" | "red" if "async" in modifiers:
            return (*operands[:1], *operands[2:])
        case "st" if "bulk" in modifiers:
            return operands[:2]
        case "st" | "red" | "stmatrix":
            return operands[:1]
        case "multimem" if not _WRITES_MULTICAST.isdisjoint(modifiers):
            return operands[:1]
        case "wmma" if "load" in modifiers:
            return operands[1:]
        case "wmma" if "store" in modifiers:
            return (*operands[:1], *operands[2:])
        case "cp" | "multimem" if opcode == "cp" or "cp" in modifiers:
            return _copy(operands, modifiers)
        case "wgmma":
            # The result and a matrix in registers are vectors, descriptors are registers; the rest scales values.
            return [each for each in operands[1:3] if not isinstance(each, Vector)]
        case "tcgen05":
            return _tensor_core(operands, modifiers)
        case "tensormap":
            return operands if not _SIZES.isdisjoint(modifiers) else operands[:1]
        case _:
            return after


def _all_of_copy(each: Instruction) -> Sequence[Operand]:
    """Every operand of a copy but the hint for the cache, a policy."""
    return each.operands[:-1] if each.has("L2::cache_hint") else each.operands


def _copy(operands: Sequence[Operand], modifiers: Names) -> Sequence[Operand]:
    """Of an asynchronous copy: addresses in shared memory, bytes, barrier, mask; of a tensor only its map."""
    if not _OF_GROUPS.isdisjoint(modifiers):
        return operands
    if "L2::cache_hint" in modifiers:
        operands = operands[:-1]
    if "tensor" in modifiers:
        places = [each.map if isinstance(each, TensorAddress) else each for each in operands]
        return [each for each in places if not isinstance(each, Vector)]
    spaces = [each for each in modifiers if each in _SPACES]  # the destination's, then the source's
    if "global" not in spaces or len(operands) < 2:
        return operands
    return operands[1:] if spaces[0] == "global" else (operands[0], *operands[2:])


def _tensor_core(operands: Sequence[Operand], modifiers: Names) -> Sequence[Operand]:
    if "ld" in modifiers:
        return [each for each in operands if isinstance(each, Address)]
    if "st" in modifiers:
        return operands[:1]
    if "mma" in modifiers:  # the matrices, the instruction's description, and the addresses of scales and metadata
        first = 5 if "sp" in modifiers else 4
        return (*operands[:first], *(each for each in operands[first:] if isinstance(each, Address)))
    return operands


_PRODUCTS = frozenset({"mma", "wmma", "wgmma", "ldmatrix", "tex", "tld4", "movmatrix"})
_LOADS = frozenset({"ld", "ldu", "suld"})
_IN_MEMORY = frozenset({"global", "shared", "shared::cta", "shared::cluster"})
_FLOATS = frozenset(
    {"f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64", "tf32", "e4m3x2", "e5m2x2", "ue8m0x2", "e2m1x2"}
)
_ARITHMETIC = frozenset(
    {
        "abs", "add", "cos", "cvt", "div", "ex2", "fma", "lg2", "mad", "max", "min", "mul", "neg", "rcp", "rsqrt",
        "sin", "sqrt", "sub", "tanh",
    }
)  # fmt: skip
_MOST_ROUNDS = 64


def data_results(
    function: Function, graph: Graph, uses: Uses, *, in_parts: bool = False, of_loads: bool = True
) -> dict[int, int]:
    """The positions of instructions whose result is data, each with that of the instruction whose data it is.

    A result is data if it comes out of a matrix unit, if an instruction makes it of data, or if floating-point
    arithmetic makes it of something that was loaded from shared memory, or from global memory but one word at a time.
    A register that also holds other values, as compilers give one to an accumulator and, before the product, to a
    zero of other use, is data where data may still be in it. ``in_parts``: what puts data beside other bits is not;
    ``of_loads``: nor what is made of loads, without it.
    """
    loaded: set[str] = set()
    made = _DataFlow(function, graph, uses)
    left = [each for each in function.body if uses.writes[each.position]]
    for _ in range(_MOST_ROUNDS):
        before = len(loaded) + len(made.found)
        rest = []
        for each in left:
            reads, writes = uses.reads[each.position], uses.writes[each.position]
            origin = -1 if in_parts and _is_of_parts(each) else _origin(each, reads, loaded, made)
            if origin >= 0:
                made.found[each.position] = origin
                made.data.update(writes)
                continue
            if of_loads and _is_loaded(each, reads, loaded):
                loaded.update(writes)
            rest.append(each)
        left = rest
        if len(loaded) + len(made.found) == before:
            break
    return made.found


@dataclass
class _DataFlow:
    """Where data is: ``found`` by position, ``data`` by register."""

    function: Function
    graph: Graph
    uses: Uses
    found: dict[int, int] = field(default_factory=dict)
    data: set[str] = field(default_factory=set)

    def origin(self, name: str, reader: int) -> int:
        """The position of an instruction whose data may be in the register at its reader, -1 if there is none."""
        writers, body = self.uses.writers[name], self.function.body
        if all(at in self.found for at in writers):
            return self.found[writers[0]]
        seen: set[int] = set()
        ahead = [(self.graph.block_of[reader], reader)]
        while ahead:
            number, end = ahead.pop()
            block = self.graph.blocks[number]
            first, after = (bisect_left(writers, at) for at in (block.first, end))
            for at in reversed(writers[first:after]):
                if at in self.found:
                    return self.found[at]
                if body[at].guard is None:
                    break
            else:
                fresh = [each for each in block.predecessors if each not in seen]
                seen.update(fresh)
                ahead += [(each, self.graph.blocks[each].end) for each in fresh]
        return -1


def _origin(each: Instruction, reads: Names, loaded: set[str], made: _DataFlow) -> int:
    """The position of the instruction whose data this one writes, -1 if its result is not data."""
    opcode, modifiers = each.opcode, each.modifiers
    if opcode in _PRODUCTS or opcode == "tcgen05":
        return each.position
    if opcode in _LOADS or opcode in ("atom", "bar", "barrier"):  # the address is not the value, nor is one vote
        return -1
    for name in reads:
        if name in made.data and (origin := made.origin(name, each.position)) >= 0:
            return origin
    arithmetic = opcode in _ARITHMETIC and not _FLOATS.isdisjoint(modifiers) and not loaded.isdisjoint(reads)
    return each.position if arithmetic else -1


def _is_of_parts(each: Instruction) -> bool:
    """Whether bits of the result may be known although others are data."""
    widens = each.opcode == "cvt" and _FLOATS.isdisjoint(each.modifiers)
    packs = each.opcode == "mov" and any(isinstance(operand, Vector) for operand in each.operands)
    return widens or packs or (each.opcode in _OF_BITS and not each.has("pred"))


_OF_BITS = frozenset({"and", "or", "shl", "shr", "bfi", "bfe", "prmt", "shf"})


def _is_loaded(each: Instruction, reads: Names, loaded: set[str]) -> bool:
    if each.opcode in _LOADS:
        if each.has("global") and each.has_any("f32", "b32", "u32") and not each.has_any("v2", "v4", "v8"):
            return False  # perhaps a factor in memory, which may be 0 and decide what is loaded at all
        return not _IN_MEMORY.isdisjoint(each.modifiers)
    return not loaded.isdisjoint(reads)


_COPIES = frozenset({"mov", "cvt"})
_DECIDES = frozenset({"setp"})  #: its result decides when a value changes, and is none of its values
_FROM_MEMORY = frozenset({"ld", "ldu", "atom"})


def computing_lines(function: Function, line: int) -> tuple[int, ...]:
    """The lines that compute the stage and parity of the mbarrier wait at a line, in the order of the text.

    Values that are carried from one iteration to the next count, of all loops around the wait. If an instruction of an
    outer loop restarts one of them, those there that set or change one; else those that set or change the parity; else
    those that change the stage. () if the wait is in no loop, or its values are computed from others in each iteration.
    """
    waits = [each for each in function.body if each.line == line and each.opcode == "mbarrier"]
    waits = [each for each in waits if "parity" in each.modifiers]
    if not waits:
        return ()
    found = _LoopValues(function, graph_of(function), uses_of(function), waits[0].position)
    return tuple(sorted({function.body[position].line for position in found.computing()}))


class _LoopValues:
    """The registers that a wait's stage and parity depend on, as far as its loops write them."""

    def __init__(self, function: Function, graph: Graph, uses: Uses, position: int) -> None:
        self._function = function
        self._graph = graph
        self._uses = uses
        around = [loop for loop in graph.loops if graph.block_of[position] in loop.blocks]
        self._loops = sorted(around, key=lambda loop: len(loop.blocks))
        inside = graph.positions(self._loops[-1].blocks) if self._loops else ()
        written = {
            each: [p for p in at if p in inside and function.body[p].opcode not in _DECIDES]
            for each, at in uses.writers.items()
        }
        self._writers = {name: at for name, at in written.items() if at}
        parity = function.body[position].operands[2:3]  # after the answer and the address
        self._parity = self._carried(each.name for each in parity if isinstance(each, Register))
        self._every = self._parity | self._carried(uses.needs[position])

    def computing(self) -> list[int]:
        """The positions of what sets them in an outer loop that restarts one, else of what sets the parity, or all."""
        inner = next((loop for loop in self._loops if self._changes(self._every, loop)), None)
        if inner is None:
            return []
        outer = [each for each in self._sets(self._every) if self._graph.block_of[each] not in inner.blocks]
        if any(map(self._restarts, outer)):
            return outer
        return self._sets(self._parity) or self._sets(self._every)

    def _sources(self, names: Iterable[str]) -> frozenset[str]:
        """These registers, as far as the loops write them, and all from which those are computed there."""

        def written(names: Iterable[str]) -> Iterator[str]:
            return filter(self._writers.__contains__, names)

        return frozenset(reached(written(names), lambda name: written(self._read_by(name))))

    def _read_by(self, name: str) -> list[str]:
        writers = [each for each in self._writers[name] if self._function.body[each].opcode not in _FROM_MEMORY]
        return [read for each in writers for read in self._uses.reads[each]]

    def _carried(self, names: Iterable[str]) -> frozenset[str]:
        """Those of the sources whose value depends on their own in an iteration before."""
        return frozenset(name for name in self._sources(names) if name in self._sources(self._read_by(name)))

    def _changes(self, names: frozenset[str], loop: Loop) -> bool:
        """Whether an instruction of the loop computes one of them from what is carried."""
        written = (each for name in names for each in self._writers[name])
        return any(
            self._graph.block_of[each] in loop.blocks and not names.isdisjoint(self._uses.reads[each])
            for each in written
        )

    def _restarts(self, position: int) -> bool:
        """Whether an instruction copies what the loops do not change."""
        return self._copies(position) and not self._sources(self._uses.reads[position])

    def _copies(self, position: int) -> bool:
        return self._function.body[position].opcode in _COPIES

    def _sets(self, names: frozenset[str]) -> list[int]:
        """What gives one of them a new value: all of its instructions but copies from each other."""
        written = (each for name in sorted(names) for each in self._writers[name])
        return [each for each in written if self._restarts(each) or not self._copies(each)]


def stores_one_value(at: int, body: Sequence[Instruction], uses: Uses) -> bool:
    """Whether a store writes the same whoever executes it: it is made of numbers and parameters alone."""
    operands: list[Operand] = [Sink()]
    if body[at].opcode == "st":
        operands = list(parts_of(body[at].operands[1]) or body[at].operands[1:2])
    seen: set[Operand] = set()
    while operands:
        operand = operands.pop()
        if operand in seen or isinstance(operand, Immediate | Float | Symbol):
            continue
        seen.add(operand)
        made = [body[p] for p in uses.writers.get(operand.name, ())] if isinstance(operand, Register) else []
        plain = len(made) == 1 and made[0].guard is None and (made[0].opcode in _PLAIN or made[0].has("param"))
        if not plain and not isinstance(operand, Address | Vector):
            return False
        operands += made[0].operands[1:] if plain else parts_of(operand)
    return True


_PLAIN = frozenset({"mov", "cvt", "cvta", "add", "sub", "mul", "mad", "and", "or", "xor", "shl", "shr", "prmt", "selp"})
