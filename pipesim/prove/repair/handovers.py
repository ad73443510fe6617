"""Which groups of barriers belong together, and who fills what others read.

A role that waits for ``empty`` and then signals ``full`` fills; one that waits for ``full`` and then arrives on
``empty`` gives back. Where both sides agree, the two groups are partners.
"""

from collections import Counter
from collections.abc import Collection, Set

from pipesim.model.groups import (
    COMMITS,
    ENGINE_ACCESSES,
    PARITY_WAITS,
    READS_MEMORY,
    SIGNALS,
    TOUCHES_MEMORY,
    WRITES_MEMORY,
)
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program
from pipesim.prove.repair.sites import ARRIVES, arrives, barrier_of, barriers_of, cells_of, executions, members


def waited_before(program: Program, agent: int, group: str) -> set[str]:
    """The groups that the agent has waited for last when it signals a group."""
    found: set[str] = set()
    last = ""
    for op, site in zip(program.code[agent], program.instructions[agent], strict=True):
        if op[0] in PARITY_WAITS:
            last = site.about
        elif site.about == group and last and arrives(op):
            found.add(last)
    return found


def arriving_on(program: Program, group: str, but: str = "") -> list[int]:
    """The agents that arrive on a group, but those of one role."""
    mine, agents = set(barriers_of(program, group)), program.agents
    every = (each.agent for each in executions(program, ops=ARRIVES) if barrier_of(each.op) in mine)
    return list(dict.fromkeys(agent for agent in every if agents[agent].role != but))


def returned_after(program: Program, role: str, group: str) -> set[str]:
    """The groups for which others have waited last when they arrive on this one."""
    return set().union(*(waited_before(program, agent, group) for agent in arriving_on(program, group, role)))


def shares_memory(program: Program, role: str, agents: list[int]) -> bool:
    """True if a role and one of these agents use the same memory: then one may have to wait for the other."""
    mine = _cells(program, members(program, role))
    return any(not mine.isdisjoint(_cells(program, [agent])) for agent in agents)


def _cells(program: Program, agents: Collection[int], by: Set[int] = TOUCHES_MEMORY) -> set[int]:
    """The cells of what agents access by these operations; a multicast's in every CTA that it names a place in."""
    used = {operand(op, "access") for agent in agents for op in program.code[agent] if op[0] in by}
    return {cell for access in used for cell in range(*program.cells[access])}


def readers_of(program: Program, agents: Collection[int]) -> frozenset[str]:
    """The roles of these agents, and those that read what they write; () if none does."""
    written, own = _cells(program, agents, WRITES_MEMORY), {program.agents[agent].role for agent in agents}
    others = {
        each.role for n, each in enumerate(program.agents) if not written.isdisjoint(_cells(program, [n], READS_MEMORY))
    }
    return frozenset(own | others) if others - own else frozenset()


def phases_of_writes(program: Program, group: str) -> dict[tuple[int, int], tuple[int, int]]:
    """Of each cell and item that is written the barrier of the group on which that is signalled first, and the phase.

    A copy is signalled on its own barrier; anything else on the next one of the group that its agent signals.
    """
    found: dict[tuple[int, int], tuple[int, int]] = {}
    mine = set(barriers_of(program, group))
    for code in program.code:
        given: Counter[int] = Counter()  # arrivals of this agent: one in each phase
        written: list[tuple[int, int]] = []
        for op in code:
            barrier = barrier_of(op) if op[0] in SIGNALS | COMMITS | {int(Op.TMA_LOAD)} else -1
            if op[0] in WRITES_MEMORY and (op[0] != Op.TMA_LOAD or barrier in mine):
                written += [(cell, operand(op, "item")) for cell in cells_of(program, op)]
            if barrier in mine:
                phase = barrier, max(given[barrier] - (op[0] == Op.TMA_LOAD), 0)
                given[barrier] += op[0] != Op.TMA_LOAD
                found |= {key: phase for key in written if key not in found}
                written = []
    return found


def uses_what_others_fill(program: Program, agent: int, engine: int) -> bool:
    """True if the agent's transfers on an engine use memory that agents of other roles write."""
    transfers = (op for op in program.code[agent] if op[0] in ENGINE_ACCESSES and operand(op, "engine") == engine)
    used = {cell for op in transfers for cell in cells_of(program, op)}
    others = [n for n, each in enumerate(program.agents) if each.role != program.agents[agent].role]
    return not used.isdisjoint(_cells(program, others, WRITES_MEMORY))


def first_parities(program: Program, role: str, group: str) -> tuple[int, ...]:
    """With which parity a role begins to wait for a group, as those who arrive on it tell.

    If they begin by waiting for what the role signals, it fills stages for them, and the first are free; if they expect
    the first to be free, it takes over what they fill. If neither: as other roles that wait for the group do.
    """
    told = {each.site.about for each in executions(program, role, SIGNALS)}
    theirs = {parity for n in arriving_on(program, group, role) for parity in _begins(program, n, told).values()}
    if len(theirs) == 1:
        return (1 - theirs.pop(),)
    waited = {barrier for n in members(program, role) for barrier in _begins(program, n, {group})}
    alike = {
        parity
        for n, agent in enumerate(program.agents)
        if agent.role != role
        for barrier, parity in _begins(program, n, {group}).items()
        if not waited or barrier in waited
    }
    return tuple(alike) if len(alike) == 1 else (1, 0)


def _begins(program: Program, agent: int, groups: Set[str]) -> dict[int, int]:
    """The parities with which an agent begins to wait for the barriers of these groups, by barrier."""
    first: dict[int, int] = {}
    for op, site in zip(program.code[agent], program.instructions[agent], strict=True):
        if op[0] in PARITY_WAITS and site.about in groups:
            first.setdefault(barrier_of(op), operand(op, "parity"))
    return first
