"""The canonical run, round by round, with those who watch it: what the certificate is read off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from pipesim.explain.phases import canonical_round
from pipesim.model.finding import Fault
from pipesim.model.groups import NAMED_BARRIER
from pipesim.model.machine import Observer, State, finished, initial_state
from pipesim.model.ops import Engine
from pipesim.model.program import Program
from pipesim.prove.happens_before.snapshot import Lap, Marks, Snapshot, is_fresh, repeats

_NO_LIMIT = 1 << 62


class Witness(Observer, Protocol):
    """An observer that can take a snapshot when a round is over."""

    def snapshot(self) -> Snapshot:
        """Everything that it may yet compare. Nothing is under way."""


class CanonicalSnapshot(NamedTuple):
    """Where a run is: what the machine and each observer remember, and the phases that each channel has completed."""

    snapshots: tuple[Snapshot, ...]
    phases: tuple[int, ...]


class CanonicalRun:
    """A program on its canonical way. ``over``: nothing moves any more, or a fault has stopped it."""

    def __init__(self, program: Program, watching: Sequence[Witness] = ()) -> None:
        self.program = program
        self.state = initial_state(program)
        self.faults: list[Fault] = []
        self.over = False
        self._watching = watching

    def fork(self, program: Program, watching: Sequence[Witness]) -> CanonicalRun:
        """The same moment of another program, which has the same tables and began with the same operations."""
        twin = CanonicalRun(program, watching)
        twin.state, twin.faults, twin.over = self.state, self.faults.copy(), self.over
        return twin

    @property
    def finished(self) -> bool:
        """True if every agent has run its last operation."""
        return all(finished(self.program, self.state, agent) for agent in range(len(self.program.agents)))

    def round(self) -> None:
        """Each agent as far as it goes, and what is in flight lands."""
        done = canonical_round(self.program, self.state, self._watching, _NO_LIMIT)
        self.state = done.state
        self.faults += done.faults
        self.over = not done.moved or any(fault.kind.traps for fault in done.faults)

    def to_end(self) -> None:
        """On until it is over."""
        while not self.over:
            self.round()

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
