"""Whether all schedules that end well end the same way: what reads have seen, and what memory holds at the end.

A program in which this differs although nothing raced is steered by chance: by a try, or by who came first to what they
exclude each other from. A try that only spares a wait changes neither. Where the certificate holds, one run represents
every schedule and there is nothing to ask.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from pipesim.model.ending import Ending
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import READS_MEMORY, WRITES_MEMORY
from pipesim.model.machine import finished
from pipesim.model.moves import Kind, Move
from pipesim.model.ops import operand
from pipesim.model.program import Program
from pipesim.prove.refutation import Refutation, Schedule
from pipesim.prove.search.parts import Row
from pipesim.prove.search.persistent import Enabled, Persistent
from pipesim.prove.search.successors import Process, Successor, Successors

_Seen = tuple[tuple[int, int, tuple[int, ...]], ...]
_Node = tuple[Row, _Seen]  #: a state, and what the reads that name no item have seen, agent by agent
_Result = tuple[tuple[int, ...], _Seen]


@dataclass(frozen=True)
class TwoOutcomes:
    """Two schedules that end with different results: ``one`` and ``other``, and the two items.

    It is a read at (``agent``, ``pc``) that sees them, or if ``agent`` is -1 the access ``access`` that holds them at
    the end. An item is one cell of the access; -1 is nothing written.
    """

    one: Schedule
    other: Schedule
    items: tuple[int, int]
    agent: int = -1
    pc: int = -1
    access: int = -1


@dataclass(frozen=True)
class Outcomes:
    """What is known about the ends of a program.

    ``complete``: every schedule was followed, to an end without a fault or a deadlock. ``different``: a shortest pair
    found of two that differ, None if there is none or if something fails, which is reported instead.
    """

    complete: bool
    states: int
    different: TwoOutcomes | None


def of_two(program: Program, found: TwoOutcomes) -> tuple[Refutation, Refutation]:
    """The two schedules, each with the fault that they make together: at the read, or at an access to what is left."""
    who = (found.agent, found.pc) if found.agent >= 0 else _first_writer(program, found.access)
    one, other = found.items
    return (
        Refutation(Ending.FAULT, found.one, Fault(FaultKind.TWO_OUTCOMES, *who, found=one, expected=other)),
        Refutation(Ending.FAULT, found.other, Fault(FaultKind.TWO_OUTCOMES, *who, found=other, expected=one)),
    )


def outcomes(program: Program, limit: int) -> Outcomes:
    """Follow the schedules of ``program``, up to ``limit`` states, until two end differently."""
    return _Ends(program, limit).run()


class _Ends:
    """The mutable side of one search for two ends."""

    def __init__(self, program: Program, limit: int) -> None:
        self._program = program
        self._limit = limit
        self._next = Successors(program, forget=True)
        self._persistent = Persistent(program, self._next)
        start: _Node = (self._next.start, ())
        self._came: dict[_Node, tuple[_Node, Process, Successor] | None] = {start: None}
        self._queue = deque([start])
        self._ends: dict[_Result, _Node] = {}
        parts = self._next.parts
        self._reads = {
            (agent, pc): tuple(parts.cells[cell] for cell in range(*program.cells[_access(op)]))
            for agent, code in enumerate(program.code)
            for pc, op in enumerate(code)
            if op[0] in READS_MEMORY and operand(op, "item") < 0
        }

    def run(self) -> Outcomes:
        """Breadth first, to the second end or to the first fault."""
        while self._queue:
            if len(self._came) > self._limit:
                return Outcomes(complete=False, states=len(self._came), different=None)
            if not self._expand(self._queue.popleft()):
                return Outcomes(complete=False, states=len(self._came), different=None)
        found = sorted(self._ends.items(), key=lambda end: len(self._path_to(end[1])))
        different = self._difference(found[0], found[1]) if len(found) > 1 else None
        return Outcomes(complete=True, states=len(self._came), different=different)

    def _expand(self, node: _Node) -> bool:
        """Follow what can happen next; False if that is a fault."""
        row, seen = node
        enabled: Enabled = [
            (process, found) for process in self._next.processes(row) if (found := self._next.outcomes(process, row))
        ]
        if not enabled:
            return self._end(node)
        for process, found in self._persistent.choose(row, enabled):
            for outcome in found:
                if outcome.faults:
                    return False
                after = (outcome.next_row(row), self._look(row, process, outcome, seen))
                if after not in self._came:
                    self._came[after] = (node, process, outcome)
                    self._queue.append(after)
        return True

    def _look(self, row: Row, process: Process, outcome: Successor, seen: _Seen) -> _Seen:
        """What reads have seen after a move."""
        if process.flight is not None or outcome.move.kind != Kind.STEP:
            return seen
        at = (process.agent, self._next.parts.value(row, process.part).pc)
        if at not in self._reads:
            return seen
        items = tuple(self._next.parts.value(row, part) for part in self._reads[at])
        return tuple(sorted((*seen, (*at, items))))

    def _end(self, node: _Node) -> bool:
        state = self._next.parts.state(node[0])
        if not all(finished(self._program, state, agent) for agent in range(len(self._program.agents))):
            return False
        self._ends.setdefault((state.cells, node[1]), node)
        return True

    def _difference(self, one: tuple[_Result, _Node], other: tuple[_Result, _Node]) -> TwoOutcomes:
        (cells, seen), (other_cells, other_seen) = one[0], other[0]
        schedules = self._path_to(one[1]), self._path_to(other[1])
        for agent, pc, items in seen:
            for theirs in (items_ for *at, items_ in other_seen if at == [agent, pc] and items_ != items):
                pair = next((a, b) for a, b in zip(items, theirs, strict=True) if a != b)
                return TwoOutcomes(*schedules, pair, agent, pc, _access(self._program.code[agent][pc]))
        for cell, pair in enumerate(zip(cells, other_cells, strict=True)):
            if pair[0] != pair[1]:
                spans = enumerate(self._program.cells)
                return TwoOutcomes(*schedules, pair, access=next(n for n, (a, b) in spans if a <= cell < b))
        agent, pc, items = min(set(seen) ^ set(other_seen))  # one of the two was steered round this read
        pair = (items[0], -1) if (agent, pc, items) in seen else (-1, items[0])
        return TwoOutcomes(*schedules, pair, agent, pc, _access(self._program.code[agent][pc]))

    def _path_to(self, node: _Node) -> Schedule:
        path: list[Move] = []
        came = self._came[node]
        while came is not None:
            node, process, outcome = came
            path.append(self._next.move(node[0], outcome, process))
            came = self._came[node]
        return tuple(reversed(path))


def _first_writer(program: Program, access: int) -> tuple[int, int]:
    """The first operation that writes to the bytes of an access, as (agent, pc)."""
    first, end = program.cells[access]
    return next(
        (agent, pc)
        for agent, code in enumerate(program.code)
        for pc, op in enumerate(code)
        if op[0] in WRITES_MEMORY and (cells := program.cells[operand(op, "access")])[0] < end and first < cells[1]
    )


def _access(op: tuple[int, ...]) -> int:
    return operand(op, "access")
