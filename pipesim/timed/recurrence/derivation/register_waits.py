"""Which releases of registers a request waits for, where that is the same in every schedule.

Told for agents that make one ``setmaxnreg`` each: a warp group gives registers back, or all its warps ask for the same
number of more. A group that asks waits for one that gives back if without it even the first to ask lacks registers,
and does not if without it even the last has enough. Between the two it depends on who comes first.
"""

from __future__ import annotations

from collections.abc import Collection

from pipesim.model.program import Program
from pipesim.model.register_pool import RegisterPools


def releases_awaited(program: Program, agent: int) -> tuple[int, ...] | None:
    """The agents for whose request that of ``agent`` waits: nobody, or all of some warp groups. None if it depends."""
    pools = program.register_pools
    if pools is None:
        return ()
    cta, mine = program.agents[agent].cta, pools.members(agent)
    more: set[int] = set()  # who asks for more, beside the group of the agent
    less: list[set[int]] = []  # groups that give back
    for members in (members for (where, _), members in pools.groups.items() if where == cta):
        asked = [request.registers for a in members for request in pools.requests[a]]
        grows = max(asked, default=0) > pools.launched
        if any(len(pools.requests[a]) > 1 for a in members) or (grows and len(set(asked)) > 1):
            return None
        if members != mine and grows:
            more |= set(members)
        elif members != mine:
            less.append({a for a in members if pools.requests[a]})
    wanted, given_back = pools.requests[agent][0].registers, set[int]().union(*less)
    awaited = [members for members in less if _missing(pools, agent, wanted, given_back - members)]
    needed = set[int]().union(*awaited)
    return None if _missing(pools, agent, wanted, needed | more) else tuple(sorted(needed))


def _missing(pools: RegisterPools, agent: int, wanted: int, done: Collection[int]) -> bool:
    """Whether registers are missing for a request when these agents have made theirs, and nobody else has."""
    pcs = [requests[0].pc + (a in done) if requests else 0 for a, requests in enumerate(pools.requests)]
    return pools.missing(agent, pcs, wanted) > 0
