"""Memory order in every schedule of a program that no single run represents.

Where the certificate does not hold, who completes a phase may depend on the schedule, and with it which release or
which fence comes before a read. So the search goes through all schedules once more, each state together with what the
observer of memory order knows there: two ways to one state are one only if the observer cannot tell them apart. The
moves that are followed are those of the reduced search. It leaves out schedules that differ from one that it follows in
the order of moves which do not notice each other; the clocks of such two schedules are the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

from pipesim.model.ending import Ending
from pipesim.model.finding import Fault
from pipesim.model.moves import Kind, Move, make
from pipesim.model.program import Program
from pipesim.prove.memory_order.order import MemoryOrder
from pipesim.prove.refutation import Refutation, Schedule
from pipesim.prove.search.parts import Row
from pipesim.prove.search.persistent import Enabled, Persistent
from pipesim.prove.search.successors import Successors

MOST_STATES = 20_000  #: each has clocks of its own, and takes some hundred times as long as one of the plain search

_Node = tuple[Row, Hashable]


@dataclass(frozen=True)
class MemorySearch:
    """What every schedule shows of the memory order. ``complete``: all were followed, or one was found that fails."""

    complete: bool
    states: int
    refutations: tuple[Refutation, ...]


def search_memory_order(program: Program, max_states: int = MOST_STATES) -> MemorySearch:
    """Follow every schedule of a program in which nothing else fails, up to this many states, to the first fault.

    Not complete either where two accesses are ordered in every schedule by something that orders no memory: the end of
    an agent, a request for registers, a count that was read.
    """
    following = Successors(program)
    persistent = Persistent(program, following)
    first = MemoryOrder(program)
    start: _Node = (following.start, first.standing())
    came: dict[_Node, tuple[_Node, Move] | None] = {start: None}
    queue = deque([(start, first)])
    while queue:
        if len(came) > max_states:
            return MemorySearch(complete=False, states=len(came), refutations=())
        node, order = queue.popleft()
        row = node[0]
        enabled: Enabled = [(p, found) for p in following.processes(row) if (found := following.outcomes(p, row))]
        for process, found in persistent.choose(row, enabled) if enabled else ():
            for outcome in found:
                move = following.move(row, outcome, process)
                after = _after(program, following, row, order, move)
                if after.unordered:  # by something that orders agents and no memory
                    return MemorySearch(complete=False, states=len(came), refutations=())
                fault = next(iter(after.faults), None)
                if fault is not None:
                    return MemorySearch(complete=True, states=len(came), refutations=(_shown(came, node, move, fault),))
                reached: _Node = (outcome.after(row), after.standing())
                if reached not in came:
                    came[reached] = (node, move)
                    queue.append((reached, after))
    return MemorySearch(complete=True, states=len(came), refutations=())


def _after(program: Program, following: Successors, row: Row, order: MemoryOrder, move: Move) -> MemoryOrder:
    """What the observer knows after a move in the state of ``row``."""
    if move.kind == Kind.OPEN:
        return order
    before = following.parts.state(row)
    after = order.fork()
    result = make(program, before, move)
    if move.kind == Kind.LAND:
        after.landed(before.flights[move.who], move.nbytes, result)
    else:
        after.stepped(before, move.who, result)
    return after


def _shown(came: dict[_Node, tuple[_Node, Move] | None], node: _Node, last: Move, fault: Fault) -> Refutation:
    path: list[Move] = [last]
    step = came[node]
    while step is not None:
        node, move = step
        path.append(move)
        step = came[node]
    schedule: Schedule = tuple(reversed(path))
    return Refutation(Ending.FAULT, schedule, fault)
