"""What each phase of a replay was made of, which waits saw it, and when transfers had landed: what pictures draw.

The machine says which operations a phase consists of; the records say when. An operation is placed at its own event. A
transfer lands at no event: it had landed by the event of the wait that needed it, which is the latest possible time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pipesim.conform.replay.align import AgentAlignment
from pipesim.conform.replay.releases import Others, Rows, TooSoon
from pipesim.conform.result import Divergence
from pipesim.model.groups import ASKS, BARRIER, IN_FLIGHT, SIGNALS
from pipesim.model.machine import Flight, State
from pipesim.model.program import Program
from pipesim.model.state import new
from pipesim.trace.schema import Column, Events


class ReplayedPart(NamedTuple):
    """An operation, or a landing, that changed the open phase of a barrier.

    ``row``: of its own event, -1 if it left none. ``by``: of the event by which a landing had happened, -1 of an
    operation that takes effect immediately. ``arrivals`` were made; ``nbytes`` is the change of the bytes outstanding.
    """

    barrier: int
    phase: int
    agent: int
    pc: int
    row: int
    by: int
    arrivals: int
    nbytes: int
    completes: bool

    @property
    def landing(self) -> bool:
        """True of what was in flight."""
        return self.by >= 0


class PhaseSeen(NamedTuple):
    """A wait that returned, or a try that said yes, by the event of ``row``: it saw ``phase`` complete (-1: fresh)."""

    agent: int
    pc: int
    row: int
    barrier: int
    phase: int


class FlightSeen(NamedTuple):
    """A transfer, or a delayed arrival: issued at the event of ``row``, or just after it if it left none of its own.

    ``own``: the event is its own. ``by``: the event by which it had ended, -1 if it never did. ``barrier`` is -1 where
    it is counted on none.
    """

    agent: int
    pc: int
    row: int
    own: bool
    by: int
    barrier: int


@dataclass
class ReplayLog:
    """Follows one replay. The rows are those of the whole trace's table.

    ``divergence``: where the trace leaves the program; nothing after it is in the log.
    """

    program: Program
    aligned: Sequence[AgentAlignment]
    rows: Column
    contributions: list[ReplayedPart] = field(default_factory=list)
    seen: list[PhaseSeen] = field(default_factory=list)
    divergence: Divergence | None = None

    def __post_init__(self) -> None:
        self._flights: dict[tuple[int, int, int], FlightSeen] = {}

    @property
    def first(self) -> TooSoon | None:
        """It times nothing, so nothing comes too soon."""
        return None

    @property
    def flights(self) -> tuple[FlightSeen, ...]:
        """Everything that was in flight, in the order of issue."""
        return tuple(self._flights.values())

    def carried_out(self, agent: int, position: int, before: State, after: State) -> None:
        """An operation, no wait that was recorded, took the machine from one state to the next."""
        pc = self.aligned[agent].ran[position]
        op = self.program.code[agent][pc]
        if op[0] in IN_FLIGHT:
            for flight in after.flights:
                if flight.sequence > before.issued:
                    self._issue(flight, position)
        elif op[0] in SIGNALS:
            row, own = self._row(agent, position)
            self._add(op[BARRIER], agent, pc, row if own else -1, -1, before, after)

    def on_landing(self, flight: Flight, part: int, row: int, before: State, after: State) -> None:
        """``part`` bytes of a transfer (-1: the rest), or its arrival, had come by the event of ``row``."""
        del part  # of a transfer in parts, the last counts
        by = int(self.rows[row]) if row >= 0 else -1
        key = (flight.agent, flight.pc, flight.barrier)
        known = self._flights.get(key)
        if known is None:
            return
        self._flights[key] = new(FlightSeen, (*known[:4], by, known.barrier))
        if flight.barrier >= 0:
            self._add(flight.barrier, flight.agent, flight.pc, known.row if known.own else -1, by, before, after)

    def on_return(self, agent: int, position: int, state: State, others: Others) -> None:
        """A wait returned, or a try said yes, in this state."""
        del others  # who else could have released it is a question of times
        pc = self.aligned[agent].ran[position]
        op = self.program.code[agent][pc]
        rows = self.aligned[agent].rows[position]
        if op[0] in ASKS and rows:
            barrier = op[BARRIER]
            done = state.barriers[barrier].done
            self.seen.append(new(PhaseSeen, (agent, pc, int(self.rows[rows[-1]]), barrier, done - 1)))

    def _issue(self, flight: Flight, position: int) -> None:
        row, own = self._row(flight.agent, position)
        key = (flight.agent, flight.pc, flight.barrier)
        self._flights[key] = new(FlightSeen, (flight.agent, flight.pc, row, own, -1, flight.barrier))

    def _row(self, agent: int, position: int) -> tuple[int, bool]:
        """The operation's own first event, or else its agent's last event before it, -1 if there is none."""
        rows = self.aligned[agent].rows
        if rows[position]:
            return int(self.rows[rows[position][0]]), True
        for at in range(position - 1, -1, -1):
            if rows[at]:
                return int(self.rows[rows[at][-1]]), False
        return -1, False

    def _add(self, barrier: int, agent: int, pc: int, row: int, by: int, before: State, after: State) -> None:
        old, now = before.barriers[barrier], after.barriers[barrier]
        completes = now.done != old.done
        arrivals = old.pending if completes else old.pending - now.pending
        part = (barrier, old.done, agent, pc, row, by, arrivals, now.tx - old.tx, completes)
        self.contributions.append(new(ReplayedPart, part))


@dataclass
class ReplayLogWatch:
    """Starts a log for the CTA (or cluster) that is replayed; ``own``: the row of the trace of each event."""

    own: Column
    log: ReplayLog | None = None

    def start(self, program: Program, aligned: Sequence[AgentAlignment], events: Events, rows: Rows) -> ReplayLog:
        """For the replay of one CTA, whose events are these ``rows`` of the table."""
        del events
        self.log = ReplayLog(program, aligned, self.own[rows])
        return self.log
