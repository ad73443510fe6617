"""Who fills what others give back: the groups of barriers that belong together, read off what the roles do.

A role that waits for ``empty`` and then signals ``full`` fills; one that waits for ``full`` and then arrives on
``empty`` gives back. Where both sides agree, the two groups are partners.
"""

from __future__ import annotations

from pipesim.model.groups import ENGINE_ACCESSES, PARITY_WAITS, SIGNALS, TOUCHES_MEMORY, WRITES_MEMORY
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program
from pipesim.prove.repair.order import gives_back
from pipesim.prove.repair.sites import barriers_of, members


def waited_before(program: Program, agent: int, group: str) -> set[str]:
    """The groups that the agent has waited for last when it signals a group."""
    found: set[str] = set()
    last = ""
    for op, site in zip(program.code[agent], program.instructions[agent], strict=True):
        if op[0] in PARITY_WAITS:
            last = site.about
        elif site.about == group and last and (op[0] == Op.ARRIVE or gives_back(op)):
            found.add(last)
    return found


def arriving_on(program: Program, group: str, but: str = "") -> list[int]:
    """The agents that arrive on a group, but those of one role."""
    mine = set(barriers_of(program, group))
    return [
        agent
        for agent, code in enumerate(program.code)
        if program.agents[agent].role != but
        and any((op[0] == Op.ARRIVE or gives_back(op)) and operand(op, "barrier") in mine for op in code)
    ]


def returned_after(program: Program, role: str, group: str) -> set[str]:
    """The groups for which others have waited last when they arrive on this one."""
    others = arriving_on(program, group, role)
    return set().union(*(waited_before(program, agent, group) for agent in others)) if others else set()


def shares_memory(program: Program, role: str, agents: list[int]) -> bool:
    """True if a role and one of these agents use the same memory: then one may have to wait for the other."""
    mine = {cell for agent in members(program, role) for cell in _cells(program, agent)}
    return any(not mine.isdisjoint(_cells(program, agent)) for agent in agents)


def _cells(program: Program, agent: int) -> set[int]:
    """The first cells of what an agent accesses; a multicast's in every CTA that it names a place in."""
    used = {operand(op, "access") for op in program.code[agent] if op[0] in TOUCHES_MEMORY}
    return {cell for access in used for cell in range(*program.cells[access])}


def uses_what_others_fill(program: Program, agent: int, engine: int) -> bool:
    """True if the agent's transfers on an engine use memory that agents of other roles write."""
    role = program.agents[agent].role
    used = {
        cell
        for op in program.code[agent]
        if op[0] in ENGINE_ACCESSES and operand(op, "engine") == engine
        for cell in range(*program.cells[operand(op, "access")])
    }
    written = {
        operand(op, "access")
        for other, code in enumerate(program.code)
        if program.agents[other].role != role
        for op in code
        if op[0] in WRITES_MEMORY
    }
    return any(not used.isdisjoint(range(*program.cells[access])) for access in written)


def first_parities(program: Program, role: str, group: str) -> tuple[int, ...]:
    """With which parity a role begins to wait for a group, as those who arrive on it tell.

    If they begin by waiting for what the role signals, it fills stages for them, and the first are free; if they expect
    the first to be free, it takes over what they fill. If neither: as other roles that wait for the group do.
    """
    told = {
        site.about
        for agent in members(program, role)
        for op, site in zip(program.code[agent], program.instructions[agent], strict=True)
        if op[0] in SIGNALS
    }
    theirs = {parity for n in arriving_on(program, group, role) for parity in begins(program, n, told).values()}
    if len(theirs) == 1:
        return (1 - theirs.pop(),)
    waited = {barrier for n in members(program, role) for barrier in begins(program, n, {group})}
    alike = {
        parity
        for n, agent in enumerate(program.agents)
        if agent.role != role
        for barrier, parity in begins(program, n, {group}).items()
        if not waited or barrier in waited
    }
    return tuple(alike) if len(alike) == 1 else (1, 0)


def begins(program: Program, agent: int, groups: set[str]) -> dict[int, int]:
    """The parities with which an agent begins to wait for the barriers of these groups, by barrier."""
    first: dict[int, int] = {}
    for op, site in zip(program.code[agent], program.instructions[agent], strict=True):
        if op[0] in PARITY_WAITS and site.about in groups:
            first.setdefault(operand(op, "barrier"), operand(op, "parity"))
    return first
