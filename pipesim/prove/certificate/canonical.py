"""The canonical run, round by round, with those who watch it: what the certificate is read off.

PTX has an arrival of ``tcgen05.commit``, or of ``cp.async.mbarrier.arrive``, come after the work before it, and after
no other commit. That commits of one thread keep their order is assumed (``Assumption.COMMITS``): the machine lets no
commit land before an earlier one (:func:`pipesim.model.moves.can_land`), so a phase is complete before the arrival of a
commit if each of its parts comes before that: earlier commits of the same thread, and operations that it knows of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from pipesim.model.coverage import Assumption
from pipesim.model.groups import BARRIER, DELAYED_ARRIVALS, NAMED_BARRIER
from pipesim.model.machine import Observer, State
from pipesim.model.moves import Committer, PlainRun, committer
from pipesim.model.ops import Engine, Op, Operation, operand
from pipesim.model.program import Program
from pipesim.prove.happens_before.snapshot import Clock, Lap, Marks, Snapshot, is_fresh, repeats


class Witness(Observer, Protocol):
    """An observer that can take a snapshot when a round is over."""

    def snapshot(self) -> Snapshot:
        """Everything that it may yet compare. Nothing is under way."""


class CanonicalSnapshot(NamedTuple):
    """Where a run is: what the machine and each observer remember, and the phases that each channel has completed."""

    snapshots: tuple[Snapshot, ...]
    phases: tuple[int, ...]


class CanonicalRun(PlainRun):
    """A run of which snapshots can be taken, and which can continue with another program."""

    _watching: Sequence[Witness]

    def fork(self, program: Program, watching: Sequence[Witness | None]) -> CanonicalRun:
        """The same moment of another program, which has the same tables and began with the same operations."""
        twin = CanonicalRun(program, watching)
        twin.state, twin.faults, twin.over = self.state, self.faults.copy(), self.over
        return twin

    def snapshot(self) -> CanonicalSnapshot:
        """A snapshot of the machine and of each observer."""
        snapshots = machine_snapshot(self.program, self.state), *(witness.snapshot() for witness in self._watching)
        return CanonicalSnapshot(snapshots, completed_phases(self.state))


def is_again(lap: Lap, earlier: CanonicalSnapshot, later: CanonicalSnapshot) -> bool:
    """True if no agent can distinguish the ends of the lap, and nothing that moves with it is older than it."""
    moved = tuple(b - a for a, b in zip(lap.begin, lap.end, strict=True))
    phases = tuple(b - a for a, b in zip(earlier.phases, later.phases, strict=True))
    return all(
        repeats(a, b, moved, phases) and is_fresh(a, b, lap)
        for a, b in zip(earlier.snapshots, later.snapshots, strict=True)
    )


def completed_phases(state: State) -> tuple[int, ...]:
    """The phases that each channel has completed: mbarriers, named barriers, the cluster barrier."""
    named = (generation for _, _, generation in state.named)
    return (*(word.done for word in state.barriers), *named, state.cluster[1])


def machine_snapshot(program: Program, state: State) -> Snapshot:
    """What the machine will do next depends on this; which item a cell holds is left out, as it steers nothing.

    Nothing is under way: a round of the canonical run ends with everything landed.
    """
    assert not state.flights
    marks = Marks()
    marks.operations += enumerate(state.pcs)
    marks.phases += enumerate(completed_phases(state))
    marks.shape += (state.registers, tuple(min(0, item) for item in state.cells))
    for word in state.barriers:
        marks.shape += (word.expected, word.pending, word.tx, word.done & 1, word.life)
    marks.shape += ((arrived, expected) for arrived, expected, _ in state.named)
    first_named = len(program.barriers)
    for agent, generation in enumerate(state.holds):
        marks.shape.append(generation > 0)
        if generation:
            marks.phases.append((first_named + program.code[agent][state.pcs[agent]][NAMED_BARRIER], generation))
    marks.shape.append(state.cluster[0])
    cluster = first_named + len(program.named_barriers)
    for generation in state.cluster_held:
        marks.shape.append(generation >= 0)
        if generation >= 0:
            marks.phases.append((cluster, generation))
    marks.shape.append(_lead(program, state))
    return marks.snapshot()


def _lead(program: Program, state: State) -> tuple[int, ...]:
    """How many wgmma groups each agent has closed more than the first of its warp group has."""

    def closed(agent: int) -> int:
        return state.commits[agent * len(Engine) + Engine.WGMMA]

    return tuple(closed(a) - closed(group[0]) if a in group else 0 for a, group in enumerate(program.warp_groups))


@dataclass
class _Parts:
    """The parts of a phase: the last operation of each agent, and the last commit of each committer."""

    operations: dict[int, int] = field(default_factory=dict)
    commits: dict[Committer, int] = field(default_factory=dict)
    others: bool = False  #: bytes, or an arrival that keeps no order

    def come_before(self, clock: Clock, by: Committer) -> bool:
        """True if all of them come before the next commit of ``by``, whose moment is known otherwise."""
        known = all(clock.covers(agent, pc) for agent, pc in self.operations.items())
        return known and not self.others and self.commits.keys() <= {by}

    def mark(self, marks: Marks) -> None:
        marks.shape += (len(self.operations), tuple(sorted(self.commits)), self.others)
        marks.operations += sorted(self.operations.items())
        marks.operations += [(agent, pc) for (agent, _), pc in sorted(self.commits.items())]


class _Phase(NamedTuple):
    """The latest phase of a channel that is complete: its number, its parts, and the moment after its completion."""

    number: int
    parts: _Parts
    moment: Clock


class _Commit(NamedTuple):
    """The latest commit that has arrived: what comes before it, and the phases (channel, number) that it is part of."""

    pc: int
    moment: Clock
    phases: tuple[tuple[int, int], ...]


class CommitOrder:
    """Watches the channels of one run on which commits arrive that keep their order, if any do."""

    def __init__(self, program: Program) -> None:
        commits = list(_commits(program)) if program.commits_in_order and program.commits_again else []
        keep_none = {(agent, op[0]) for agent, op in commits if committer(agent, op) is None}
        kept = [(agent, op) for agent, op in commits if (agent, op[0]) not in keep_none]
        self._committers = {committer(agent, op) for agent, op in kept}
        self._channels = {bar for _, op in kept for bar in _barriers(program, op)}
        self._open: dict[int, _Parts] = {}
        self._complete: dict[int, _Phase] = {}
        self._latest: dict[Committer, _Commit] = {}

    def fork(self, program: Program) -> CommitOrder:
        """The same for another program, which has the same tables and began with the same operations."""
        twin = CommitOrder(program)
        twin._open = {
            channel: replace(parts, operations=parts.operations.copy(), commits=parts.commits.copy())
            for channel, parts in self._open.items()
        }
        twin._complete, twin._latest = self._complete.copy(), self._latest.copy()
        return twin

    def committer(self, agent: int, op: Operation) -> Committer | None:
        """Whose later commits arrive after what this operation has put under way; None: no commits."""
        by = committer(agent, op) if self._committers and op[0] in DELAYED_ARRIVALS else None
        return by if by in self._committers else None

    def before_arrival(self, by: Committer | None, pc: int, issued: Clock) -> Clock:
        """What comes before an arrival of the commit at ``pc``: the moment of its issue, and what follows from those
        before it. (The arrivals of one multicast commit have no order.)
        """
        if by is None:
            return issued
        latest = self._latest.get(by)
        if latest is None or latest.pc == pc:
            moment = issued if latest is None else latest.moment
        else:
            moment = latest.moment.join(issued)
            for channel, number in latest.phases:
                phase = self._complete.get(channel)
                if phase is not None and phase.number == number and phase.parts.come_before(moment, by):
                    moment = moment.join(phase.moment)
            latest = None
        self._latest[by] = latest or _Commit(pc, moment, ())
        return moment

    def operation(self, channel: int, agent: int, pc: int) -> None:
        """An operation is counted in the open phase of a channel."""
        if channel in self._channels:
            made = self._open.setdefault(channel, _Parts()).operations
            made[agent] = max(pc, made.get(agent, pc))

    def arrival(self, channel: int, by: Committer | None, pc: int, number: int) -> None:
        """So is what the operation at ``pc`` has put under way; this is the number of that phase."""
        if channel not in self._channels:
            return
        parts = self._open.setdefault(channel, _Parts())
        if by is None:
            parts.others = True
            return
        parts.commits[by] = pc
        latest = self._latest[by]
        self._latest[by] = latest._replace(phases=(*latest.phases, (channel, number)))

    def complete(self, channel: int, number: int, moment: Clock) -> None:
        """The phase of this number is complete; the moment knows so."""
        if channel in self._channels:
            self._complete[channel] = _Phase(number, self._open.pop(channel, _Parts()), moment)

    def mark(self, marks: Marks) -> None:
        """Enter what later commits will be compared with."""
        for channel, parts in sorted(self._open.items()):
            marks.shape.append(channel)
            parts.mark(marks)
        for by, latest in sorted(self._latest.items()):
            marks.shape += (by, len(latest.phases))
            marks.operations.append((by[0], latest.pc))
            marks.moment(latest.moment)
            marks.phases += latest.phases
        asked = {channel for latest in self._latest.values() for channel, _ in latest.phases}
        for channel in sorted(asked & self._complete.keys()):
            phase = self._complete[channel]
            marks.phases.append((channel, phase.number))
            phase.parts.mark(marks)
            marks.moment(phase.moment)


def by_rules_for_commits(program: Program) -> tuple[Program, ...]:
    """The program where commits of one thread keep no order; then, if that may be assumed and matter, where they do."""
    if not (program.commits_in_order and program.commits_again):
        return (program,)
    return program.with_strictness(program.strictness | {Assumption.COMMITS}), program


def _commits(program: Program) -> Iterator[tuple[int, Operation]]:
    """Each agent with each of its operations that lets an mbarrier know when earlier work is complete."""
    for agent, code in enumerate(program.code):
        yield from ((agent, op) for op in set(code) if op[0] in DELAYED_ARRIVALS and operand(op, "barrier") >= 0)


def _barriers(program: Program, op: Operation) -> list[int]:
    return [op[BARRIER]] if op[0] == Op.CP_ASYNC_ARRIVE else program.commit_barriers(op)
