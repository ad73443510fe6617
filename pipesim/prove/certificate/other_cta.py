"""What reaches into another CTA, which must not have ended by then: parts of its phases, accesses to its memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipesim.model.groups import ACCESSES
from pipesim.model.ops import Op, Space
from pipesim.model.positions import ACCESS, ASYNC_ACCESS, BARRIER, COPY_MASK
from pipesim.model.program import Program
from pipesim.prove.doubt import Doubt, Why
from pipesim.prove.happens_before.access_event import AccessEvent
from pipesim.prove.happens_before.accesses import Accesses
from pipesim.prove.happens_before.clock import Clock
from pipesim.prove.happens_before.snapshot import Marks


class PhasePart(NamedTuple):
    """A part of a phase of a barrier in another CTA: of an operation, or of a flight (0: none)."""

    bar: int
    phase: int
    agent: int
    pc: int
    flight: int


class OtherCta:
    """The parts and accesses of one run of which no agent in the other CTA knows yet."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._parts: list[PhasePart] = []
        self._accesses: list[tuple[int, AccessEvent]] = []  # with the CTA whose memory it is

    def fork(self, program: Program) -> OtherCta:
        """The same for another program, which has the same tables."""
        twin = OtherCta(program)
        twin._parts = self._parts.copy()
        twin._accesses = self._accesses.copy()
        return twin

    def part(self, part: PhasePart) -> None:
        """Something is counted on a barrier; of interest if that lies in another CTA than its agent."""
        if self._program.barriers[part.bar].cta != self._program.agents[part.agent].cta:
            self._parts.append(part)

    def access(self, access: AccessEvent) -> None:
        """The same of an access. A multicast lands where the barrier is that it signals, or in that one's pair."""
        program, op = self._program, self._program.code[access.agent][access.pc]
        memory = program.accesses[op[ACCESS] if op[0] in ACCESSES else op[ASYNC_ACCESS]]
        if op[0] == Op.TMA_LOAD and op[COPY_MASK]:
            cta = program.cell_ctas[access.first]
            if program.barriers[op[BARRIER]].cta != memory.cta and cta != program.agents[access.agent].cta:
                self._accesses.append((cta, access))
            return
        if memory.cta != self._program.agents[access.agent].cta and memory.space != Space.GLOBAL:
            self._accesses.append((memory.cta, access))

    def doubts(self, clocks: Sequence[Clock], accesses: Accesses) -> list[Doubt]:
        """What may come when its CTA has ended; the clocks are those of all agents at the end of the run."""
        found = []
        by_cta = [self._ends(clocks, cta) for cta in range(self._program.ctas)] if self._parts or self._accesses else []
        for part in self._parts:
            ends = by_cta[self._program.barriers[part.bar].cta]
            if ends and not any(_knows(clock, part) for clock in ends):
                found.append(Doubt(Why.EXIT, part.agent, part.pc, _all(ends), where=part.bar))
        for cta, access in self._accesses:
            ends = by_cta[cta]
            if ends and not any(accesses.over(clock, access) for clock in ends):
                found.append(Doubt(Why.EXIT, access.agent, access.pc, _all(ends)))
        return found

    def mark(self, marks: Marks, clocks: Sequence[Clock], accesses: Accesses) -> None:
        """Enter what no agent of the other CTA knows of yet; what one knows it knows for good."""
        self._parts = [part for part in self._parts if not self._is_known(part, clocks)]
        self._accesses = [
            (cta, access)
            for cta, access in self._accesses
            if not any(accesses.over(clocks[a], access) for a in self._of_cta(cta))
        ]
        for cta, access in self._accesses:
            marks.shape += (cta, access.flight > 0, access.engine)
            marks.operations.append((access.agent, access.pc))
            if access.flight:
                accesses.mark_end(marks, access.agent, access.engine, access.flight)
        for part in self._parts:
            marks.shape += (part.bar, part.flight > 0)
            marks.phases.append((part.bar, part.phase))
            marks.operations.append((part.agent, part.pc))

    def _is_known(self, part: PhasePart, clocks: Sequence[Clock]) -> bool:
        there = self._of_cta(self._program.barriers[part.bar].cta)
        return any(_knows(clocks[agent], part) for agent in there)

    def _ends(self, clocks: Sequence[Clock], cta: int) -> list[Clock]:
        """What each agent of a CTA knows at its end. A CTA without agents has none, and never exits."""
        return [clocks[a].after(a, len(self._program.code[a]) - 1) for a in self._of_cta(cta)]

    def _of_cta(self, cta: int) -> list[int]:
        return [a for a, agent in enumerate(self._program.agents) if agent.cta == cta]


def _knows(clock: Clock, part: PhasePart) -> bool:
    """True if this part of a phase occurs before the moment. No later commit tells that an earlier one has arrived."""
    return clock.known[part.bar] > part.phase or (not part.flight and clock.covers(part.agent, part.pc))


def _all(clocks: Sequence[Clock]) -> tuple[int, ...]:
    """The operations of each agent that one of the clocks has seen."""
    return tuple(map(max, *(clock.seen for clock in clocks))) if len(clocks) > 1 else tuple(clocks[0].seen)
