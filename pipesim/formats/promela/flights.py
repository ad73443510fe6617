"""What can be under way, as a table: every transfer, deferred arrival and open access of a program has a place in it.

The machine keeps a tuple of flights. Promela has no such thing, but a flat program runs no operation twice, so a place
for each operation is enough. Operations that are never under way together share one: an agent's own accesses to the
same bytes, and copies of one agent to the same bytes, because the second would be a race with the first.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from pipesim.model.ops import IN_ORDER, Engine, Op, Operation, Space, operand, operands
from pipesim.model.program import Program
from pipesim.model.state import OWN, TMA


class ModelledFlight(NamedTuple):
    """What an operation puts under way. The fields are those of the machine's flight, where it has them."""

    agent: int
    pc: int
    engine: int
    barrier: int
    nbytes: int
    arrivals: int  #: 0 of a transfer; a commit arrives at the barrier with as many
    first: int
    end: int
    writes: bool
    item: int
    ctas: tuple[int, ...]  #: CTAs whose exit, before it has landed, is a fault
    alike: tuple[int, ...] = ()  #: the same of threads' writes that do not conflict with each other

    @property
    def place(self) -> tuple[object, ...]:
        """Flights of the same place share a variable."""
        if self.engine == OWN:
            return OWN, self.agent, self.first, self.end, self.writes, self.alike
        if self.engine == TMA:
            return TMA, self.agent, self.barrier, self.first, self.end, self.ctas
        return self.engine, self.agent, self.pc, self.barrier


@dataclass(frozen=True)
class Flights:
    """All flights of a program, by operation, and the places they take."""

    program: Program

    def flights_of(self, agent: int, pc: int) -> tuple[ModelledFlight, ...]:
        """What this operation puts under way, in the order of issue."""
        return self._by_operation.get((agent, pc), ())

    @cached_property
    def by_place(self) -> dict[tuple[object, ...], list[ModelledFlight]]:
        """For each place the flights that share it."""
        found: dict[tuple[object, ...], list[ModelledFlight]] = {}
        for flights in self._by_operation.values():
            for flight in flights:
                found.setdefault(flight.place, []).append(flight)
        return found

    @property
    def places(self) -> Collection[list[ModelledFlight]]:
        """The flights of each place, in the order of the table."""
        return self.by_place.values()

    def name(self, flight: ModelledFlight) -> str:
        """The variable that is not 0 while it is under way."""
        return self._names[flight.place]

    def conflicts_of(self, flight: ModelledFlight) -> list[ModelledFlight]:
        """One flight of each place that may not be open when this one opens."""
        rivals = []
        for sharing in self.places:
            other = sharing[0]
            if not (other.first < flight.end and flight.first < other.end and (flight.writes or other.writes)):
                continue
            if other.engine == OWN and other.agent == flight.agent:
                continue  # an agent that opens something has no access of its own open
            if flight.alike and flight.alike == other.alike:
                continue
            if not _ordered(other, flight):
                rivals.append(other)
        return rivals

    def of_engine(self, agent: int, engine: int) -> list[ModelledFlight]:
        """Everything of one agent on one engine, in the order of issue."""
        return self._by_engine.get((agent, engine), [])

    @cached_property
    def _by_engine(self) -> dict[tuple[int, int], list[ModelledFlight]]:
        found: dict[tuple[int, int], list[ModelledFlight]] = {}
        for flights in self._by_operation.values():
            for flight in flights:
                found.setdefault((flight.agent, flight.engine), []).append(flight)
        return found

    @cached_property
    def _by_operation(self) -> dict[tuple[int, int], tuple[ModelledFlight, ...]]:
        found = {}
        for agent, code in enumerate(self.program.code):
            for pc, operation in enumerate(code):
                flights = tuple(_flights(self.program, agent, pc, operation))
                if flights:
                    found[agent, pc] = flights
        return found

    @cached_property
    def _names(self) -> dict[tuple[object, ...], str]:
        """Copies count bytes, the rest only whether it is under way: two arrays, so that the second is small."""
        names = {}
        copies = others = 0
        for sharing in self.places:
            if sharing[0].engine == TMA:
                names[sharing[0].place], copies = f"left[{copies}]", copies + 1
            else:
                names[sharing[0].place], others = f"flying[{others}]", others + 1
        return names


def _ordered(other: ModelledFlight, flight: ModelledFlight) -> bool:
    """True if an engine that works in order carries out ``other`` first, so that there is no conflict."""
    if flight.engine not in IN_ORDER or (other.agent, other.engine) != (flight.agent, flight.engine):
        return False
    return not (flight.writes and other.writes) or (other.first, other.end) == (flight.first, flight.end)


def _flights(program: Program, agent: int, pc: int, operation: Operation) -> Iterator[ModelledFlight]:
    match operation[0]:
        case Op.READ | Op.WRITE as op:
            access, item = operands(operation, "access", "item")
            cells, alike = program.cells[access], program.alike(operation)
            yield ModelledFlight(agent, pc, OWN, -1, 0, 0, *cells, op == Op.WRITE, item, (), alike)
        case Op.TMA_LOAD:
            nbytes, item = operands(operation, "bytes", "item")
            for barrier, there in program.landings(operation):
                ctas = tuple(
                    dict.fromkeys((*barrier_away(program, agent, barrier), *memory_away(program, agent, there)))
                )
                yield ModelledFlight(agent, pc, TMA, barrier, nbytes, 0, *program.cells[there], True, item, ctas)
        case Op.TRANSFER_READ | Op.TRANSFER_WRITE as op:
            engine, access, nbytes, item = operands(operation, "engine", "access", "bytes", "item")
            ctas = memory_away(program, agent, access)
            cells = program.cells[access]
            yield ModelledFlight(agent, pc, engine, -1, nbytes, 0, *cells, op == Op.TRANSFER_WRITE, item, ctas)
        case Op.COMMIT:
            engine, bar = operands(operation, "engine", "barrier")
            if bar >= 0:
                yield _arrival(program, agent, pc, engine, bar, 1)
        case Op.COMMIT_MULTICAST:
            for bar in program.commit_barriers(operation):
                yield _arrival(program, agent, pc, operand(operation, "engine"), bar, 1)
        case Op.CP_ASYNC_ARRIVE:
            bar, lanes = operands(operation, "barrier", "lanes")
            yield _arrival(program, agent, pc, Engine.CP_ASYNC, bar, lanes)
        case _:
            pass


def _arrival(program: Program, agent: int, pc: int, engine: int, bar: int, arrivals: int) -> ModelledFlight:
    return ModelledFlight(agent, pc, engine, bar, 0, arrivals, 0, 0, False, 0, barrier_away(program, agent, bar))


def barrier_away(program: Program, agent: int, bar: int) -> tuple[int, ...]:
    """The CTA of the barrier, if it is another than the agent's."""
    cta = program.barriers[bar].cta
    return (cta,) if cta != program.agents[agent].cta else ()


def memory_away(program: Program, agent: int, access: int) -> tuple[int, ...]:
    """The CTA of the memory, if it is another than the agent's and its memory goes with it."""
    memory = program.accesses[access]
    away = memory.cta != program.agents[agent].cta and memory.space != Space.GLOBAL
    return (memory.cta,) if away else ()
