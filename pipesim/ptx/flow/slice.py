"""The instructions on which synchronisation depends, found backwards from everything that synchronises.

The roots are all operations on barriers, asynchronous copies, fences and whatever may touch shared memory: of these,
the addresses, counts, bytes and masks matter, not the data. From there it follows registers (any definition of the
register), shared, local and global memory where a value that is read matters, guards, and the branches that decide
whether a block runs. Floating point, the results of matrix products and loads of data fall away by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pipesim.ptx.flow.data import data_results
from pipesim.ptx.flow.dependence import control_dependence
from pipesim.ptx.flow.graph import Graph, graph_of
from pipesim.ptx.flow.inline import callee
from pipesim.ptx.flow.opcodes import LIBRARY, is_known, may_touch_shared, synchronises
from pipesim.ptx.flow.uses import Names, Uses, uses_of
from pipesim.ptx.flow.wanted import ParameterPlaces, Wanted, wanted_by
from pipesim.ptx.text.instruction import Address, Instruction, Symbol
from pipesim.ptx.text.module import Function

_STRUCTURE = frozenset({"exit", "ret", "bra"})  #: kept without a guard: they decide nothing and cost nothing
_GLOBAL = {True: frozenset({"st", "red", "atom"}), False: frozenset({"ld", "ldu", "atom"})}  #: what stores, what loads


@dataclass(frozen=True)
class Slice:
    """What of a function's body must be executed, by position.

    ``kept``: every instruction that matters; ``valued``: those of which a result matters (of an access that is kept
    and not among them, only the address does). ``opaque``: those that matter only because they write a register that
    matters, with a value that is data and therefore unknown; what they read does not matter. A branch that is not
    kept decides nothing here: continue where its ways meet. ``unread``: line and name of each instruction whose
    opcode is not known, and of calls of unknown functions. ``wanted``: what the launch must give.
    """

    kept: frozenset[int]
    valued: frozenset[int]
    opaque: frozenset[int]
    unread: tuple[tuple[int, str], ...]
    wanted: tuple[Wanted, ...]


def slice_of(function: Function, graph: Graph | None = None, uses: Uses | None = None) -> Slice:
    """The slice of a function with its calls inlined (``inline.inlined``)."""
    made = _Slicer(function, graph or graph_of(function), uses or uses_of(function))
    unread = []
    for each in function.body:
        unknown = not is_known(each) or (each.opcode == "call" and callee(each) not in LIBRARY)
        if unknown:
            unread.append((each.line, each.mnemonic if each.opcode != "call" else f"call {callee(each)}".strip()))
        if synchronises(each) or may_touch_shared(each) or unknown:
            made.keep(each)
        elif each.opcode in _STRUCTURE and each.guard is None:
            made.kept.add(each.position)
    made.finish()
    kept, valued = frozenset(made.kept), frozenset(made.valued)
    opaque = frozenset(made.opaque) - kept
    return Slice(kept, valued, opaque, tuple(unread), wanted_by(function, made.uses, kept, valued))


@dataclass
class _Slicer:
    function: Function
    graph: Graph
    uses: Uses
    kept: set[int] = field(default_factory=set)
    valued: set[int] = field(default_factory=set)
    opaque: set[int] = field(default_factory=set)
    _needed: set[str] = field(default_factory=set)
    _waiting: list[str] = field(default_factory=list)
    _decided: set[int] = field(default_factory=set)
    _memories: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._deciders = control_dependence(self.graph)
        self._data = data_results(self.function, self.uses)
        self._places = ParameterPlaces(self.function, self.uses)
        self._writers: dict[str, list[int]] = {}
        self._stores: dict[str, list[int]] = {}
        for each in self.function.body:
            for name in self.uses.writes[each.position]:
                self._writers.setdefault(name, []).append(each.position)
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

    def finish(self) -> None:
        """Follow everything that is needed until nothing new is."""
        while self._waiting:
            for position in self._writers.get(self._waiting.pop(), ()):
                self._value(self.function.body[position])

    def _value(self, instruction: Instruction) -> None:
        """Its result matters."""
        if instruction.position in self._data:
            self.opaque.add(instruction.position)
            return
        if instruction.position in self.valued:
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
            if not memory.startswith("global"):
                self.valued.add(position)
                self._need(self.uses.reads[position])

    def _memories_of(self, instruction: Instruction, *, stores: bool) -> list[str]:
        """As ``_memories``, and the global memory to which one parameter points: there only where stores go matters."""
        found = _memories(instruction, stores=stores)
        spaces = {name.partition("::")[0] for name in instruction.modifiers}
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


def _memories(instruction: Instruction, *, stores: bool) -> list[str]:
    """The memories that a store or atomic changes, or a load reads: "shared", "local", or a call's argument.

    An access that names no space may be to shared or to local memory.
    """
    kinds = {"st", "red", "atom", "stmatrix"} if stores else {"ld", "ldu", "atom", "ldmatrix"}
    if instruction.opcode not in kinds:
        return []
    spaces = {name.partition("::")[0] for name in instruction.modifiers} & {"shared", "local", "global", "const"}
    if "param" in {name.partition("::")[0] for name in instruction.modifiers}:
        place = next(iter(instruction.operands[0 if stores else 1 :]), None)
        return [f"param {place.base.name}"] if isinstance(place, Address) and isinstance(place.base, Symbol) else []
    return sorted(spaces - {"global", "const"}) if spaces else ["local", "shared"]
