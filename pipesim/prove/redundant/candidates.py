"""The edits that could be removals: read off the program and one run of it, in the order of what they gain."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence

from pipesim.explain.phases import run_canonically
from pipesim.model.groups import ARRIVALS, BY_PARITY, COMMITS, DELAYED_ARRIVALS, LIFE, ON_NAMED_BARRIER
from pipesim.model.machine import Flight, State, Step
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program
from pipesim.prove.redundant.removal import (
    Place,
    Removal,
    RemovalKind,
    SyncKind,
    SyncSite,
    arrives_only,
    group_of,
    sites,
)


class _MeetingGenerations:
    """Notes at which generation of its named barrier each operation of one run arrives."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.generations: dict[Place, Hashable] = {}

    def on_step(self, before: State, agent: int, result: Step) -> None:
        pc = before.pcs[agent]
        op = self._program.code[agent][pc]
        if op[0] not in ON_NAMED_BARRIER:
            return
        moved = result.state.pcs[agent] != pc
        if not before.holds[agent] and (moved or result.state.holds[agent]):
            named = operand(op, "named_barrier")
            self.generations[agent, pc] = named, before.named[named][2]

    def on_landing(self, flight: Flight, nbytes: int, result: Step) -> None:
        """Transfers meet no agent."""


def meetings(program: Program, found: Mapping[SyncSite, Sequence[Place]]) -> tuple[tuple[SyncSite, ...], ...]:
    """Groups of sites that meet, each of one kind: none of the one group ever meets one of another."""
    joined = _MeetingGenerations(program)
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


_ALONE = (SyncKind.WAIT, SyncKind.GROUP_WAIT, SyncKind.FENCE)
_GAIN = list(RemovalKind)


def candidates(program: Program) -> tuple[Removal, ...]:
    """Every edit to be tried: what an agent executes most often first, then what waits before what only issues."""
    found = sites(program)
    tried = [*((site,) for site in found if site.kind in _ALONE), *meetings(program, found)]
    removals = (_removal(program, RemovalKind[some[0].kind.name], some[0].what, some, found) for some in tried)
    every = [*removals, *_arrives(program, found), *_mbarriers(program)]
    order = {site: n for n, site in enumerate(found)}
    last = len(order)

    def gain(removal: Removal) -> tuple[int, int, int]:
        return (-removal.times, _GAIN.index(removal.edit), min((order[s] for s in removal.sites), default=last))

    return tuple(sorted(every, key=gain))


def _removal(
    program: Program, edit: RemovalKind, what: str, some: Sequence[SyncSite], found: Mapping[SyncSite, Sequence[Place]],
    fewer: int = 0, count: int = 0,
) -> Removal:  # fmt: skip
    agents = Counter(agent for site in some for agent, _ in found[site])
    roles = dict.fromkeys(program.agents[agent].role for agent in sorted(agents))
    return Removal(edit, what, tuple(some), tuple(roles), max(agents.values()), fewer, count)


def _arrives(program: Program, found: Mapping[SyncSite, Sequence[Place]]) -> Iterator[Removal]:
    """Arrives that give every phase equally many arrivals, of one line, or of all lines of a role."""
    shares, counts = _shares(program), _counts(program)
    by_role: defaultdict[tuple[str, tuple[str, ...]], list[SyncSite]] = defaultdict(list)
    for site, places in found.items():
        if site.kind is SyncKind.ARRIVE:
            roles = tuple(dict.fromkeys(program.agents[agent].role for agent, _ in places))
            by_role[site.what, roles].append(site)
    for (group, _), some in by_role.items():
        tried = [*([site] for site in some), *([some] if len(some) > 1 else [])]
        for these in tried:
            given = {sum(phase[place] for site in these for place in found[site]) for phase in shares[group]}
            if len(given) == len(counts[group]) == 1 and 0 < min(given) < min(counts[group]):
                yield _removal(program, RemovalKind.ARRIVE, group, these, found, min(given), min(counts[group]))


def _counts(program: Program) -> Mapping[str, set[int]]:
    """The counts of the inits of each group of mbarriers."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    for op in (op for op in program.operations if op[0] == Op.INIT):
        found[group_of(program, op)].add(operand(op, "count"))
    return found


def _shares(program: Program) -> Mapping[str, list[Counter[Place]]]:
    """For each group of mbarriers the arrivals that each operation gives to each complete phase, in one run."""
    found: defaultdict[str, list[Counter[Place]]] = defaultdict(list)
    for phases in run_canonically(program).phases:
        for phase in phases:
            if phase.complete:
                given: Counter[Place] = Counter()
                for part in phase.contributions:
                    given[part.agent, part.pc] += part.arrivals
                found[program.barriers[phase.barrier].name].append(given)
    return found


def _mbarriers(program: Program) -> Iterator[Removal]:
    """Groups of mbarriers that only count arrivals, which are asked for by parity: they can go as a whole."""
    kept = {""}
    for op in program.operations:
        if not _is_plain(op):
            kept.add(group_of(program, op))
    for group in dict.fromkeys(barrier.name for barrier in program.barriers):
        if group in kept:
            continue
        each = Counter(
            agent for agent, code in enumerate(program.code) for op in code
            if group_of(program, op) == group and op[0] not in LIFE
        )  # fmt: skip
        if each:
            roles = dict.fromkeys(program.agents[agent].role for agent in sorted(each))
            lines = [site for site in sites(program) if site.what == group and site.kind in _OF_MBARRIER]
            yield Removal(RemovalKind.MBARRIER, group, tuple(lines), tuple(roles), max(each.values()))


_OF_MBARRIER = (SyncKind.WAIT, SyncKind.ARRIVE)


def _is_plain(op: tuple[int, ...]) -> bool:
    """True of what brings no bytes to an mbarrier and keeps no state token of it."""
    if op[0] in LIFE or op[0] == Op.ARRIVE_DROP:
        return op[0] in LIFE or not operand(op, "expect")
    if op[0] in ARRIVALS | DELAYED_ARRIVALS | COMMITS:
        return arrives_only(op)
    return op[0] in BY_PARITY
