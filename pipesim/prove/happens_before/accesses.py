"""Accesses of one run and their order: a conflicting pair must not be possible in the reverse order or concurrently."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from pipesim.model.groups import ENGINE
from pipesim.model.ops import IN_ORDER, Engine, Op
from pipesim.model.program import Program
from pipesim.prove.happens_before.snapshot import Clock, Knowledge, Marks

# Unordered writes of one item to the same cells: no race, so there is no last one among them.
#
# What comes later is compared with each of them, and each of them with what came before the first.


class _Equals(NamedTuple):
    """The latest writes of a cell if they are equal, by agent, and the accesses that none of them may precede."""

    written: tuple[int, ...]
    writes: dict[int, AccessEvent]
    before: tuple[AccessEvent, ...]


class EqualWrites:
    """By cell the equal writes that are its latest. Cells that no agent writes alike are not here.

    ``_due``: of what was written alike and will be once more, how often it was: nothing else is ever equal to it.
    """

    def __init__(self) -> None:
        self._by_cell: dict[int, _Equals] = {}
        self._due: Counter[tuple[int, ...]] = Counter()

    def __bool__(self) -> bool:
        return bool(self._by_cell)

    def fork(self) -> EqualWrites:
        """The same, to continue by itself."""
        twin = EqualWrites()
        twin._by_cell = {cell: equals._replace(writes=equals.writes.copy()) for cell, equals in self._by_cell.items()}
        twin._due = self._due.copy()
        return twin

    def count(self, written: tuple[int, ...]) -> None:
        """One of the operations that write this."""
        *what, times = written
        self._due[tuple(what)] += 1
        if self._due[tuple(what)] == times:
            del self._due[tuple(what)]

    def latest(self, cell: int) -> Iterator[AccessEvent]:
        """The equal writes of the cell; nothing if its last write is like no other."""
        equals = self._by_cell.get(cell)
        if equals is not None:
            yield from equals.writes.values()

    def enter(self, cell: int, access: AccessEvent, before: tuple[AccessEvent, ...]) -> tuple[AccessEvent, ...]:
        """A write, and the latest accesses of the cell until now: those that it conflicts with."""
        equals = self._by_cell.get(cell)
        if not access.written:
            self._by_cell.pop(cell, None)
            return before
        if equals is None or equals.written != access.written[:2]:
            self._by_cell[cell] = _Equals(access.written[:2], {access.agent: access}, before)
            return before
        reads = tuple(each for each in before if not each.writes)
        equals.writes[access.agent] = access
        self._by_cell[cell] = equals._replace(before=(*equals.before, *reads))
        return self._by_cell[cell].before

    def mark(self, marks: Marks) -> Iterator[AccessEvent]:
        """Enter how many accesses of each cell there are; which, for the caller to enter."""
        for cell, equals in sorted(self._by_cell.items()):
            marks.shape += (
                cell,
                equals.written in self._due and equals.written,
                len(equals.writes),
                len(equals.before),
            )
            yield from (access for _, access in sorted(equals.writes.items()))
            yield from equals.before


OWN = 0  #: "flight" of an access that an agent makes itself
BY_THREAD = -3  #: "engine" of a flight that counts its bytes on a barrier and is made through the generic proxy


class AccessEvent(NamedTuple):
    """One access: its operation, whether it writes, the flight that makes it, and the cells ``first..end``."""

    agent: int
    pc: int
    writes: bool
    flight: int
    engine: int
    first: int
    end: int
    past: tuple[int, ...] = ()  #: operations of each agent that occur before it, on request
    written: tuple[int, ...] = ()  #: of writes that are no race whatever their order: what, and how many write it

    @property
    def generic(self) -> bool:
        """True if it is made through the generic proxy: all but bulk copies and products (PTX ISA, async proxy)."""
        return self.flight == OWN or self.engine == Engine.CP_ASYNC or self.engine == BY_THREAD


class Read(NamedTuple):
    """A read of a cell, and the write that it sees."""

    cell: int
    write: AccessEvent
    read: AccessEvent


class _Commits(NamedTuple):
    """The commits of one agent and engine on one channel, in order: their flights, and the phases they are part of."""

    flights: list[int]
    phases: list[int]


def _in_order(one: AccessEvent, other: AccessEvent) -> bool:
    """True if an engine keeps two accesses in the order of issue: one agent's, two writes only to the same cells."""
    if one.engine not in IN_ORDER or (one.agent, one.engine) != (other.agent, other.engine):
        return False
    return not (one.writes and other.writes) or (one.first, one.end) == (other.first, other.end)


_NO_COMMITS: dict[int, _Commits] = {}
_NO_READS: dict[tuple[int, int, bool], AccessEvent] = {}


class Accesses:
    """For each cell of memory its last write, and the last read since of each agent and engine.

    An agent's own access is over with its operation. A flight's end is known to whoever knows a phase that it, or a
    commit after it, took part in, or comes after a wait of its agent for it. Of the reads of one agent, or of its
    flights on one engine, the last is enough: whoever knows that it is over knows so of those before.
    """

    def __init__(self, *, keep_reads: bool = False) -> None:
        self.reads: list[Read] | None = [] if keep_reads else None  #: since the last fork, where they are asked for
        self._write: dict[int, AccessEvent] = {}
        self._equal = EqualWrites()
        self._reads: dict[int, dict[tuple[int, int, bool], AccessEvent]] = {}
        self._landed: dict[int, tuple[int, int]] = {}  # by flight: the channel and phases that counted its bytes
        self._commits: dict[tuple[int, int], dict[int, _Commits]] = {}  # by agent and engine, then by channel
        self._in_order: dict[tuple[int, int], dict[int, _Commits]] = {}  # of these, those that arrive in their order
        self._waits: dict[int, list[tuple[int, int]]] = {}  # by flight: the waits that it had ended before

    def fork(self) -> Accesses:
        """The same, to continue by itself."""
        twin = Accesses(keep_reads=self.reads is not None)
        twin._write, twin._landed = self._write.copy(), self._landed.copy()
        twin._equal = self._equal.fork()
        twin._reads = {cell: reads.copy() for cell, reads in self._reads.items()}
        twin._commits, twin._in_order = _copied(self._commits), _copied(self._in_order)
        twin._waits = {flight: waits.copy() for flight, waits in self._waits.items()}
        return twin

    @property
    def writes(self) -> Mapping[int, AccessEvent]:
        """The last write of each cell."""
        return self._write

    def on_landing(self, flight: int, channel: int, phases: int) -> None:
        """Whoever knows this many phases of this channel knows that the flight is over."""
        self._landed[flight] = (channel, phases)

    def add_commit(
        self, agent: int, engine: int, flight: int, channel: int, phases: int, *, in_order: bool = False
    ) -> None:  # fmt: skip
        """The same of everything that the agent had issued on the engine before ``flight``, a commit.

        ``in_order``: it arrives after the earlier commits of its agent that arrive in order.
        """
        for known in (self._commits, self._in_order) if in_order else (self._commits,):
            commits = known.setdefault((agent, engine), {}).setdefault(channel, _Commits([], []))
            commits.flights.append(flight)
            commits.phases.append(phases)

    def add_wait(self, flight: int, agent: int, pc: int) -> None:
        """What comes after this operation comes after the flight's end."""
        self._waits.setdefault(flight, []).append((agent, pc))

    def enter(self, access: AccessEvent) -> Iterator[tuple[int, AccessEvent]]:
        """Enter an access: (cell, access) of those before that it conflicts with."""
        if access.written:
            self._equal.count(access.written)
        for cell in range(access.first, access.end):
            before = self._write.get(cell)
            if self._equal or access.written:
                for other in self._among_equals(cell, access):
                    yield cell, other
            elif before is not None:
                yield cell, before
            if access.writes:
                self._write[cell] = access
                reads = self._reads.pop(cell, _NO_READS)
                if not access.written:
                    for read in reads.values():
                        yield cell, read
            else:
                if before is not None and self.reads is not None:
                    self.reads.append(Read(cell, before, access))
                reader = (access.agent, access.engine, access.flight == OWN)
                self._reads.setdefault(cell, {})[reader] = access

    def _among_equals(self, cell: int, access: AccessEvent) -> Iterator[AccessEvent]:
        """What an access conflicts with in a program in which agents write alike."""
        last = self._write.get(cell)
        writes = tuple(self._equal.latest(cell)) or ((last,) if last is not None else ())
        if not access.writes:
            yield from writes
            return
        reads = tuple(self._reads.get(cell, _NO_READS).values())
        yield from self._equal.enter(cell, access, (*writes, *(reads if access.written else ())))

    def ordered(self, clock: Clock, other: AccessEvent, access: AccessEvent) -> bool:
        """True if ``other`` is over before ``access``, which begins after ``clock``; or one engine keeps them so."""
        if other.flight == OWN:
            return other.agent == access.agent or clock.covers(other.agent, other.pc)
        if _in_order(other, access):
            return True
        waits = self._waits.get(other.flight)
        return (waits is not None and any(agent == access.agent for agent, _ in waits)) or self.over(clock, other)

    def over(self, clock: Clock, access: AccessEvent) -> bool:
        """True if the moment knows that the access is over."""
        if access.flight == OWN:
            return clock.covers(access.agent, access.pc)
        waits = self._waits.get(access.flight)
        if waits is not None and any(clock.covers(agent, pc) for agent, pc in waits):
            return True
        landed = self._landed.get(access.flight)
        if landed is not None:
            return clock.known[landed[0]] >= landed[1]
        return self.committed_since(clock, access.agent, access.engine, access.flight)

    def committed_since(
        self, clock: Clock, agent: int, engine: int, flight: int, *, in_order: bool = False
    ) -> bool:  # fmt: skip
        """True if the moment knows a phase with a later commit of this agent and engine in it, ``in_order`` of those
        that arrive in their order.
        """
        known, made = clock.known, self._in_order if in_order else self._commits
        for channel, commits in made.get((agent, engine), _NO_COMMITS).items():
            later = bisect_right(commits.flights, flight)
            if later < len(commits.flights) and known[channel] >= commits.phases[later]:
                return True
        return False

    def mark(self, marks: Marks) -> None:
        """Enter what later accesses will be compared with."""
        for cell in sorted(self._write.keys() | self._reads.keys()):
            write = self._write.get(cell)
            reads = sorted(self._reads.get(cell, _NO_READS).items())
            marks.shape += (cell, write is not None, len(reads))
            for access in ([write] if write is not None else []) + [read for _, read in reads]:
                self._mark_access(marks, access)
        for access in self._equal.mark(marks):
            self._mark_access(marks, access)

    def _mark_access(self, marks: Marks, access: AccessEvent) -> None:
        marks.shape += (access.writes, access.engine, access.flight == OWN, access.first, access.end)
        marks.operations.append((access.agent, access.pc))
        if access.flight != OWN:
            self.mark_end(marks, access.agent, access.engine, access.flight)

    def mark_end(self, marks: Marks, agent: int, engine: int, flight: int, *, in_order: bool = False) -> None:
        """Enter how a flight's end is, or will be, known; ``in_order``: the arrival of a commit."""
        waits = self._waits.get(flight, ())
        landed = self._landed.get(flight)
        made = self._in_order if in_order else self._commits
        ends = [landed] if landed is not None else _ends(made.get((agent, engine), _NO_COMMITS), flight)
        marks.shape += (len(waits), landed is not None, *(channel for channel, _ in ends), -1)
        marks.operations += waits
        marks.phases += ends


def _copied(commits: dict[tuple[int, int], dict[int, _Commits]]) -> dict[tuple[int, int], dict[int, _Commits]]:
    return {
        key: {channel: _Commits(made.flights.copy(), made.phases.copy()) for channel, made in by_channel.items()}
        for key, by_channel in commits.items()
    }


def _ends(made: Mapping[int, _Commits], flight: int) -> list[tuple[int, int]]:
    """Of each channel on which a later commit has arrived, the first phase that says so."""
    found = []
    for channel, commits in made.items():
        later = bisect_right(commits.flights, flight)
        if later < len(commits.flights):
            found.append((channel, commits.phases[later]))
    return sorted(found)


M = TypeVar("M", Clock, Knowledge)


def awaited_groups(program: Program) -> frozenset[tuple[int, int]]:
    """The (agent, engine) whose groups an agent waits for: the agent, or for a wgmma any of its warp group."""
    waits = {(a, op[ENGINE]) for a, code in enumerate(program.code) for op in code if op[0] == Op.WAIT_GROUP}
    groups = {(member, engine) for a, engine in waits if engine == Engine.WGMMA for member in program.warp_groups[a]}
    return frozenset(waits | groups)


class Groups(Generic[M]):
    """The groups of one run that an agent waits for, by the agent that issued them and the engine: ``of``, where known.

    ``M`` is what an observer knows at a moment.
    """

    def __init__(self, program: Program, of: Iterable[tuple[int, int]] | None = None) -> None:
        self._program = program
        of = sorted(awaited_groups(program)) if of is None else of
        self._flown: dict[tuple[int, int], list[tuple[int, AccessEvent]]] = {key: [] for key in of}
        self._closed: dict[tuple[int, int], list[tuple[int, M]]] = {key: [] for key in self._flown}
        self._waited: dict[tuple[int, int], int] = dict.fromkeys(self._flown, 0)

    def fork(self, program: Program) -> Groups[M]:
        """The same for another program, whose groups the same agents wait for."""
        twin = Groups[M](program, self._flown)
        twin._flown = {key: flown.copy() for key, flown in self._flown.items()}
        twin._closed = {key: moments.copy() for key, moments in self._closed.items()}
        twin._waited = self._waited.copy()
        return twin

    def add_access(self, group: int, access: AccessEvent) -> None:
        """An access is made by the group of this number, which its agent closes next."""
        flown = self._flown.get((access.agent, access.engine))
        if flown is not None:
            flown.append((group, access))

    def close_group(self, agent: int, pc: int, engine: int, before: M) -> None:
        """The agent closes a group; what comes after a wait for it comes after this operation, and what it knew."""
        closed = self._closed.get((agent, engine))
        if closed is not None:
            closed.append((pc, before))

    def wait(self, agent: int, pc: int, engine: int, limit: int, accesses: Accesses, moment: M) -> M:
        """The agent waits until its groups below ``limit`` are over, for a wgmma those of its whole warp group.

        Passes to ``accesses`` what is over, and returns what the agent knows then.
        """
        members = self._members(agent, engine)
        forgotten = min(self._waited[member, engine] for member in members)
        for member in members:
            for group, access in self._flown[member, engine]:
                if group < limit:
                    accesses.add_wait(access.flight, agent, pc)
            if limit > 0:
                at, before = self._closed[member, engine][limit - 1]
                moment = moment.join(before.after_operation(member, at))
        self._waited[agent, engine] = max(limit, self._waited[agent, engine])
        over = min(self._waited[member, engine] for member in members)
        for member in members:
            mine, closed = self._flown[member, engine], self._closed[member, engine]
            for group in range(max(forgotten - 1, 0), over - 1):  # all who may wait for it know more than that
                closed[group] = closed[0]
            if mine and mine[0][0] < over:  # every warp has waited for these: no later wait asks for them
                mine[:] = [(group, access) for group, access in mine if group >= over]
        return moment

    def mark(self, marks: Marks, moments: Sequence[M], accesses: Accesses) -> None:
        """Enter the groups that an agent may yet wait for, counted back from the last one closed.

        ``moments``: what each agent knows. Where all who may wait for a group know by an mbarrier that an access is
        over, as of a product, a wait for the group adds nothing: an agent that learns of the wait also learns of that.
        """
        for agent, engine in self._closed:
            closed = self._closed[agent, engine]
            flown = self._flown[agent, engine]
            members = self._members(agent, engine)
            clocks = [clock for member in members for clock in _relations(moments[member])]
            flown[:] = [one for one in flown if not all(accesses.over(clock, one[1]) for clock in clocks)]
            waited = [self._waited[member, engine] for member in members]
            marks.shape += (agent, engine, len(flown))
            marks.shape += [len(closed) - groups for groups in waited]
            for pc, before in closed[max(min(waited) - 1, 0) :]:
                marks.moment(before.after_operation(agent, pc))
            for group, access in flown:
                marks.shape.append(len(closed) - group)
                marks.operations.append((access.agent, access.pc))

    def _members(self, agent: int, engine: int) -> tuple[int, ...]:
        return self._program.warp_groups[agent] if engine == Engine.WGMMA else (agent,)


def _relations(moment: Clock | Knowledge) -> Iterator[Clock]:
    """The clocks of which each contains what its agent knew, where it contains one of the agent's operations."""
    if isinstance(moment, Clock):
        yield moment
    else:
        yield from (moment.occurs, moment.ordered, moment.synced)
        if moment.tensor is not None:
            yield moment.tensor
