"""Where an observer of a run is, so that a later moment can be recognised as the same, some laps of a loop on.

A snapshot is a shape, in which nothing moves with the laps, and two rows of places: operations as (agent, position) and
phases as (channel, number). A later snapshot repeats an earlier one if every place has either moved with its agent or
channel, or stayed where it was, and whatever stayed lies before all that moves. Then the observer cannot tell the two
moments apart: all that it ever does with places is compare those of one agent, or of one channel.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

# What comes before a moment of one run, under each relation that the memory model knows.
#
# *Occurs-before* has every edge of the run. *Ordered-before* has those that a release and an acquire make, whatever
# their scope; *synchronised-before* those whose scope reaches the other side as well. Of what is synchronised before,
# ``fence.proxy.async`` makes the writes visible to the asynchronous proxy, and ``fence.mbarrier_init`` the inits to all
# agents.


class Knowledge(NamedTuple):
    """One clock for each relation; ``proxied``, ``published`` and ``tensor``: what a fence has passed on.

    ``tensor``: accesses to tensor memory before ``tcgen05.fence::before_thread_sync`` or a ``tcgen05.commit``, passed
    on by synchronisation of any strength; ``full``: of ``fence.sc``. None where nothing depends on it.
    """

    occurs: Clock
    ordered: Clock
    synced: Clock
    proxied: Clock
    published: Clock
    tensor: Clock | None
    full: FullFences | None = None

    def join(self, other: Knowledge) -> Knowledge:
        """What comes before either moment. Relations that are the same in both stay one object, and cost once."""
        if self is other:
            return self
        occurs = self.occurs.join(other.occurs)
        same = self.ordered is self.occurs and other.ordered is other.occurs
        ordered = occurs if same else self.ordered.join(other.ordered)
        same = self.synced is self.ordered and other.synced is other.ordered
        synced = ordered if same else self.synced.join(other.synced)
        proxied, published = _join(self.proxied, other.proxied), _join(self.published, other.published)
        tensor = self.tensor if self.tensor is None or other.tensor is None else _join(self.tensor, other.tensor)
        full = self.full and other.full and self.full.join(other.full)
        return _new(Knowledge, (occurs, ordered, synced, proxied, published, tensor, full or self.full or other.full))

    def after_operation(self, agent: int, pc: int) -> Knowledge:
        """The moment after the agent's operation at ``pc``. Only a fence releases anything."""
        before, before_ordered, before_synced, proxied, published, tensor, full = self
        occurs = before.after_operation(agent, pc)
        ordered = occurs if before_ordered is before else before_ordered.after_operation(agent, pc)
        synced = ordered if before_synced is before_ordered else before_synced.after_operation(agent, pc)
        return _new(Knowledge, (occurs, ordered, synced, proxied, published, tensor, full))

    def with_phases(self, channel: int, phases: int) -> Knowledge:
        """The same, and this many phases of the channel are known to be complete."""
        before, before_ordered, before_synced, proxied, published, tensor, full = self
        occurs = before.with_phases(channel, phases)
        ordered = occurs if before_ordered is before else before_ordered.with_phases(channel, phases)
        synced = ordered if before_synced is before_ordered else before_synced.with_phases(channel, phases)
        tensor = tensor if tensor is None else tensor.with_phases(channel, phases)
        return _new(Knowledge, (occurs, ordered, synced, proxied, published, tensor, full))


class FullFences(NamedTuple):
    """Of ``fence.sc``: what is synchronised before some that are ``before`` a moment; what one that comes now has
    before it (``open``), since otherwise it would come before a fence whose thread's write was observed; and what a
    strong write tells so whoever observes it (``told``).
    """

    before: Clock
    open: Clock
    told: Clock

    def join(self, other: FullFences) -> FullFences:
        """What is known of either moment."""
        return FullFences(*(_join(one, its) for one, its in zip(self, other, strict=True)))


def _join(one: Clock, other: Clock) -> Clock:
    return one if one is other else one.join(other)


class PhaseKnowledge(NamedTuple):
    """What the parts of a phase hand to those who wait for it; ``near``: without what other CTAs' agents pass on."""

    wide: Knowledge
    near: Knowledge

    def join(self, other: PhaseKnowledge) -> PhaseKnowledge:
        """Both phases' parts."""
        wide = self.wide.join(other.wide)
        return PhaseKnowledge(
            wide, wide if self.wide is self.near and other.wide is other.near else self.near.join(other.near)
        )

    def with_phases(self, channel: int, phases: int) -> PhaseKnowledge:
        """The same, and this many phases of the channel are known to be complete."""
        wide = self.wide.with_phases(channel, phases)
        return PhaseKnowledge(wide, wide if self.wide is self.near else self.near.with_phases(channel, phases))


_new = tuple.__new__  # of a named tuple: its own constructor, a function of Python's, takes twice as long


class Clock(NamedTuple):
    """``seen``: how many operations of each agent were carried out before; ``known``: how many phases of each channel.

    A channel is an mbarrier, a named barrier or the cluster barrier, as the machine numbers them.
    """

    seen: tuple[int, ...]
    known: tuple[int, ...]

    def join(self, other: Clock) -> Clock:
        """What occurs before either moment."""
        if self is other:
            return self
        seen, known = _highest(self.seen, other.seen), _highest(self.known, other.known)
        return other if seen is other.seen and known is other.known else _new(Clock, (seen, known))

    def after_operation(self, agent: int, pc: int) -> Clock:
        """The moment after the agent's operation at ``pc``, of which this is the one before."""
        seen = self.seen
        return _new(Clock, ((*seen[:agent], pc + 1, *seen[agent + 1 :]), self.known))

    def with_phases(self, channel: int, phases: int) -> Clock:
        """The same, and this many phases of the channel are known to be complete."""
        if self.known[channel] >= phases:
            return self
        return _new(Clock, (self.seen, (*self.known[:channel], phases, *self.known[channel + 1 :])))

    def covers(self, agent: int, pc: int) -> bool:
        """True if the agent's operation at ``pc`` occurs before this moment."""
        return self.seen[agent] > pc


def _highest(mine: tuple[int, ...], its: tuple[int, ...]) -> tuple[int, ...]:
    """The higher of each two counters: written out, since a call of ``max`` for each takes three times as long."""
    if mine == its:
        return its
    both = tuple([a if a > b else b for a, b in zip(mine, its, strict=True)])  # noqa: FURB136
    return its if both == its else both  # all who wait for a phase and know nothing else share one


P = TypeVar("P", Clock, PhaseKnowledge)


def forget_before(channel: int, done: list[P], joined: Mapping[tuple[int, int], int]) -> None:
    """Before another phase is done: forget the last, unless an agent has ``joined`` it, for which it will wait."""
    last = len(done) - 1
    if last > 0 and all(at != last or where != channel for (_, where), at in joined.items()):
        done[last] = done[0]


Places = tuple[tuple[int, int], ...]


class Lap(NamedTuple):
    """One lap of a family: where each agent is when it begins and when it ends."""

    begin: tuple[int, ...]
    end: tuple[int, ...]


class Snapshot(NamedTuple):
    """What an observer remembers: ``shape``, operations as (agent, pc) and phases as (channel, number).

    ``clocks`` are rows of both, one place for each agent and each channel, kept whole: most of them are entered often.
    """

    shape: Hashable
    operations: Places
    phases: Places
    clocks: tuple[Clock, ...] = ()


Pairs = set[tuple[tuple[int, int], tuple[int, int]]]  #: a place in an earlier snapshot and in a later one


@dataclass
class Marks:
    """A snapshot being made: an observer appends to the three rows, always in the same order."""

    shape: list[Hashable] = field(default_factory=list)
    operations: list[tuple[int, int]] = field(default_factory=list)
    phases: list[tuple[int, int]] = field(default_factory=list)
    clocks: list[Clock] = field(default_factory=list)

    def moment(self, moment: Clock | Knowledge) -> None:
        """Enter all that its clocks say."""
        if isinstance(moment, Clock):
            self.clocks.append(moment)
        else:
            self.clocks += moment[:5]
            self.clocks += () if moment.tensor is None else (moment.tensor,)
            self.clocks += moment.full or ()

    def phase(self, phase: PhaseKnowledge) -> None:
        """Enter all that a phase passes on."""
        self.moment(phase.wide)
        self.moment(phase.near)

    def snapshot(self) -> Snapshot:
        """What was entered."""
        return Snapshot(tuple(self.shape), tuple(self.operations), tuple(self.phases), tuple(self.clocks))


def repeats(earlier: Snapshot, later: Snapshot, moved: Sequence[int], completed: Sequence[int]) -> bool:
    """True if ``later`` is ``earlier``, after agents ``moved`` so far and channels ``completed`` this many phases."""
    return (
        earlier.shape == later.shape
        and _lengths(earlier) == _lengths(later)
        and _shifted(_operations(earlier, later), moved)
        and _shifted(_phases(earlier, later), completed)
    )


def is_fresh(earlier: Snapshot, later: Snapshot, lap: Lap) -> bool:
    """True if no operation that is remembered and has moved with the laps is older than the last lap.

    ``later`` repeats ``earlier``.
    """
    return all(pc >= lap.begin[agent] for (_, before), (agent, pc) in _operations(earlier, later) if pc != before)


def _lengths(snapshot: Snapshot) -> tuple[int, int, int]:
    return len(snapshot.operations), len(snapshot.phases), len(snapshot.clocks)


def _operations(earlier: Snapshot, later: Snapshot) -> Pairs:
    """Each operation with the one that corresponds to it, and each such pair once."""
    pairs: Pairs = set(zip(earlier.operations, later.operations, strict=True))
    for before, now in set(zip(earlier.clocks, later.clocks, strict=True)):
        pairs.update(zip(enumerate(before.seen), enumerate(now.seen), strict=True))
    return pairs


def _phases(earlier: Snapshot, later: Snapshot) -> Pairs:
    """The same of phases."""
    pairs: Pairs = set(zip(earlier.phases, later.phases, strict=True))
    for before, now in set(zip(earlier.clocks, later.clocks, strict=True)):
        pairs.update(zip(enumerate(before.known), enumerate(now.known), strict=True))
    return pairs


def _shifted(pairs: Pairs, by: Sequence[int]) -> bool:
    """True if each place has moved by what its owner has, or not at all and then lies before all that moved."""
    stayed: dict[int, int] = {}
    moved: dict[int, int] = {}
    for (owner, before), (same, now) in pairs:
        if owner != same or now - before not in (0, by[owner]):
            return False
        if now != before:
            moved[owner] = min(before, moved.get(owner, before))
        else:
            stayed[owner] = max(before, stayed.get(owner, before))
    return all(by[owner] == 0 or last < moved.get(owner, last + 1) for owner, last in stayed.items())
