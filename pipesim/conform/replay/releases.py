"""Which operations released each wait of a replay, and whether one of them can have done so in so short a time.

The machine says which operations a phase consists of. A wait that returned saw its phase complete, so it returned after
every one of them, and later by at least the latency of its path: an arrive has to reach the barrier, the bytes of a
copy have to be fetched. Operations are timestamped before their issue, waits after their return, so that the time
between two timestamps is never less than the latency (see :mod:`pipesim.trace.schema`); what left no record of its own
is taken to be as early as its agent's record before it. Timestamps of one SM are compared by its own clock, those of
two on the common time line.

Where another operation could have taken the place of one that came too late for this return, nothing follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from pipesim.conform.replay.align import AgentAlignment
from pipesim.conform.replay.latency_floor import LatencyFloors, Least, ReleasePath
from pipesim.model.barrier import LIVE
from pipesim.model.groups import ARRIVALS, BARRIER, IN_FLIGHT, PARITY_TRIES, PARITY_WAITS, SIGNALS
from pipesim.model.machine import TMA, Flight, State
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program
from pipesim.trace.recorder import ps_to_cycles
from pipesim.trace.schema import Column, Events

Rows: TypeAlias = "Column | slice"  #: of a table


@dataclass(frozen=True)
class Clocks:
    """When the events of one CTA, or of one cluster seen as one, were recorded.

    ``own``: by row, on the clock of the event's SM; ``common``: on one time line, to within ``error``. ``uncertainty``
    bounds how far the order of two timestamps of one SM may be wrong. All in cycles.
    """

    own: Sequence[int]
    common: Sequence[int]
    error: Sequence[int]
    uncertainty: int
    sm_khz: int


@dataclass
class Stopwatch:
    """What is the same for all CTAs of a trace: bounds, and the clock of each event's own SM by row of the whole table
    (None: the events have it).

    ``checked``, ``unchecked``: as of :class:`Releases`, of all CTAs (or clusters) that are compared with the bounds.
    """

    own: Column | None
    uncertainty: int
    sm_khz: int
    floors: LatencyFloors
    checked: int = 0
    unchecked: int = 0

    def start(self, program: Program, aligned: Sequence[AgentAlignment], events: Events, rows: Rows) -> Releases:
        """For the replay of one CTA, whose ``events`` are these ``rows`` of the table."""
        error = (ps_to_cycles(events.error_ps, self.sm_khz) + 1).tolist()
        clocks = Clocks(self.own_of(events, rows).tolist(), events.cycle.tolist(), error, self.uncertainty, self.sm_khz)
        return Releases(program, aligned, clocks, self.floors)

    def own_of(self, events: Events, rows: Rows) -> Column:
        """The clock of each event's own SM, of ``events`` that are these ``rows`` of the table."""
        return events.cycle if self.own is None else self.own[rows]

    def count(self, releases: Releases) -> None:
        """The returns of a CTA were compared as these were."""
        self.checked, self.unchecked = self.checked + releases.checked, self.unchecked + releases.unchecked


class Release(NamedTuple):
    """An operation that a phase needed, issued not before the event of ``row`` (-1: unknown).

    ``nbytes``: of a copy, how many had landed by then. ``path`` is None for a kind of operation that was not measured.
    """

    agent: int
    pc: int
    row: int
    path: ReleasePath | None
    nbytes: int = 0


class ReleaseTime(NamedTuple):
    """A return of a wait and one of the operations that released it: ``after`` cycles between their timestamps.

    ``uncertainty``: of ``after``, in cycles. ``row``: of the event by which the wait had returned.
    """

    agent: int
    pc: int
    row: int
    release: Release
    after: int
    uncertainty: int


class TooSoon(NamedTuple):
    """A return that came sooner after a release than the least latency of its path."""

    time: ReleaseTime
    least: Least
    barrier: int
    phase: int
    source: str

    @property
    def missing_cycles(self) -> int:
        """How many cycles too early it was, at least."""
        return self.least.cycles - self.time.after - self.time.uncertainty


#: Says whether an operation that was not carried out yet can have happened to a barrier by a time.
Others = Callable[[int, int], bool]


class ReplayWatcher(Protocol):
    """Sees what a replay carries out, in its order. ``first``: a return that came too soon, which ends the replay."""

    @property
    def first(self) -> TooSoon | None:
        """The first return that came sooner than is possible."""

    def carried_out(self, agent: int, position: int, before: State, after: State) -> None:
        """An operation, no wait that was recorded, took the machine from one state to the next."""

    def on_landing(self, flight: Flight, part: int, row: int, before: State, after: State) -> None:
        """``part`` bytes of a transfer (-1: the rest), or its arrival, for the wait that returned by ``row``."""

    def on_return(self, agent: int, position: int, state: State, others: Others) -> None:
        """A wait returned, or a try said yes, in this state."""


@dataclass
class Releases:
    """Follows one replay: what each phase was made of, and each return beside it.

    ``checked`` counts the returns that were compared with the least latency of every operation that released them,
    ``unchecked`` those where a timestamp or a bound is missing or the operation is not certain. ``bounds``: the row of
    each return with that of a release, the least cycles from one to the other, and whether one SM has both; they are
    those of any replay with the same phases if it ``is_fixed`` which copies are the last of a phase.
    """

    program: Program
    aligned: Sequence[AgentAlignment]
    clocks: Clocks
    floors: LatencyFloors
    checked: int = 0
    unchecked: int = 0
    first: TooSoon | None = None
    bounds: list[tuple[int, int, int, bool]] = field(default_factory=list)
    is_fixed: bool = True

    def __post_init__(self) -> None:
        self._since = [earliest_rows(a) for a in self.aligned]
        self._until = [_until(a) for a in self.aligned]
        self._issued: dict[tuple[int, int], int] = {}  # (agent, pc) of what is under way → its position
        self._open: dict[int, dict[tuple[int, int], Release]] = {}  # what the open phase of a barrier has got
        self._split: set[tuple[int, int]] = set()  # copies whose bytes were counted in several parts
        self._complete: dict[tuple[int, int], tuple[Release, ...]] = {}  # (barrier, phase) → what it was made of

    def carried_out(self, agent: int, position: int, before: State, after: State) -> None:
        """An operation, no wait that was recorded, took the machine from one state to the next."""
        pc = self.aligned[agent].ran[position]
        op = self.program.code[agent][pc]
        if op[0] in IN_FLIGHT:
            self._issued[agent, pc] = position
        elif op[0] == Op.INIT:
            self._open.pop(op[BARRIER], None)
            for key in [key for key in self._complete if key[0] == op[BARRIER]]:
                del self._complete[key]
        elif op[0] == Op.EXPECT_TX:  # raises what a phase needs, and releases no agent
            self._close(op[BARRIER], before, after)
        elif op[0] in SIGNALS:
            release = Release(agent, pc, self._since[agent][position], self._arrival(agent, op))
            self._add(op[BARRIER], release, before, after)

    def on_landing(self, flight: Flight, part: int, row: int, before: State, after: State) -> None:
        """``part`` bytes of a transfer (-1: the rest), or its arrival, reached its barrier by the event of ``row``."""
        del row  # a landing has no time of its own
        if flight.barrier < 0:
            return
        position = self._issued.get((flight.agent, flight.pc), -1)
        row = self._since[flight.agent][position] if position >= 0 else -1
        op = self.program.code[flight.agent][flight.pc]
        nbytes = 0
        if flight.engine == TMA:
            nbytes = operand(op, "bytes") - flight.remaining + (flight.remaining if part < 0 else part)
        release = Release(flight.agent, flight.pc, row, self._path(flight), nbytes)
        self._add(flight.barrier, release, before, after)
        if nbytes and nbytes < operand(op, "bytes"):
            self._split.add((flight.agent, flight.pc))
            self.is_fixed = False

    def _arrival(self, agent: int, op: Operation) -> ReleasePath | None:
        """How an operation that takes effect immediately reaches its barrier; None if that was not measured."""
        if op[0] not in ARRIVALS:
            return None
        here = self.program.barriers[op[BARRIER]].cta == self.program.agents[agent].cta
        return ReleasePath.ARRIVE if here else ReleasePath.REMOTE_ARRIVE

    def _path(self, flight: Flight) -> ReleasePath | None:
        """How what is under way reaches its barrier; None if that was not measured."""
        op = self.program.code[flight.agent][flight.pc]
        away = self.program.barriers[flight.barrier].cta != self.program.agents[flight.agent].cta
        if op[0] == Op.CP_ASYNC_ARRIVE:
            return None if away else ReleasePath.CP_ASYNC_ARRIVE
        if op[0] != Op.TMA_LOAD:
            return None
        if operand(op, "cta_mask"):
            return ReleasePath.MULTICAST_AWAY if away else ReleasePath.MULTICAST
        return None if away else ReleasePath.COPY  # from the shared memory of one CTA to that of another

    def on_return(self, agent: int, position: int, state: State, others: Others) -> None:
        """A wait returned, or a try said yes, in this state."""
        pc, row = self.aligned[agent].ran[position], self._until[agent][position]
        op = self.program.code[agent][pc]
        if op[0] not in PARITY_WAITS | PARITY_TRIES or row < 0 or state.barriers[op[BARRIER]].life != LIVE:
            return
        barrier, phase = op[BARRIER], state.barriers[op[BARRIER]].done - 1
        if phase < 0:
            return  # a fresh barrier lets it pass
        releases = self._complete.get((barrier, phase), ())
        times = [self._time(agent, pc, row, release) for release in (*releases, *self._together(releases))]
        bounds = [(time, self._least(time.release)) for time in times if time is not None]
        soon = [TooSoon(time, least, barrier, phase, self.floors.source) for time, least in bounds if least is not None]
        agents, cta = self.program.agents, self.program.agents[agent].cta
        for time, least in bounds:
            if time is not None and least is not None:
                other = time.release
                self.bounds.append((row, other.row, least.cycles, agents[other.agent].cta == cta))
        worst = max(soon, key=lambda each: each.missing_cycles, default=None)
        if worst is not None and worst.missing_cycles > 0:
            if self._certain(worst, state, others):
                self.first = self.first or worst
                self.checked += 1
            else:
                self.unchecked += 1
        elif releases and len(soon) == len(times):
            self.checked += 1
        else:
            self.unchecked += 1

    def _least(self, release: Release) -> Least | None:
        if release.path is None:
            return None
        return self.floors.least(release.path, release.nbytes, self.clocks.sm_khz)

    def _add(self, barrier: int, release: Release, before: State, after: State) -> None:
        self._open.setdefault(barrier, {})[release.agent, release.pc] = release
        self._close(barrier, before, after)

    def _close(self, barrier: int, before: State, after: State) -> None:
        if after.barriers[barrier].done != before.barriers[barrier].done:
            self._complete[barrier, before.barriers[barrier].done] = tuple(self._open.pop(barrier, {}).values())

    def _together(self, releases: Sequence[Release]) -> list[Release]:
        """All copies of a phase from each of them on: they share the one way into their SM."""
        copies = [r for r in releases if r.path is ReleasePath.COPY and r.row >= 0]
        copies = [r for r in copies if (r.agent, r.pc) not in self._split]
        self.is_fixed = self.is_fixed and len({r.agent for r in copies}) <= 1
        copies.sort(key=lambda r: (self.clocks.own[r.row], r.agent, r.pc))
        suffixes = (copies[n:] for n in range(len(copies) - 1))
        return [s[0]._replace(path=ReleasePath.COPIES, nbytes=sum(r.nbytes for r in s)) for s in suffixes]

    def _time(self, agent: int, pc: int, row: int, release: Release) -> ReleaseTime | None:
        if release.row < 0:
            return None
        agents, clocks = self.program.agents, self.clocks
        same = agents[agent].cta == agents[release.agent].cta
        stamps = clocks.own if same else clocks.common
        uncertainty = clocks.uncertainty + (0 if same else clocks.error[row] + clocks.error[release.row])
        return ReleaseTime(agent, pc, row, release, stamps[row] - stamps[release.row], uncertainty)

    def _certain(self, soon: TooSoon, state: State, others: Others) -> bool:
        """Whether no other operation on the barrier can have come in time instead of the one that came too late."""
        clocks = self.clocks
        by = clocks.common[soon.time.row] + clocks.uncertainty
        by += clocks.error[soon.time.row] + max(clocks.error) if self.program.ctas > 1 else 0
        if any(r.row < 0 or clocks.common[r.row] <= by for r in self._open.get(soon.barrier, {}).values()):
            return False
        one = (soon.time.release.agent, soon.time.release.pc)
        for flight in state.flights:
            if flight.barrier == soon.barrier and (flight.agent, flight.pc) != one:  # the rest of it comes later still
                position = self._issued.get((flight.agent, flight.pc), -1)
                row = self._since[flight.agent][position] if position >= 0 else -1
                if row < 0 or clocks.common[row] <= by:
                    return False
        return not others(soon.barrier, by)


def earliest_rows(aligned: AgentAlignment) -> list[int]:
    """For each operation that an agent ran the row of the event that it cannot precede: its own first, or the last."""
    found, last = [], -1
    for mine in aligned.rows:
        found.append(mine[0] if mine else last)
        last = mine[-1] if mine else last
    return found


def _until(aligned: AgentAlignment) -> list[int]:
    """For each operation the row of the event that it cannot follow: its own last of two, or the agent's next."""
    found, following = [], -1
    for mine in reversed(aligned.rows):
        found.append(mine[1] if len(mine) == 2 else following)
        following = mine[0] if mine else following
    return found[::-1]
