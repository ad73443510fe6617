"""Which sites of named barriers and of the cluster barrier meet each other: an edit removes all that meet, or none."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from pipesim.explain.phases import run_canonically
from pipesim.model.groups import ON_NAMED_BARRIER
from pipesim.model.machine import Flight, State, Step
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program
from pipesim.prove.redundant.sites import Place, SyncKind, SyncSite


class _Joined:
    """Notes at which generation of its named barrier each operation of one run arrives."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.generations: dict[Place, Hashable] = {}

    def stepped(self, before: State, agent: int, result: Step) -> None:
        pc = before.pcs[agent]
        op = self._program.code[agent][pc]
        if op[0] not in ON_NAMED_BARRIER:
            return
        moved = result.state.pcs[agent] != pc
        if not before.holds[agent] and (moved or result.state.holds[agent]):
            named = operand(op, "named_barrier")
            self.generations[agent, pc] = named, before.named[named][2]

    def landed(self, flight: Flight, nbytes: int, result: Step) -> None:
        """Transfers meet nobody."""


def meetings(program: Program, found: Mapping[SyncSite, Sequence[Place]]) -> tuple[tuple[SyncSite, ...], ...]:
    """Groups of sites that meet, each of one kind: none of the one group ever meets one of another."""
    joined = _Joined(program)
    if any(site.kind is SyncKind.NAMED for site in found):
        run_canonically(program, observers=(joined,))
    turns = {place: turn for agent in range(len(program.agents)) for place, turn in _cluster_turns(program, agent)}
    group: dict[SyncSite, SyncSite] = {}
    first: dict[Hashable, SyncSite] = {}

    def head(site: SyncSite) -> SyncSite:
        while group.setdefault(site, site) != site:
            site = group[site]
        return site

    for site, places in found.items():
        if site.kind not in (SyncKind.NAMED, SyncKind.CLUSTER):
            continue
        head(site)
        for place in places:
            key = joined.generations.get(place) if site.kind is SyncKind.NAMED else turns[place]
            if key is not None:
                group[head(site)] = head(first.setdefault((site.kind, key), site))
    together: dict[SyncSite, list[SyncSite]] = {}
    for site in group:
        together.setdefault(head(site), []).append(site)
    return tuple(tuple(some) for some in together.values())


def _cluster_turns(program: Program, agent: int) -> list[tuple[Place, int]]:
    """For each operation of an agent on the cluster barrier how many of its kind the agent has executed before."""
    turns = {Op.CLUSTER_ARRIVE: 0, Op.CLUSTER_WAIT: 0}
    found: list[tuple[Place, int]] = []
    for pc, op in enumerate(program.code[agent]):
        kind = Op(op[0])
        if kind in turns:
            found.append(((agent, pc), turns[kind]))
            turns[kind] += 1
    return found
