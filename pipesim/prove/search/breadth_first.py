"""Every schedule, one by one: breadth first over the states of the machine, so that what is found is found shortest.

A state is explored once, whatever led to it. A fault ends its branch. With ``reduced`` only some of what can happen
next is followed (``persistent``); that finds the same faults, the same deadlocks and the same final states, each
perhaps by a longer schedule.

Whether all schedules that end well end the same way: what reads have seen, and what memory holds at the end.

A program in which this differs although nothing raced is steered by chance: by a try, or by who came first to what they
exclude each other from. A try that only spares a wait changes neither. Where the certificate holds, one run represents
every schedule and there is nothing to ask.
"""

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from operator import itemgetter
from typing import Generic, TypeVar

from pipesim.explain.blocked_agents import explain
from pipesim.model.ending import Ending
from pipesim.model.finding import Fault, FaultKind, Verdict
from pipesim.model.groups import READS_MEMORY, WRITES_MEMORY
from pipesim.model.machine import finished
from pipesim.model.moves import Kind, Move, make
from pipesim.model.ops import operand
from pipesim.model.program import Program
from pipesim.prove.memory_order.order import MemoryOrder
from pipesim.prove.refutation import Refutation, Schedule
from pipesim.prove.search.parts import Row
from pipesim.prove.search.persistent import Enabled, Persistent
from pipesim.prove.search.successors import Process, Successor, Successors

_Node = TypeVar("_Node")
_Seen = tuple[tuple[int, int, tuple[int, ...]], ...]
_OutcomeNode = tuple[Row, _Seen]  #: a state, and what the reads that name no item have seen, agent by agent
_Result = tuple[tuple[int, ...], _Seen]


class _States(Generic[_Node]):
    """The states that a search has met, each with the one before it and the move; those that it has still to look at.

    ``row``: of a state as the search distinguishes it.
    """

    def __init__(
        self, program: Program, row: Callable[[_Node], Row], *, reduced: bool = True, forget: bool = False
    ) -> None:
        self.next = Successors(program, forget=forget)
        self._persistent = Persistent(program, self.next) if reduced else None
        self._row = row
        self.came: dict[_Node, tuple[_Node, Process, Successor] | None] = {}
        self.queue: deque[_Node] = deque()

    def meet(self, node: _Node, came: tuple[_Node, Process, Successor] | None) -> None:
        """A state for the first time."""
        self.came[node] = came
        self.queue.append(node)

    def possible(self, row: Row) -> Enabled:
        """What is to be followed."""
        ask = self.next.outcomes
        found = [(process, outcomes) for process in self.next.processes(row) if (outcomes := ask(process, row))]
        return found if self._persistent is None or len(found) <= 1 else self._persistent.choose(row, found)

    def path_to(self, node: _Node, *last: Move) -> Schedule:
        """The moves from the start to a state, and what follows."""
        path: list[Move] = []
        came = self.came[node]
        while came is not None:
            node, process, outcome = came
            path.append(self.next.move(self._row(node), outcome, process))
            came = self.came[node]
        return (*reversed(path), *last)


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
        self._states = _States[_OutcomeNode](program, itemgetter(0), forget=True)
        self._states.meet((self._states.next.start, ()), None)
        self._ends: dict[_Result, _OutcomeNode] = {}
        parts = self._states.next.parts
        self._reads = {
            (agent, pc): tuple(parts.cells[cell] for cell in range(*program.cells[_access(op)]))
            for agent, code in enumerate(program.code)
            for pc, op in enumerate(code)
            if op[0] in READS_MEMORY and operand(op, "item") < 0
        }

    def run(self) -> Outcomes:
        """Breadth first, to the second end or to the first fault."""
        came, queue = self._states.came, self._states.queue
        while queue:
            if len(came) > self._limit or not self._expand(queue.popleft()):
                return Outcomes(complete=False, states=len(came), different=None)
        found = sorted(self._ends.items(), key=lambda end: len(self._states.path_to(end[1])))
        different = self._difference(found[0], found[1]) if len(found) > 1 else None
        return Outcomes(complete=True, states=len(came), different=different)

    def _expand(self, node: _OutcomeNode) -> bool:
        """Follow what can happen next; False if that is a fault."""
        row, seen = node
        followed = self._states.possible(row)
        for process, found in followed:
            for outcome in found:
                if outcome.faults:
                    return False
                after = (outcome.next_row(row), self._look(row, process, outcome, seen))
                if after not in self._states.came:
                    self._states.meet(after, (node, process, outcome))
        return bool(followed) or self._end(node)

    def _look(self, row: Row, process: Process, outcome: Successor, seen: _Seen) -> _Seen:
        """What reads have seen after a move."""
        if process.flight is not None or outcome.move.kind != Kind.STEP:
            return seen
        at = (process.agent, self._states.next.parts.value(row, process.part).pc)
        if at not in self._reads:
            return seen
        items = tuple(self._states.next.parts.value(row, part) for part in self._reads[at])
        return tuple(sorted((*seen, (*at, items))))

    def _end(self, node: _OutcomeNode) -> bool:
        state = self._states.next.parts.state(node[0])
        if not all(finished(self._program, state, agent) for agent in range(len(self._program.agents))):
            return False
        self._ends.setdefault((state.cells, node[1]), node)
        return True

    def _difference(self, one: tuple[_Result, _OutcomeNode], other: tuple[_Result, _OutcomeNode]) -> TwoOutcomes:
        (cells, seen), (other_cells, other_seen) = one[0], other[0]
        schedules = self._states.path_to(one[1]), self._states.path_to(other[1])
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


@dataclass(frozen=True)
class Exploration:
    """What a search saw. ``complete``: it saw every schedule.

    ``wrong`` names what the refutations show: kind, agent and operation of a fault, or where every agent is in a
    deadlock. ``outcomes``: final states of runs that finished, apart from registers and
    generations of the cluster barrier, which no agent reads any more.
    """

    verdict: Verdict
    states: int
    steps: int
    complete: bool
    refutations: tuple[Refutation, ...]
    outcomes: int
    wrong: frozenset[tuple[FaultKind | Ending, tuple[int, ...]]]

    @property
    def kinds(self) -> frozenset[FaultKind | Ending]:
        """Every kind of what is wrong."""
        return frozenset(r.kind for r in self.refutations)


def explore(program: Program, max_states: int = 1_000_000, *, reduced: bool = True) -> Exploration:
    """Explore every schedule of ``program``, up to this many states.

    Both ways find every fault (its kind at its operation), every deadlock (who waits where) and every outcome, if
    ``complete``. The plain search gives a shortest schedule of each.
    """
    return _Search(program, max_states, reduced=reduced).run()


class _Search:
    """The mutable side of one search."""

    def __init__(self, program: Program, max_states: int, *, reduced: bool) -> None:
        self._program = program
        self._most = max_states
        self._states = _States[Row](program, lambda row: row, reduced=reduced, forget=reduced)
        self._states.meet(self._states.next.start, None)
        self._found: dict[tuple[FaultKind | Ending, tuple[int, ...]], Refutation] = {}
        self._ends: set[object] = set()
        self._steps = 0

    def run(self) -> Exploration:
        came, queue = self._states.came, self._states.queue
        while queue and len(came) <= self._most:
            self._expand(queue.popleft())
        found, complete = tuple(self._found.values()), not queue
        verdict = Verdict.REFUTED if found else Verdict.PROVED if complete else Verdict.UNKNOWN
        return Exploration(verdict, len(came), self._steps, complete, found, len(self._ends), frozenset(self._found))

    def _expand(self, row: Row) -> None:
        came, followed = self._states.came, self._states.possible(row)
        for process, outcomes in followed:
            for outcome in outcomes:
                self._steps += 1
                if outcome.faults:
                    self._fault(row, process, outcome)
                    continue
                after = outcome.next_row(row)
                if after not in came:
                    self._states.meet(after, (row, process, outcome))
        if not followed:
            self._end(row)

    def _end(self, row: Row) -> None:
        state = self._states.next.parts.state(row)
        if all(finished(self._program, state, agent) for agent in range(len(self._program.agents))):
            self._ends.add(state._replace(registers=(), cluster=(0, 0), cluster_held=()))
            return
        key = Ending.DEADLOCK, state.pcs
        if key not in self._found:
            stuck = explain(self._program, state)
            if stuck is not None:  # else an agent continues that was not read any further
                self._found[key] = Refutation(Ending.DEADLOCK, self._states.path_to(row), deadlock=stuck)

    def _fault(self, row: Row, process: Process, outcome: Successor) -> None:
        for fault in outcome.faults:
            key = fault.kind, (fault.agent, fault.pc)
            if key not in self._found:
                last = self._states.next.move(row, outcome, process)
                self._found[key] = Refutation(Ending.FAULT, self._states.path_to(row, last), fault)


MOST_STATES = 20_000  #: each has clocks of its own, and takes some hundred times as long as one of the plain search

# Memory order in every schedule of a program that no single run represents.
#
# Where the certificate does not hold, who completes a phase may depend on the schedule, and with it which release or
# which fence comes before a read. So the search goes through all schedules once more, each state together with what
# the observer of memory order knows there: two ways to one state are one only if the observer cannot tell them apart.
# The moves that are followed are those of the reduced search. It leaves out schedules that differ from one that it
# follows in the order of moves which do not notice each other; the clocks of such two schedules are the same.


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
    states, first = _States[tuple[Row, Hashable]](program, itemgetter(0)), MemoryOrder(program)
    following, came = states.next, states.came
    states.meet((following.start, first.state_key()), None)
    orders = {states.queue[0]: first}  # of the states that are still to be looked at
    while states.queue:
        if len(came) > max_states:
            return MemorySearch(complete=False, states=len(came), refutations=())
        node = states.queue.popleft()
        row, order = node[0], orders.pop(node)
        for process, found in states.possible(row):
            for outcome in found:
                move = following.move(row, outcome, process)
                after = _observer_after(program, following, row, order, move)
                if after.unordered:  # by something that orders agents and no memory
                    return MemorySearch(complete=False, states=len(came), refutations=())
                for fault in after.faults:
                    shown = Refutation(Ending.FAULT, states.path_to(node, move), fault)
                    return MemorySearch(complete=True, states=len(came), refutations=(shown,))
                reached = outcome.next_row(row), after.state_key()
                if reached not in came:
                    states.meet(reached, (node, process, outcome))
                    orders[reached] = after
    return MemorySearch(complete=True, states=len(came), refutations=())


def _observer_after(program: Program, following: Successors, row: Row, order: MemoryOrder, move: Move) -> MemoryOrder:
    """What the observer knows after a move in the state of ``row``."""
    if move.kind == Kind.OPEN:
        return order
    before = following.parts.state(row)
    after = order.fork()
    result = make(program, before, move)
    if move.kind == Kind.LAND:
        after.on_landing(before.flights[move.who], move.nbytes, result)
    else:
        after.on_step(before, move.who, result)
    return after
