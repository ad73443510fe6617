"""A removal in a sentence for a person who edits the kernel."""

from __future__ import annotations

from typing import assert_never

from pipesim.model.ops import Engine, Fence
from pipesim.model.program import Program
from pipesim.prove.redundant.removal import Removal, RemovalKind
from pipesim.prove.redundant.sites import SyncKind

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
            return f"named barrier {what}: the {_plural('bar.sync', removal)} of {who}"
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


def _plural(word: str, removal: Removal) -> str:
    return word if len(removal.sites) == 1 else f"{len(removal.sites)} {word}"


def _names(roles: tuple[str, ...]) -> str:
    return roles[0] if len(roles) == 1 else f"{', '.join(roles[:-1])} and {roles[-1]}"
