"""Where an observer of a run is, so that a later moment can be told to be the same, some laps of a loop on.

A snapshot is a shape, in which nothing moves with the laps, and two rows of places: operations as (agent, position) and
phases as (channel, number). A later snapshot repeats an earlier one if every place has either moved with its agent or
channel, or stayed where it was, and whatever stayed lies before all that moves. Then the observer cannot tell the two
moments apart: all that it ever does with places is compare those of one agent, or of one channel.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pipesim.prove.happens_before.clock import Clock
from pipesim.prove.happens_before.moment import Knowledge, PhaseKnowledge

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
            self.clocks += moment

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
    """Each operation with the one in its place, and each such pair once."""
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
