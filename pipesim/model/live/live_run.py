"""A running program whose state is changed in place. The pure machine stays the definition of what an operation does.

:class:`LiveRun` holds what :class:`~pipesim.model.state.State` holds, in lists under the same names, so that what only
looks at a state (``can_land``, ``finds``) takes either. ``rules`` carries out the operations that run for every tile;
whatever is unusual (a fault, a CTA that has exited, an operation without a rule of its own) goes through the pure
``step``, ``begin`` or ``land`` on a copy. :class:`ObservedRun` does so always, for runs with observers.
"""

from collections.abc import Callable, Sequence
from typing import Final

from pipesim.model import barrier as mbarrier
from pipesim.model import machine
from pipesim.model.finding import Fault
from pipesim.model.groups import ACCESS, ANSWER, ITEM
from pipesim.model.machine import Observer
from pipesim.model.ops import IN_ORDER, Op, Operation
from pipesim.model.program import Program
from pipesim.model.rules.transfer import conflict
from pipesim.model.state import OWN, TMA, Flight, State, Step, initial_state, new, own_channel

MOVED: Final = -1  #: an outcome: the agent moved, and nothing was completed
_BLOCKED: Final = -2  #: an outcome of this less a channel: the agent is blocked on it

#: Carries out one operation of one agent. The outcome is the channel that signalled, :data:`MOVED`, or
#: ``blocked_on(channel)``; :attr:`LiveRun.faults` says what broke a rule.
LiveRule = Callable[["LiveRun", int, Operation], int]


def blocked_on(outcome: int) -> int:
    """The outcome of an agent that is blocked on a channel, and the channel of such an outcome (below MOVED)."""
    return _BLOCKED - outcome


class LiveRun:
    """The state of one run. ``faults`` are those of the last move, for the driver to take away."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.clusters = program.ctas > 1
        self.agent_ctas = [agent.cta for agent in program.agents]
        self.cells_of = program.cells
        self._ends = [
            [(a, program.ends[a]) for a, agent in enumerate(program.agents) if agent.cta == cta]
            for cta in range(program.ctas)
        ]
        self.faults: tuple[Fault, ...] = ()
        self.opened: list[Flight | None] = [None] * len(program.agents)  #: the read or write that an agent has open
        self.pcs: list[int] = []
        self.registers: list[list[int]] = []
        self.holds: list[int] = []
        self.barriers: list[mbarrier.BarrierState] = []
        self.named: list[tuple[int, int, int]] = []
        self.cluster = (0, 0)
        self.cluster_held: list[int] = []
        self.flights: list[Flight] = []
        self.commits: list[int] = []
        self.issued = 0
        self.cells: list[int] = []
        LiveRun.take(self, initial_state(program))

    def state(self) -> State:
        """A copy of the state."""
        return State(
            tuple(self.pcs),
            tuple(map(tuple, self.registers)),
            tuple(self.holds),
            tuple(self.barriers),
            tuple(self.named),
            self.cluster,
            tuple(self.cluster_held),
            tuple(self.flights),
            tuple(self.commits),
            self.issued,
            tuple(self.cells),
        )

    def take(self, state: State) -> None:
        """Continue from this state. The lists stay the same objects."""
        self.pcs[:] = state.pcs
        self.registers[:] = map(list, state.registers)
        self.holds[:] = state.holds
        self.barriers[:] = state.barriers
        self.named[:] = state.named
        self.cluster = state.cluster
        self.cluster_held[:] = state.cluster_held
        self.flights[:] = state.flights
        self.commits[:] = state.commits
        self.issued = state.issued
        self.cells[:] = state.cells
        self.note_opened(state)

    def note_opened(self, state: State) -> None:
        """Which of the flights are reads and writes that agents have open."""
        self.opened[:] = [None] * len(self.opened)
        for flight in state.flights:
            if flight.engine == OWN:
                self.opened[flight.agent] = flight

    def purely(self, agent: int, _: Operation) -> int:
        """Carry out the agent's next operation by the pure rule."""
        before = self.state()
        return self.became(before, machine.step(self.program, before, agent))

    def became(self, before: State, result: Step) -> int:
        """Continue from the result of a pure move; its outcome."""
        if result.state is not before:
            self.take(result.state)
        self.faults = result.faults
        return blocked_on(result.blocked) if result.blocked >= 0 else result.signalled

    def all_ctas_run(self) -> bool:
        """True if each CTA has an agent that has not ended, so that the memory of all of them is there."""
        pcs = self.pcs
        return all(any(pcs[a] < end for a, end in members) for members in self._ends)

    def close(self, agent: int) -> None:
        """The read or write that the agent has open, if any, ends."""
        mine = self.opened[agent]
        if mine is not None:
            self.flights.remove(mine)
            self.opened[agent] = None

    def refuse(self, agent: int, pc: int) -> None:
        """The try at ``pc``, just executed, has said no: ``moves.failed``."""
        register = self.program.code[agent][pc][ANSWER]
        if register >= 0:
            self.registers[agent][register] = 0

    def begin(self, agent: int) -> None:
        """Open the access of the agent's next operation, a read or write: ``machine.begin``."""
        pc = self.pcs[agent]
        op = self.program.code[agent][pc]
        first, end = self.cells_of[op[ACCESS]]
        writes = op[0] == Op.WRITE
        item = op[ITEM] if writes else -1
        if conflict(self.flights, first, end, writes=writes, item=item) is not None:
            self._purely_begun(agent)
            return
        flight = new(Flight, (agent, pc, -1, 0, 0, OWN, -1, first, end, writes, item, 0, 0))
        self.opened[agent] = flight
        self.flights.append(flight)

    def land(self, flight: Flight) -> int:
        """All that remains of a flight arrives: ``machine.land``."""
        issuer, _, bar, remaining, arrivals, engine, _, first, end, writes, item, _, _ = flight
        if self.clusters and not self.all_ctas_run():
            return self._land_purely(flight)
        if bar >= 0:
            before = self.barriers[bar]
            after, completed, fault = (
                mbarrier.add_tx(before, -remaining) if engine == TMA else mbarrier.arrive(before, arrivals)
            )
            if fault is not None:
                return self._land_purely(flight)
            self.barriers[bar] = after
            signalled = bar if completed else MOVED
        else:
            signalled = own_channel(self.program, issuer)
        self.flights.remove(flight)
        if writes and engine in IN_ORDER:
            later = [f for f in self.flights if f.writes and f.agent == issuer and f.engine == engine]
            for cell in range(first, end):
                if not any(f.first <= cell < f.end for f in later):
                    self.cells[cell] = item
        elif writes:
            self.cells[first:end] = (item,) * (end - first)
        return signalled

    def _purely_begun(self, agent: int) -> None:
        before = self.state()
        self.became(before, machine.begin(self.program, before, agent))

    def _land_purely(self, flight: Flight) -> int:
        before = self.state()
        return self.became(before, machine.land(self.program, before, flight))


#: Parts of a state that are lists of the same name in a running program.
_LISTS = ("pcs", "holds", "barriers", "named", "cluster_held", "flights", "commits", "cells")


class ObservedRun(LiveRun):
    """A run that observers watch: every move is one of the pure machine, whose states they are given."""

    def __init__(self, program: Program, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)
        super().__init__(program)
        self._state = super().state()

    def state(self) -> State:
        """The state itself."""
        return self._state

    def take(self, state: State) -> None:
        """Continue from this state. A pure move keeps what it does not change."""
        before, self._state = self._state, state
        self.issued, self.cluster = state.issued, state.cluster
        for name in _LISTS:
            part = getattr(state, name)
            if part is not getattr(before, name):
                getattr(self, name)[:] = part
        if state.registers is not before.registers:
            self.registers[:] = map(list, state.registers)
        if state.flights is not before.flights:
            self.note_opened(state)

    def purely(self, agent: int, _: Operation) -> int:
        """Carry out the agent's next operation and report it to the observers."""
        before = self._state
        result = machine.step(self.program, before, agent)
        for observer in self._observers:
            observer.on_step(before, agent, result)
        return self.became(before, result)

    def refuse(self, agent: int, pc: int) -> None:
        """``moves.failed``."""
        self.take(machine.with_answer(self.program, self._state, agent, pc, 0))

    def begin(self, agent: int) -> None:
        """``machine.begin``, which is not reported to observers."""
        self._purely_begun(agent)

    def land(self, flight: Flight) -> int:
        """``machine.land``, which is reported to the observers."""
        before = self._state
        result = machine.land(self.program, before, flight)
        for observer in self._observers:
            observer.on_landing(flight, flight.remaining, result)
        return self.became(before, result)
