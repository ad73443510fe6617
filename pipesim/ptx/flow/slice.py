"""The instructions on which synchronisation depends, found backwards from everything that synchronises.

The roots are all operations on barriers, asynchronous copies, fences and whatever may touch shared memory: of these,
the addresses, counts, bytes and masks matter, not the data. From there it follows registers (any definition of the
register), shared, local and global memory where a value that is read matters, guards, and the branches that decide
whether a block runs. Floating point, the results of matrix products and loads of data fall away by themselves.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from pipesim.ptx.flow.addresses import ParameterPlaces
from pipesim.ptx.flow.divergence import divergent_registers, masks_of_all_lanes, names_all_lanes, needs_others
from pipesim.ptx.flow.graph import Graph, graph_of, reached
from pipesim.ptx.flow.inline import callee
from pipesim.ptx.flow.opcodes import (
    EXCHANGES,
    LIBRARY,
    PASS_ON,
    RANKS,
    VALUES,
    is_known,
    is_synchronisation,
    may_touch_global,
    may_touch_shared,
)
from pipesim.ptx.flow.uses import Names, Uses, data_results, uses_of
from pipesim.ptx.text.declarations import Function, once_for_each
from pipesim.ptx.text.instruction import Address, Instruction, Register, Symbol, TensorAddress


class Need(Enum):
    """How something is needed."""

    PARAMETER = "parameter"  #: a word of the parameters
    TENSOR_MAP = "tensor map"  #: a tensor map among the parameters
    MEMORY = "memory"  #: a word of global memory that decides
    ATOMIC = "atomic"  #: the result of an atomic on global memory that decides


class LaunchNeed(NamedTuple):
    """One thing that the slice needs. ``offset`` is in the parameters (-1 where not known), ``nbytes`` from there on.

    Of MEMORY and ATOMIC, ``offset`` is that of the pointer that leads there, if the text shows it. ``type``: of a map
    how many dimensions its box has, as ``2d``. ``lines`` of the PTX file need it.
    """

    need: Need
    offset: int
    nbytes: int
    type: str
    lines: tuple[int, ...]


def wanted_by(function: Function, uses: Uses, kept: frozenset[int], valued: frozenset[int]) -> tuple[LaunchNeed, ...]:
    """What the instructions of a slice need, parameters first, by offset."""
    places = ParameterPlaces(function, uses)
    found: dict[tuple[Need, int, int, str], list[int]] = {}
    for position in sorted(kept):
        instruction = function.body[position]
        for need, offset, nbytes, kind in _needs(instruction, places, valued=position in valued):
            found.setdefault((need, offset, nbytes, kind), []).append(instruction.line)
    order = list(Need)
    rows = sorted(found.items(), key=lambda each: (order.index(each[0][0]), *each[0][1:]))
    return tuple(LaunchNeed(*key, tuple(dict.fromkeys(lines))) for key, lines in rows)


def _needs(instruction: Instruction, places: ParameterPlaces, *, valued: bool) -> Iterator[tuple[Need, int, int, str]]:
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode == "cp" and "tensor" in modifiers:
        for operand in instruction.operands:
            if isinstance(operand, TensorAddress) and (offset := places.parameter(operand.map)) is not None:
                yield Need.TENSOR_MAP, offset, 128, next((m for m in modifiers if m in RANKS), "2d")
        return
    if opcode not in {"ld", "atom", "ldu"} or not valued or len(instruction.operands) < 2:
        return
    spaces = instruction.spaces
    kind, nbytes = _type(instruction)
    offset = places.parameter(instruction.operands[1])
    if opcode == "ld" and offset is not None:
        for n in range(next((int(each[1:]) for each in modifiers if each in {"v2", "v4", "v8"}), 1)):
            yield Need.PARAMETER, offset + n * nbytes, nbytes, kind
    elif "global" in spaces or "const" in spaces:
        need = Need.ATOMIC if opcode == "atom" else Need.MEMORY
        yield need, places.pointer(instruction.operands[1]), nbytes, kind


def _type(instruction: Instruction) -> tuple[str, int]:
    for word in reversed(instruction.modifiers):
        if word[:1] in "bsuf" and word[1:].isdecimal():
            return word, int(word[1:]) // 8
    return "b32", 4


def control_dependence(graph: Graph) -> tuple[tuple[int, ...], ...]:
    """For each block, the blocks whose last instruction decides whether it runs, in ascending order."""
    found: list[list[int]] = [[] for _ in graph.blocks]
    for number, block in enumerate(graph.blocks):
        if len(block.successors) < 2:
            continue
        meeting = graph.post_dominators[number]
        for after in block.successors:
            at = after
            while at not in (meeting, graph.exit):
                if not found[at] or found[at][-1] != number:
                    found[at].append(number)
                at = graph.post_dominators[at]
    return tuple(map(tuple, found))


_STRUCTURE = frozenset({"exit", "ret", "bra"})  #: kept without a guard: they decide nothing and cost nothing
_GLOBAL = {True: frozenset({"st", "red", "atom"}), False: frozenset({"ld", "ldu", "atom"})}  #: what stores, what loads


@dataclass(frozen=True)
class Slice:
    """What of a function's body must be executed, by position.

    ``kept``: every instruction that matters; ``valued``: those of which a result matters (of an access that is kept
    and not among them, only the address does). ``opaque``: those that matter only because they write a register that
    matters, with a value that is data and therefore unknown, each with the position of the instruction whose data it
    is; what they read is unrelated. A branch that is not
    kept decides nothing here: continue where its ways meet. ``unread``: line and name of each instruction whose
    opcode is not known, and of calls of unknown functions. ``wanted``: what the launch must give. ``on_global``: what
    may access global memory, where that is followed; ``untracked``: those of which only the address matters.
    ``checked``: those at which lanes wait for others of their warp, where which ones are shows only as it runs;
    ``parting``: branches that may part the lanes before such. ``any_data``: what is computed of data that was loaded is
    not opaque.
    """

    kept: frozenset[int]
    valued: frozenset[int]
    opaque: Mapping[int, int]
    unread: tuple[tuple[int, str], ...]
    wanted: tuple[LaunchNeed, ...]
    on_global: frozenset[int] = frozenset()
    untracked: frozenset[int] = frozenset()
    checked: frozenset[int] = frozenset()
    parting: frozenset[int] = frozenset()
    any_data: bool = False


def slice_of(
    function: Function,
    graph: Graph | None = None,
    uses: Uses | None = None,
    *,
    global_memory: bool = False,
    words: bool = False,
    any_data: bool = False,
) -> Slice:
    """The slice of a function with its calls inlined (``inline.inlined``).

    ``global_memory``: with the addresses of all accesses to global memory, and what decides whether they run; not with
    the data. ``uses`` are those for it. ``words``: also with what CTAs say to each other by words of it.
    """
    if graph is None and uses is None and not (global_memory or words or any_data):
        return _plain_slice(function)
    graph, uses = graph or graph_of(function), uses or uses_of(function)
    return _slice(function, graph, uses, global_memory=global_memory, words=words, any_data=any_data)


@once_for_each
def _plain_slice(function: Function) -> Slice:
    return _slice(function, graph_of(function), uses_of(function), global_memory=False, words=False)


def _slice(
    function: Function, graph: Graph, uses: Uses, *, global_memory: bool, words: bool, any_data: bool = False
) -> Slice:
    made = _Slicer(function, graph, uses, words, any_data)
    unread = []
    for each in function.body:
        unknown = not is_known(each) or (each.opcode == "call" and callee(each) not in LIBRARY)
        if unknown:
            unread.append((each.line, each.mnemonic if each.opcode != "call" else f"call {callee(each)}".strip()))
        on_global = global_memory and may_touch_global(each)
        if is_synchronisation(each) or may_touch_shared(each) or unknown or on_global:
            made.keep(each)
        elif each.opcode in _STRUCTURE and each.guard is None:
            made.kept.add(each.position)
    if words:
        made.keep_words()
    made.keep_time_outs()
    made.keep_endless_loops()
    made.finish()
    kept, valued = frozenset(made.kept), frozenset(made.valued)
    wanted = wanted_by(function, made.uses, kept, valued)
    checked, parting = made.keep_meetings_of_lanes()
    kept, valued = frozenset(made.kept), frozenset(made.valued)
    opaque = {position: origin for position, origin in made.opaque.items() if position not in kept}
    accesses = frozenset(p for p in kept if global_memory and may_touch_global(function.body[p]))
    untracked = accesses - valued - made.remembered
    return Slice(kept, valued, opaque, tuple(unread), wanted, accesses, untracked, checked, parting, any_data)


@dataclass
class _Slicer:
    function: Function
    graph: Graph
    uses: Uses
    words: bool
    any_data: bool
    kept: set[int] = field(default_factory=set)
    valued: set[int] = field(default_factory=set)
    opaque: dict[int, int] = field(default_factory=dict)
    _needed: set[str] = field(default_factory=set)
    _waiting: list[str] = field(default_factory=list)
    _decided: set[int] = field(default_factory=set)
    remembered: set[int] = field(default_factory=set)  #: stores to memory of which a load matters
    _by_registers: bool = False  #: data that is loaded decides nothing more
    _memories: set[str] = field(default_factory=set)
    _controls: dict[int, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._deciders = control_dependence(self.graph)
        self._data = data_results(self.function, self.graph, self.uses, in_parts=self.words, of_loads=not self.any_data)
        self._places = ParameterPlaces(self.function, self.uses)
        self._stores: dict[str, list[int]] = {}
        for each in self.function.body:
            for memory in self._memories_of(each, stores=True):
                self._stores.setdefault(memory, []).append(each.position)

    def keep(self, instruction: Instruction) -> None:
        """It runs: what decides whether it does, and on which bytes and barriers it acts, matters."""
        position = instruction.position
        if position in self.kept:
            return
        self.kept.add(position)
        if instruction.guard is not None:
            self._need((instruction.guard.register,))
        self._need(self.uses.needs[position])
        self._decide(self.graph.block_of[position])

    def keep_words(self) -> None:
        """Atomics and loads that other threads' stores may change, and what is stored there.

        Of a memory that holds such a word all stores of one integer matter, with the number.
        """
        for each in self.function.body:
            if is_word(each) or is_word(each, shared=True):
                self.keep(each)
                self._need(self.uses.reads[each.position])
                for memory in self._memories_of(each, stores=each.opcode == "red"):
                    if memory.startswith("global") or (memory == "shared" and "shared" in each.spaces):
                        self._remember(memory)
                        self._need_stored(memory)

    def keep_time_outs(self) -> None:
        """Branches to a trap, and traps, by the answer of tries alone: on the other way it was yes."""
        body, blocks = self.function.body, self.graph.blocks
        for trap in (each for each in body if each.opcode == "trap"):
            deciders = self._deciders[self.graph.block_of[trap.position]]
            for each in (trap, *(body[blocks[n].end - 1] for n in deciders)):
                if each.guard is not None and self._is_answer(each.guard.register):
                    self.keep(each)

    def keep_endless_loops(self) -> None:
        """Loops that no branch leaves, and what decides whether a warp reaches one, where it stays."""
        for block in sorted(frozenset[int]().union(*self.graph.endless)):
            self.kept.add(self.graph.blocks[block].first)
            self._decide(block)

    def _is_answer(self, register: str) -> bool:
        """Whether a register holds what tries have answered, and numbers besides."""
        names, tries = [register], 0
        for name in names:
            for each in map(self.function.body.__getitem__, self.uses.writers.get(name, ())):
                if each.opcode == "mbarrier":
                    tries += 1
                elif each.opcode in PASS_ON:
                    names += [other for other in self.uses.reads[each.position] if other not in names]
                else:
                    return False
        return tries > 0

    def keep_meetings_of_lanes(self) -> tuple[frozenset[int], frozenset[int]]:
        """Keep what may part the lanes of a warp where some then wait for others: what is checked, and the branches.

        Lanes wait by an exchange of values for those that its mask names, and by ``.aligned`` for all. What parts them
        matters as far as registers and parameters show it.
        """
        body, masks = self.function.body, masks_of_all_lanes(self.function.body, self.uses.writes)
        meetings = [each for each in body if needs_others(each)]
        around = {each.position: self._around(each) for each in meetings}
        names = {name for each in meetings for name in around[each.position]}
        parting = divergent_registers(names, self.function, self.uses, self._around)
        self._by_registers, checked = True, set[int]()
        for each in meetings:
            some = each.opcode in EXCHANGES and not names_all_lanes(each.operands[-1], masks)
            if some or not parting.isdisjoint(around[each.position]):
                self._decide(self.graph.block_of[each.position])
                if some or each.guard is not None:
                    checked.add(each.position)
                    guard = () if each.guard is None else (each.guard.register,)
                    mask = each.operands[-1] if some else None
                    self._need((*guard, *((mask.name,) if isinstance(mask, Register) else ())))
        self.finish()
        last = (self.function.body[block.end - 1] for block in self.graph.blocks)
        branches = {each.position for each in last if not parting.isdisjoint(self._control_of(each))}
        return frozenset(checked), frozenset(branches)

    def _around(self, each: Instruction) -> frozenset[str]:
        """The registers that decide whether an instruction runs: of its guard and of branches, and of theirs."""
        block = self.graph.block_of[each.position]
        if block not in self._controls:
            found = reached(self._deciders[block], self._deciders.__getitem__)
            last = (self.function.body[self.graph.blocks[n].end - 1] for n in found)
            self._controls[block] = frozenset(name for one in last for name in self._control_of(one))
        return self._controls[block] | frozenset(() if each.guard is None else (each.guard.register,))

    def _control_of(self, branch: Instruction) -> Names:
        return (*self.uses.needs[branch.position], *(() if branch.guard is None else (branch.guard.register,)))

    def _need_stored(self, memory: str) -> None:
        for position in self._stores.get(memory, ()):
            if _INTEGERS.intersection(self.function.body[position].modifiers[-1:]):
                self._need(self.uses.reads[position])

    def finish(self) -> None:
        """Follow everything that is needed until nothing new is."""
        while self._waiting:
            for position in self.uses.writers.get(self._waiting.pop(), ()):
                self._value(self.function.body[position])

    def _value(self, instruction: Instruction) -> None:
        """Its result matters."""
        if instruction.position in self._data:
            self.opaque[instruction.position] = self._data[instruction.position]
            self.valued.add(instruction.position)
            return
        if instruction.position in self.valued:
            return
        if self._by_registers and instruction.opcode not in VALUES and "param" not in instruction.spaces:
            self.opaque[instruction.position] = instruction.position
            return
        self.keep(instruction)
        self.valued.add(instruction.position)
        self._need(self.uses.reads[instruction.position])
        for memory in self._memories_of(instruction, stores=False):
            self._remember(memory)

    def _remember(self, memory: str) -> None:
        """What was stored in a memory matters, since a load of it does."""
        if memory in self._memories:
            return
        self._memories.add(memory)
        for position in self._stores.get(memory, ()):
            instruction = self.function.body[position]
            self.keep(instruction)
            self.remembered.add(position)
            if not memory.startswith("global"):
                self.valued.add(position)
                self._need(self.uses.reads[position])

    def _memories_of(self, instruction: Instruction, *, stores: bool) -> list[str]:
        """As ``_memories``, and the global memory to which one parameter points: there only where stores go matters."""
        found = _memories(instruction, stores=stores)
        spaces = instruction.spaces
        if instruction.opcode in _GLOBAL[stores] and not spaces & {"shared", "local", "param", "const", "nc"}:
            at = 0 if instruction.opcode in ("st", "red") else 1
            found += [f"global {self._places.pointer(place)}" for place in instruction.operands[at : at + 1]]
        return found

    def _decide(self, block: int) -> None:
        """The branches that decide whether a block runs matter, and those that decide whether they run."""
        waiting = [block]
        while waiting:
            at = waiting.pop()
            if at in self._decided:
                continue
            self._decided.add(at)
            for decider in self._deciders[at]:
                branch = self.function.body[self.graph.blocks[decider].end - 1]
                self.kept.add(branch.position)
                self._need(self.uses.needs[branch.position])
                if branch.guard is not None:
                    self._need((branch.guard.register,))
                waiting.append(decider)

    def _need(self, registers: Names) -> None:
        for name in registers:
            if name not in self._needed:
                self._needed.add(name)
                self._waiting.append(name)


def is_word(each: Instruction, *, shared: bool = False) -> bool:
    """Whether it may be an access by which CTAs talk to each other; ``shared``: or the warps of one, by its memory."""
    if each.spaces & {"shared" if not shared else "global", "local", "param", "const"} or each.has("async"):
        return False
    if not _INTEGERS.intersection(each.modifiers[-1:]):
        return False
    return each.opcode in ("atom", "red") or (each.opcode == "ld" and each.has_any(*STRONG))


_INTEGERS = frozenset(f"{kind}{bits}" for kind in "bsu" for bits in (32, 64))
STRONG = ("volatile", "acquire", "relaxed", "mmio")  #: a load that another thread's store may change


def _memories(instruction: Instruction, *, stores: bool) -> list[str]:
    """The memories that a store or atomic changes, or a load reads: "shared", "local", or a call's argument.

    An access that names no space may be to shared or to local memory.
    """
    kinds = {"st", "red", "atom", "stmatrix"} if stores else {"ld", "ldu", "atom", "ldmatrix"}
    if instruction.opcode not in kinds:
        return []
    spaces = instruction.spaces & {"shared", "local", "global", "const"}
    if "param" in instruction.spaces:
        place = next(iter(instruction.operands[0 if stores else 1 :]), None)
        return [f"param {place.base.name}"] if isinstance(place, Address) and isinstance(place.base, Symbol) else []
    return sorted(spaces - {"global", "const"}) if spaces else ["local", "shared"]
