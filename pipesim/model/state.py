"""The state of a running program, and the small moves on it that the rules share. Integers in tuples, nothing else.

``machine`` is the door for drivers; this file exists because every rule builds states and none may import the machine.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from pipesim.model import groups
from pipesim.model.barrier import FRESH, BarrierState
from pipesim.model.finding import Fault
from pipesim.model.groups import NAMED_BARRIER
from pipesim.model.ops import Engine, Operation, Space
from pipesim.model.program import Program

UNINITIALISED = -1  #: item of bytes that nothing has written
TORN = -2  #: item of bytes that a transfer is writing
TMA = -1  #: engine of a flight that counts its bytes on a barrier
OWN = -2  #: engine of a flight that is an agent's own read or write, open until its operation is carried out


class Flight(NamedTuple):
    """A transfer, arrival or commit under way: issued by ``agent`` at ``pc``, with what is still to come.

    ``barrier`` (or -1) gets ``remaining`` bytes as they land, or ``arrivals`` at the end. ``group`` counts the commits
    of this agent on this engine before it; ``engine`` is -1 for a TMA load. ``first..end`` are the cells it holds open.
    """

    agent: int
    pc: int
    barrier: int
    remaining: int
    arrivals: int
    engine: int
    group: int
    first: int
    end: int
    writes: bool
    item: int
    after: int  #: everything of this agent and engine with a lower sequence number must have finished first
    sequence: int


class State(NamedTuple):
    """Where everything is. Integers in tuples: hashable, comparable, cheap to copy."""

    pcs: tuple[int, ...]
    registers: tuple[tuple[int, ...], ...]
    holds: tuple[int, ...]  #: generation of a named barrier that an agent waits to see end, 0 if none
    barriers: tuple[BarrierState, ...]
    named: tuple[tuple[int, int, int], ...]  #: (threads arrived, threads expected or 0, generation)
    cluster: tuple[int, int]  #: (agents arrived, generation)
    cluster_held: tuple[int, ...]  #: generation each agent arrived in, -1 outside an arrive/wait pair
    flights: tuple[Flight, ...]
    commits: tuple[int, ...]  #: groups closed, by agent * len(Engine) + engine
    issued: int  #: transfers issued so far
    cells: tuple[int, ...]  #: item in each cell of memory


class Readable(Protocol):
    """What can be looked at as a :class:`State` can: one, or a running program whose state changes in place."""

    @property
    def pcs(self) -> Sequence[int]:
        """As of a State."""
        ...

    @property
    def registers(self) -> Sequence[Sequence[int]]:
        """As of a State."""
        ...

    @property
    def barriers(self) -> Sequence[BarrierState]:
        """As of a State."""
        ...

    @property
    def flights(self) -> Sequence[Flight]:
        """As of a State."""
        ...

    @property
    def cells(self) -> Sequence[int]:
        """As of a State."""
        ...


class Step(NamedTuple):
    """The outcome of one move.

    ``blocked`` is the channel the agent must see signalled before it can move (then ``state`` is the very object that
    was passed in, unless the agent has just arrived at a named barrier), -1 if it moved. ``signalled`` is the channel
    on which something completed, -1 if nothing did. Channels: mbarrier b is b; then the named barriers; then the
    cluster; then one for each agent (its own transfers); then one for the registers of each CTA.
    """

    state: State
    blocked: int = -1
    signalled: int = -1
    faults: tuple[Fault, ...] = ()


Rule = Callable[[Program, State, int, Operation], Step]

# A NamedTuple's own constructor costs twice the tuple it makes. The rules that run for every tile go round it.
new = tuple.__new__


def initial_state(program: Program) -> State:
    """No agent has moved, no barrier is initialised, nothing is written."""
    agents = len(program.agents)
    return State(
        pcs=(0,) * agents,
        registers=((0,) * program.registers,) * agents,
        holds=(0,) * agents,
        barriers=(FRESH,) * len(program.barriers),
        named=((0, 0, 0),) * len(program.named_barriers),
        cluster=(0, 0),
        cluster_held=(-1,) * agents,
        flights=(),
        commits=(0,) * (agents * len(Engine)),
        issued=0,
        cells=(UNINITIALISED,) * program.cell_count,
    )


def own_channel(program: Program, agent: int) -> int:
    """The channel on which an agent's own transfers signal."""
    return len(program.barriers) + len(program.named_barriers) + 1 + agent


def pool_channel(program: Program, cta: int) -> int:
    """The channel of the registers of a CTA."""
    return own_channel(program, len(program.agents)) + cta


def cluster_channel(program: Program) -> int:
    """The channel of the cluster barrier."""
    return len(program.barriers) + len(program.named_barriers)


def meeting_channel(program: Program, op: Operation) -> int:
    """The channel of the named barrier or the cluster barrier that an operation is on, -1 if on neither."""
    if op[0] in groups.ON_NAMED_BARRIER:
        return len(program.barriers) + op[NAMED_BARRIER]
    return cluster_channel(program) if op[0] in groups.CLUSTER else -1


def exited(program: Program, state: State, cta: int) -> bool:
    """True if the agents of this CTA have all ended: its shared memory is gone."""
    mine, pcs, ends = program.agents_of_cta[cta], state[0], program.ends
    for agent in mine:  # hot: a loop costs less than a generator
        if pcs[agent] < ends[agent]:
            return False
    return bool(mine)


def unreachable(program: Program, state: State, agent: int, access: int) -> bool:
    """True if the access is to the memory of another CTA than the agent's, which has exited."""
    memory = program.accesses[access]
    away = memory.cta != program.agents[agent].cta and memory.space != Space.GLOBAL
    return away and exited(program, state, memory.cta)


def advance(state: State, agent: int, by: int = 1) -> State:
    """The agent is ``by`` operations further."""
    pcs, registers, holds, barriers, named, cluster, held, flights, commits, issued, cells = state
    pcs = pcs[:agent] + (pcs[agent] + by,) + pcs[agent + 1 :]  # noqa: RUF005  # hot
    return new(State, (pcs, registers, holds, barriers, named, cluster, held, flights, commits, issued, cells))


def write_register(state: State, agent: int, register: int, value: int) -> State:
    """The agent's register holds ``value``; register -1 is nowhere."""
    if register < 0:
        return state
    mine = state.registers[agent]
    mine = (*mine[:register], value, *mine[register + 1 :])
    return state._replace(registers=(*state.registers[:agent], mine, *state.registers[agent + 1 :]))


def fill(cells: tuple[int, ...], first: int, end: int, item: int) -> tuple[int, ...]:
    """The cells ``first..end`` hold ``item``."""
    return cells[:first] + (item,) * (end - first) + cells[end:]
