"""A state as a row of small numbers, one for each part of it that changes on its own.

Equal states are equal rows, and rows are cheap to copy and to look up. A row is made of a canonical state and turns
back into it, so whoever wants to know what can happen next asks the machine.
"""

from collections.abc import Callable, Hashable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from pipesim.model.groups import ACCESSES, COMMIT_BARRIER, ENGINE, ISSUES, READS_REGISTER, SKIP, WRITES_REGISTER
from pipesim.model.machine import TMA, Flight, State, finished, initial_state
from pipesim.model.ops import AT, Engine, Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.state import OWN

Row = tuple[int, ...]

_ENGINES = len(Engine)


class Local(NamedTuple):
    """What is an agent's alone: where it is, its registers, and what it waits for at barriers of threads."""

    pc: int
    registers: tuple[int, ...]
    hold: int
    cluster_held: int


class Parts:
    """Where each part of a state is in a row, and the values that the numbers there represent.

    ``local``, ``barriers`` and ``named`` are places by index; ``flights`` by agent and engine (:data:`OWN` for an
    access that the agent itself holds open); ``commits`` by agent; ``cells`` by cell; ``running``, the number of agents
    of a CTA that have not ended, by CTA, if there are several. A part that nothing can change is left out. With
    ``forget``, a register that its agent reads no more counts as 0: such states have equal futures.
    """

    def __init__(self, program: Program, *, forget: bool = False) -> None:
        self._program = program
        self._start = initial_state(program)
        self._readers: list[Callable[[State], Hashable]] = []
        live = [_live(code) if forget else None for code in program.code]
        self.local = [self._add(_local(agent, live[agent])) for agent in range(len(program.agents))]
        using = sorted({(a, engine) for a, code in enumerate(program.code) for op in code for engine in engines(op)})
        self.flights = {(agent, engine): self._add(_flights(agent, engine)) for agent, engine in using}
        closing = sorted(
            {a for a, code in enumerate(program.code) for op in code if op[0] == Op.COMMIT and op[COMMIT_BARRIER] < 0}
        )
        spans = {agent: slice(agent * _ENGINES, (agent + 1) * _ENGINES) for agent in closing}
        self.commits = {agent: self._add(_element("commits", span)) for agent, span in spans.items()}
        self.barriers = [self._add(_element("barriers", b)) for b in range(len(program.barriers))]
        self.named = [self._add(_element("named", n)) for n in range(len(program.named_barriers))]
        self.cluster = self._add(lambda s: s.cluster)
        #: how many have ended without an arrival at the cluster barrier, and in all, if it may continue without them
        self.gone = [self._add(_ended_agents(program))] if program.leaves_cluster_barrier else []
        #: what a thread of each agent holds, by CTA, where an agent may have to wait for registers
        self.pools = [self._add(_pool(program, cta)) for cta in range(program.ctas)] if program.register_pools else []
        self.running = [self._add(_running_agents(program, cta)) for cta in range(program.ctas) if program.ctas > 1]
        held = (program.cells[access] for op in program.operations for access in program.accesses_of(op))
        touched = sorted({cell for first, end in held for cell in range(first, end)})
        self.cells = {cell: self._add(_element("cells", cell)) for cell in touched}
        self.values: list[list[Any]] = [[] for _ in self._readers]
        self._numbers: list[dict[Hashable, int]] = [{} for _ in self._readers]

    def _add(self, reader: Callable[[State], Hashable]) -> int:
        self._readers.append(reader)
        return len(self._readers) - 1

    def number(self, part: int, state: State) -> int:
        """The number that this part of a state has in rows."""
        value, numbers = self._readers[part](state), self._numbers[part]
        known = numbers.get(value)
        if known is None:
            known = numbers[value] = len(numbers)
            self.values[part].append(value)
        return known

    def row(self, state: State) -> Row:
        """The row of a canonical state."""
        return tuple(self.number(part, state) for part in range(len(self._readers)))

    def value(self, row: Row, part: int) -> Any:  # each part has a type of its own
        """What the number of this part in a row represents."""
        return self.values[part][row[part]]

    def state(self, row: Row) -> State:
        """The canonical state that a row represents."""
        values = [known[number] for known, number in zip(self.values, row, strict=True)]
        local: list[Local] = [values[part] for part in self.local]
        flights = [flight for part in self.flights.values() for flight in values[part]]
        commits, cells = list(self._start.commits), list(self._start.cells)
        for agent, part in self.commits.items():
            commits[agent * _ENGINES : (agent + 1) * _ENGINES] = values[part]
        for cell, part in self.cells.items():
            cells[cell] = values[part]
        return State(
            pcs=tuple(mine.pc for mine in local),
            registers=tuple(mine.registers for mine in local),
            holds=tuple(mine.hold for mine in local),
            barriers=tuple(values[part] for part in self.barriers),
            named=tuple(values[part] for part in self.named),
            cluster=values[self.cluster],
            cluster_held=tuple(mine.cluster_held for mine in local),
            flights=tuple(f._replace(sequence=n, after=f.after and n) for n, f in enumerate(flights, start=1)),
            commits=tuple(commits),
            issued=len(flights),
            cells=tuple(cells),
        )


def engines(op: Operation) -> Iterator[int]:
    """The engines on which an operation puts something under way, an agent's own access included."""
    if op[0] in ISSUES:
        yield op[ENGINE]
    elif op[0] == Op.TMA_LOAD:
        yield TMA
    elif op[0] == Op.CP_ASYNC_ARRIVE:
        yield Engine.CP_ASYNC
    elif op[0] in ACCESSES:
        yield OWN


def _local(agent: int, live: list[frozenset[int]] | None) -> Callable[[State], Local]:
    def local(state: State) -> Local:
        pc, registers = state.pcs[agent], state.registers[agent]
        if live is not None:
            registers = tuple(value if r in live[pc] else 0 for r, value in enumerate(registers))
        return Local(pc, registers, state.holds[agent], state.cluster_held[agent])

    return local


def _flights(agent: int, engine: int) -> Callable[[State], tuple[Flight, ...]]:
    """In the order of issue, which is that of the tuple; the sequence numbers of other agents are unrelated."""
    return lambda state: tuple(
        f._replace(sequence=0, after=int(f.after > 0)) for f in state.flights if f.agent == agent and f.engine == engine
    )


def _element(field: str, at: int | slice) -> Callable[[State], Hashable]:
    """A part of a field of the state."""
    of = attrgetter(field)
    return lambda state: of(state)[at]


def _pool(program: Program, cta: int) -> Callable[[State], tuple[int, ...]]:
    pools, mine = program.register_pools, [a for a, agent in enumerate(program.agents) if agent.cta == cta]
    assert pools is not None
    return lambda state: tuple(pools.of_thread(a, state.pcs[a]) for a in mine)


def _ended_agents(program: Program) -> Callable[[State], tuple[int, int]]:
    def counts(state: State) -> tuple[int, int]:
        ended = [a for a in range(len(program.agents)) if finished(program, state, a)]
        return sum(state.cluster_held[a] != state.cluster[1] for a in ended), len(ended)

    return counts


def _running_agents(program: Program, cta: int) -> Callable[[State], int]:
    mine = [a for a, agent in enumerate(program.agents) if agent.cta == cta]
    return lambda state: sum(not finished(program, state, agent) for agent in mine)


def _live(code: tuple[Operation, ...]) -> list[frozenset[int]]:
    """For each place in the code the registers that may be read from there on before they are written."""
    live: list[frozenset[int]] = [frozenset()] * (len(code) + 1)
    for pc in range(len(code) - 1, -1, -1):
        op = code[pc]
        after = live[pc + 1] | (live[pc + 1 + op[SKIP]] if op[0] == Op.JUMP_IF else frozenset())
        if op[0] in WRITES_REGISTER:
            after -= {operand(op, "register")}
        live[pc] = after | {register for register in _read_registers(op) if register >= 0}
    return live


def _read_registers(op: Operation) -> list[int]:
    read = [operand(op, "state_register")] if op[0] in AT["state_register"] else []
    return [*read, operand(op, "register")] if op[0] in READS_REGISTER else read
