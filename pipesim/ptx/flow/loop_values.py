"""Where the stage and the parity of a wait are computed: the instructions that restart or change them in its loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pipesim.ptx.flow.graph import Graph, Loop, graph_of
from pipesim.ptx.flow.uses import Uses, uses_of
from pipesim.ptx.text.instruction import Register
from pipesim.ptx.text.module import Function

_COPIES = frozenset({"mov", "cvt"})
_DECIDES = frozenset({"setp"})  #: its result decides when a value changes, and is none of its values
_FROM_MEMORY = frozenset({"ld", "ldu", "atom"})

Writers = Mapping[str, tuple[int, ...]]


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
        self._writers = self._writers_in(self._loops[-1:])
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

    def _writers_in(self, loops: Iterable[Loop]) -> Writers:
        found: dict[str, tuple[int, ...]] = {}
        for loop in loops:
            for block in sorted(loop.blocks):
                for position in range(self._graph.blocks[block].first, self._graph.blocks[block].end):
                    if self._function.body[position].opcode not in _DECIDES:
                        for name in self._uses.writes[position]:
                            found[name] = (*found.get(name, ()), position)
        return found

    def _sources(self, names: Iterable[str]) -> frozenset[str]:
        """These registers, as far as the loops write them, and all from which those are computed there."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found and name in self._writers:
                found.add(name)
                waiting += self._read_by(name)
        return frozenset(found)

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
