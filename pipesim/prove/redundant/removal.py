"""One edit that leaves synchronisation out of a program: what it takes away, and what it changes elsewhere for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pipesim.errors import ProgramFormatError
from pipesim.model.edits import changed, deleted, listing, with_listings
from pipesim.model.groups import ON_BARRIER, PARITY_TRIES, READS_REGISTER
from pipesim.model.ops import Op, Operation, operand, with_operand
from pipesim.model.program import Program
from pipesim.prove.redundant.sites import SyncSite, sites


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

    def within(self, other: Removal) -> bool:
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
            new[agent] = deleted(changed(before, counts), mine)
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
