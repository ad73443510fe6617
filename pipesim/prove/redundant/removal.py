"""One edit that leaves synchronisation out of a program: what it takes away, and what it changes elsewhere for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, assert_never

from pipesim.errors import ProgramFormatError
from pipesim.model.edits import delete_operations, listing, replace_operations, with_listings
from pipesim.model.groups import (
    BLOCKING_WAITS,
    CLUSTER,
    COMMITS,
    DELAYED_ARRIVALS,
    ON_BARRIER,
    ON_NAMED_BARRIER,
    PARITY_TRIES,
    READS_REGISTER,
)
from pipesim.model.ops import Engine, Fence, Op, Operation, operand, with_operand
from pipesim.model.program import Program
from pipesim.model.tables import NAMED_BARRIERS

# The places of a program's text that synchronise: what one line does to one thing, in all agents and iterations.
#
# Left out is what the proof does not check, so that removing it could never be seen to be wrong: ``tcgen05.fence``,
# ``fence.sc``, the proxy of tensor maps (docs/memory-order.md). Of a kernel's PTX also waits for groups of the tensor
# cores and ``bar.warp.sync``: its reader has used them to follow registers and lanes, and the program no longer shows
# it.


class SyncKind(Enum):
    """What a site does. In the order of what removing it gains: what waits before what only issues."""

    NAMED = "named barrier"  #: bar.sync and bar.arrive
    CLUSTER = "cluster barrier"  #: barrier.cluster.arrive and wait
    WAIT = "wait"  #: for a phase of an mbarrier
    GROUP_WAIT = "group wait"  #: for a group of transfers of the own thread
    ARRIVE = "arrive"  #: on an mbarrier, also by a commit or by cp.async
    FENCE = "fence"


class SyncSite(NamedTuple):
    """One source line and what it synchronises. ``what``: the mbarrier's name, or a number as the operation has it."""

    kind: SyncKind
    line: str
    what: str


Place = tuple[int, int]  #: an agent and the position of an operation in its code

_JUDGED_FENCES = frozenset({Fence.MBARRIER_INIT, Fence.PROXY_ASYNC, Fence.ACQ_REL})
_TENSOR_CORES = frozenset({Engine.WGMMA, Engine.TCGEN05})


def sites(program: Program) -> Mapping[SyncSite, Sequence[Place]]:
    """Every site with the operations that it records, in the order in which agents reach them."""
    found: dict[SyncSite, list[Place]] = {}
    for agent, code in enumerate(program.code):
        for pc, op in enumerate(code):
            kind = kind_of(program, op)
            if kind is not None:
                found.setdefault(SyncSite(kind, program.line(agent, pc), _what(program, kind, op)), []).append(
                    (agent, pc)
                )
    return found


def is_of_kernel(program: Program) -> bool:
    """True for a program that was read from a kernel's PTX."""
    return bool(program.coverage.extracted)


def kind_of(program: Program, op: Operation) -> SyncKind | None:
    """What an operation synchronises; None if nothing that may be left out and is checked."""
    if op[0] in BLOCKING_WAITS:
        return SyncKind.WAIT
    if op[0] == Op.WAIT_GROUP:
        read_by_thread = is_of_kernel(program) and operand(op, "engine") in _TENSOR_CORES
        return None if read_by_thread else SyncKind.GROUP_WAIT
    if op[0] == Op.FENCE:
        return SyncKind.FENCE if operand(op, "fence") in _JUDGED_FENCES else None
    if op[0] in ON_NAMED_BARRIER:
        of_lanes = program.named_barrier(op) >= NAMED_BARRIERS
        return None if of_lanes and is_of_kernel(program) else SyncKind.NAMED
    if op[0] in CLUSTER:
        return SyncKind.CLUSTER
    return SyncKind.ARRIVE if arrives_only(op) else None


def arrives_only(op: Operation) -> bool:
    """True for an arrive that expects no bytes and whose state token is dropped."""
    if op[0] == Op.ARRIVE:
        return not operand(op, "expect") and operand(op, "register") < 0
    if op[0] in COMMITS:
        return operand(op, "barrier") >= 0
    return op[0] in DELAYED_ARRIVALS


def _what(program: Program, kind: SyncKind, op: Operation) -> str:
    match kind:
        case SyncKind.WAIT | SyncKind.ARRIVE:
            return program.barriers[operand(op, "barrier")].name
        case SyncKind.GROUP_WAIT:
            return str(operand(op, "engine"))
        case SyncKind.FENCE:
            return str(operand(op, "fence"))
        case SyncKind.NAMED:
            return str(program.named_barrier(op))
        case SyncKind.CLUSTER:
            return ""


class RemovalKind(Enum):
    """What is removed. In the order of what it gains."""

    MBARRIER = "mbarrier"  #: all that is done with a group of mbarriers, their inits as well
    NAMED = "named barrier"  #: the bar.sync and bar.arrive that meet each other
    CLUSTER = "cluster barrier"  #: an arrive and the wait for it
    WAIT = "wait"
    GROUP_WAIT = "group wait"
    ARRIVE = "arrive"  #: and the count of the init lowered by it
    FENCE = "fence"


@dataclass(frozen=True)
class Removal:
    """An edit of the program's text.

    ``sites``: the source lines that lose an operation. ``what``: the mbarriers, the number of the named barrier, of the
    engine or of the fence. ``fewer``: by how much the init's count is lowered. ``count``: what the count was, 0 where
    none is changed. ``roles``: who executes the sites. ``times``: executions of one agent, the most of any.
    """

    edit: RemovalKind
    what: str
    sites: tuple[SyncSite, ...]
    roles: tuple[str, ...]
    times: int
    fewer: int = 0
    count: int = 0

    def within(self, other: "Removal") -> bool:
        """True if ``other`` takes away all that this one does."""
        mine = other.edit is RemovalKind.MBARRIER and self.what == other.what
        return set(self.sites) <= set(other.sites) or (mine and self.edit in (RemovalKind.WAIT, RemovalKind.ARRIVE))


def without(program: Program, *removals: Removal) -> Program | None:
    """The program after these edits; None if that makes no program, or one that is the same."""
    gone = {site for removal in removals for site in removal.sites}
    places = {place for site, where in sites(program).items() if site in gone for place in where}
    groups = {removal.what for removal in removals if removal.edit is RemovalKind.MBARRIER}
    lowered = {removal.what: 0 for removal in removals if removal.fewer and removal.what not in groups}
    for removal in removals:
        if removal.what in lowered and removal.edit is RemovalKind.ARRIVE:
            lowered[removal.what] += removal.fewer
    new = {}
    for agent in range(len(program.agents)):
        before = listing(program, agent)
        mine = {pc for at, pc in places if at == agent}
        mine |= {pc for pc, op in enumerate(before.code) if group_of(program, op) in groups}
        counts = {
            pc: with_operand(op, "count", operand(op, "count") - lowered[group_of(program, op)])
            for pc, op in enumerate(before.code)
            if op[0] == Op.INIT and group_of(program, op) in lowered
        }
        if any(operand(op, "count") < 1 for op in counts.values()):
            return None
        mine |= _idle_tries(before.code, mine)
        if mine or counts:
            new[agent] = delete_operations(replace_operations(before, counts), mine)
    try:
        return with_listings(program, new) if new else None
    except ProgramFormatError:
        return None


def group_of(program: Program, op: Operation) -> str:
    """The name of the mbarriers that an operation is about, "" if it is about none."""
    if op[0] not in ON_BARRIER or operand(op, "barrier") < 0:
        return ""
    return program.barriers[operand(op, "barrier")].name


def _idle_tries(code: tuple[Operation, ...], gone: set[int]) -> set[int]:
    """The tries whose answer only a wait reads that is taken away: they are a part of it."""
    asked = {operand(code[pc], "register") for pc in gone if code[pc][0] == Op.WAIT_UNLESS}
    asked -= {operand(op, "register") for pc, op in enumerate(code) if op[0] in READS_REGISTER and pc not in gone}
    return {pc for pc, op in enumerate(code) if op[0] in PARITY_TRIES and operand(op, "register") in asked}


_FENCES = {
    Fence.MBARRIER_INIT: "fence.mbarrier_init",
    Fence.PROXY_ASYNC: "fence.proxy.async",
    Fence.ACQ_REL: "fence.acq_rel",
}
_GROUPS = {
    Engine.BULK: "bulk copies", Engine.CP_ASYNC: "cp.asyncs", Engine.WGMMA: "wgmmas", Engine.TCGEN05: "MMAs"
}  # fmt: skip


def said_of(program: Program, removal: Removal) -> str:
    """``load's wait for empty``; of an arrive also how the init changes."""
    who, what = _names(removal.roles), removal.what
    match removal.edit:
        case RemovalKind.MBARRIER:
            stages = sum(barrier.name == what and barrier.cta == 0 for barrier in program.barriers)
            barriers = f"the {stages} mbarriers" if stages > 1 else "the mbarrier"
            return f"{barriers} {what}: {_parts(removal)} of {who}"
        case RemovalKind.NAMED:
            syncs = "bar.sync" if len(removal.sites) == 1 else f"{len(removal.sites)} bar.sync"
            return f"named barrier {what}: the {syncs} of {who}"
        case RemovalKind.CLUSTER:
            return f"the cluster barrier, its arrive and its wait, of {who}"
        case RemovalKind.WAIT:
            return f"the wait for {what} of {who}"
        case RemovalKind.GROUP_WAIT:
            return f"the wait for the groups of {_GROUPS[Engine(int(what))]} of {who}"
        case RemovalKind.ARRIVE:
            left = removal.count - removal.fewer
            return f"the arrive on {what} of {who}, with an init count of {left:,} instead of {removal.count:,}"
        case RemovalKind.FENCE:
            return f"the {_FENCES[Fence(int(what))]} of {who}"
        case _:
            assert_never(removal.edit)


def lines_of(removal: Removal) -> tuple[str, ...]:
    """The author's lines that lose an operation, each once."""
    return tuple(dict.fromkeys(site.line for site in removal.sites if site.line))


def _parts(removal: Removal) -> str:
    kinds = {site.kind for site in removal.sites}
    named = [word for kind, word in ((SyncKind.WAIT, "waits"), (SyncKind.ARRIVE, "arrives")) if kind in kinds]
    return " and ".join(["inits", *named]) if len(named) < 2 else "inits, waits and arrives"


def _names(roles: tuple[str, ...]) -> str:
    return roles[0] if len(roles) == 1 else f"{', '.join(roles[:-1])} and {roles[-1]}"
