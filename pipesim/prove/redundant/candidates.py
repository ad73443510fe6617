"""The edits that could be removals: read off the program and one run of it, in the order of what they gain."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence

from pipesim.model.groups import ARRIVALS, BY_PARITY, COMMITS, DELAYED_ARRIVALS, LIFE, ON_NAMED_BARRIER, SIGNALS
from pipesim.model.machine import Flight, State, Step
from pipesim.model.moves import run_canonically
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


class _Arrivals:
    """Notes what operations of one run arrive at: which generation of a named barrier, which phase of an mbarrier."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._open: defaultdict[int, Counter[Place]] = defaultdict(Counter)
        self.generations: dict[Place, Hashable] = {}
        #: For each group of mbarriers the arrivals that each operation gives to each complete phase.
        self.shares: defaultdict[str, list[Counter[Place]]] = defaultdict(list)

    def on_step(self, before: State, agent: int, result: Step) -> None:
        pc = before.pcs[agent]
        op = self._program.code[agent][pc]
        moved = result.state.pcs[agent] != pc
        if op[0] in ON_NAMED_BARRIER:
            if not before.holds[agent] and (moved or result.state.holds[agent]):
                named = operand(op, "named_barrier")
                self.generations[agent, pc] = named, before.named[named][2]
        elif moved and op[0] in SIGNALS:
            arrivals = operand(op, "count") if op[0] in ARRIVALS else 0
            self._give(operand(op, "barrier"), (agent, pc), arrivals, result)
        elif moved and op[0] == Op.INIT:
            self._open.pop(operand(op, "barrier"), None)

    def on_landing(self, flight: Flight, _: int, result: Step) -> None:
        if flight.barrier >= 0:
            self._give(flight.barrier, (flight.agent, flight.pc), flight.arrivals, result)

    def _give(self, barrier: int, place: Place, arrivals: int, result: Step) -> None:
        self._open[barrier][place] += arrivals
        if result.signalled == barrier:
            self.shares[self._program.barriers[barrier].name].append(self._open.pop(barrier))


def _meetings(
    program: Program, found: Mapping[SyncSite, Sequence[Place]], generations: Mapping[Place, Hashable]
) -> tuple[tuple[SyncSite, ...], ...]:
    """Groups of sites that meet, each of one kind: none of the one group ever meets one of another."""
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
            key = generations.get(place) if site.kind is SyncKind.NAMED else turns[place]
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
    found, arrivals = sites(program), _Arrivals(program)
    run_canonically(program, arrivals)
    together = _meetings(program, found, arrivals.generations)
    tried = [*((site,) for site in found if site.kind in _ALONE), *together]
    removals = (_removal(program, RemovalKind[some[0].kind.name], some[0].what, some, found) for some in tried)
    every = [*removals, *_arrives(program, found, arrivals.shares), *_mbarriers(program)]
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


def _arrives(
    program: Program, found: Mapping[SyncSite, Sequence[Place]], shares: Mapping[str, list[Counter[Place]]]
) -> Iterator[Removal]:
    """Arrives that give every phase equally many arrivals, of one line, or of all lines of a role."""
    counts = _counts(program)
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
