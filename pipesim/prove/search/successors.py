"""What every process can do next, each answer of the machine asked for once.

A process is an agent, or a transfer under way. What it can do depends on few parts of a state (``footprint``), so the
answer to the same question in another state is remembered: which parts change, and to what.
"""

from collections.abc import Callable, Hashable
from operator import itemgetter
from typing import NamedTuple

from pipesim.model.finding import Fault
from pipesim.model.machine import Flight, State, Step, initial_state
from pipesim.model.moves import Move, canonical, of_agent, of_flight
from pipesim.model.program import Program
from pipesim.model.state import OWN
from pipesim.prove.search.footprint import Footprints, Touch
from pipesim.prove.search.parts import Local, Parts, Row


class Successor(NamedTuple):
    """A move, the parts that it changes with their new numbers, and what it does wrong.

    The place of a landing counts within the transfers of its agent and engine; :meth:`Successors.move` corrects that.
    """

    changes: tuple[tuple[int, int], ...]
    faults: tuple[Fault, ...]
    move: Move

    def next_row(self, row: Row) -> Row:
        """The row after the move."""
        changed = list(row)
        for part, number in self.changes:
            changed[part] = number
        return tuple(changed)


class Process(NamedTuple):
    """An agent at one of its operations, or a transfer under way (``flight``, at ``place`` in ``part``).

    ``key`` picks from a row all that its outcomes depend on; ``known`` holds those met so far.
    """

    part: int
    place: int
    agent: int
    flight: Flight | None
    touch: Touch
    key: Callable[[Row], Hashable]
    known: dict[Hashable, tuple[Successor, ...]]
    looked: tuple[int, ...]


class Successors:
    """Rows, and what follows them."""

    def __init__(self, program: Program, *, forget: bool = False) -> None:
        self._program = program
        self.parts = Parts(program, forget=forget)
        self.footprints = Footprints(program, self.parts)
        self.start = self.parts.row(canonical(initial_state(program)))
        flying = [part for (_, engine), part in self.parts.flights.items() if engine != OWN]
        self._processes: dict[int, list[tuple[Process, ...] | None]] = {p: [] for p in [*self.parts.local, *flying]}
        self._ever = tuple(self._processes.items())
        self._state: tuple[Row, State] = (self.start, self.parts.state(self.start))

    def processes(self, row: Row) -> list[Process]:
        """Every process that has not ended, agents first."""
        found: list[Process] = []
        for part, known in self._ever:
            number = row[part]
            here = known[number] if number < len(known) else None
            found += self._enter(part, number) if here is None else here
        return found

    def outcomes(self, process: Process, row: Row) -> tuple[Successor, ...]:
        """Everything that the process can do next."""
        key = process.key(row)
        found = process.known.get(key)
        if found is None:
            found = process.known[key] = self._ask(process, row)
        return found

    def move(self, row: Row, outcome: Successor, process: Process) -> Move:
        """The move of an outcome in the state of ``row``."""
        if process.flight is None:
            return outcome.move
        return outcome.move._replace(who=self._place(row, process))

    def _enter(self, part: int, number: int) -> tuple[Process, ...]:
        """The processes in a value of a part that has not been met."""
        value = self.parts.values[part][number]
        found: tuple[Process, ...] = ()
        if isinstance(value, Local):
            agent = self.parts.local.index(part)
            ended = value.pc >= len(self._program.code[agent])
            if not ended:
                found = (_process(part, 0, agent, None, self.footprints.of_agent(agent, value)),)
        else:
            found = tuple(_process(part, n, f.agent, f, self.footprints.of_flight(f)) for n, f in enumerate(value))
        known = self._processes[part]
        known += [None] * (number + 1 - len(known))
        known[number] = found
        return found

    def _ask(self, process: Process, row: Row) -> tuple[Successor, ...]:
        state = self._decode(row)
        if process.flight is None:
            results = of_agent(self._program, state, process.agent)
        else:
            results = of_flight(self._program, state, self._place(row, process))
        return tuple(Successor(self._changes(process, row, step), step.faults, move) for move, step in results)

    def _changes(self, process: Process, row: Row, step: Step) -> tuple[tuple[int, int], ...]:
        numbers = ((part, self.parts.number(part, step.state)) for part in process.looked)
        return tuple((part, number) for part, number in numbers if number != row[part])

    def _place(self, row: Row, process: Process) -> int:
        """The index of the process's flight among all in the canonical state."""
        before = (part for part in self.parts.flights.values() if part < process.part)
        return sum(len(self.parts.value(row, part)) for part in before) + process.place

    def _decode(self, row: Row) -> State:
        if self._state[0] is not row:
            self._state = (row, self.parts.state(row))
        return self._state[1]


def _process(part: int, place: int, agent: int, flight: Flight | None, touch: Touch) -> Process:
    mask = touch.reads | touch.writes | touch.adds | touch.looks
    looked = tuple(p for p in range(mask.bit_length()) if mask >> p & 1)
    key: Callable[[Row], Hashable] = itemgetter(*looked) if looked else lambda _: None
    return Process(part, place, agent, flight, touch, key, {}, tuple(sorted({part, *looked})))
