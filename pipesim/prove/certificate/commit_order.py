"""What a commit shows of the commits before it, where those of one thread arrive in the order of their issue.

PTX has an arrival of ``tcgen05.commit``, or of ``cp.async.mbarrier.arrive``, come after the work before it, and after
no other commit. That commits of one thread keep their order is assumed (``Assumption.COMMITS``): the machine lets no
commit land before an earlier one (:func:`pipesim.model.moves.can_land`), so a phase is complete before the arrival of a
commit if each of its parts comes before that: earlier commits of the same thread, and operations that it knows of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pipesim.model.coverage import Assumption
from pipesim.model.groups import BARRIER, DELAYED_ARRIVALS
from pipesim.model.moves import Committer, committer
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program
from pipesim.prove.happens_before.snapshot import Clock, Marks


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
