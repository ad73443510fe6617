"""Where corrections are made: roles, warps and lanes, instructions, barriers and their numbers."""

from __future__ import annotations

from collections.abc import Iterator

from pipesim.model.groups import ENGINE_ACCESSES, MEETING_WAITS, ON_NAMED_BARRIER, PRIVATE, SETS_UP
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.tables import NAMED_BARRIERS, SourceInstruction

_SILENT = PRIVATE - {int(Op.FENCE)}  #: no operation is placed beside them


def site_of(program: Program, agent: int, pc: int) -> SourceInstruction:
    """The instruction at this position of an agent."""
    return program.instructions[agent][pc]


def is_at(site: SourceInstruction, at: SourceInstruction) -> bool:
    """True for the instruction; where ``at`` has no line, for all such instructions on what it is about."""
    return site == at or (not at.line and (site.op, site.about) == (at.op, at.about))


def roles_of(program: Program) -> list[str]:
    """The roles, in the program's order."""
    return list(dict.fromkeys(agent.role for agent in program.agents))


def members(program: Program, role: str) -> list[int]:
    """The agents of a role, or of several with commas between; of the role "" all."""
    wanted = (role, *role.split(","))  # a role may have a comma in its own name
    return [n for n, agent in enumerate(program.agents) if not role or agent.role in wanted]


def families(program: Program) -> dict[str, str]:
    """Of each role that shares most of its lines with others those that do so, with commas between.

    Their code is one function of the author's: what is wrong in one of them often is in all. Where a line is
    many instructions, as of what a compiler makes of a loop, they have to share these.
    """
    sites: dict[str, set[SourceInstruction]] = {}
    for n, agent in enumerate(program.agents):
        mine = {
            site for site in program.instructions[n][begin_of(program, n) :] if site.op not in _SILENT and site.line
        }
        sites.setdefault(agent.role, set()).update(mine)
    every = set().union(*sites.values())
    by_line = 3 * len({site.line for site in every}) > len(every)
    found: dict[str, str] = {}
    plain = {
        role: {site.line if by_line else str(site) for site in each} for role, each in sites.items() if "," not in role
    }
    for role, own in plain.items():
        alike = [other for other, theirs in plain.items() if 2 * len(own & theirs) > max(len(own), len(theirs))]
        if len(alike) > 1:
            found[role] = ",".join(alike)
    return found


def warp_of(program: Program, agent: int) -> list[int]:
    """The agents that are lanes of the same warp, this one among them."""
    mine = program.agents[agent]
    return [n for n, each in enumerate(program.agents) if (each.cta, each.warp) == (mine.cta, mine.warp)]


def sites_of(program: Program, role: str) -> dict[SourceInstruction, None]:
    """The instructions of a role beside which others can be placed, in the order in which its agents reach them."""
    found: dict[SourceInstruction, None] = {}
    for agent in members(program, role):
        for pc, op in enumerate(program.code[agent]):
            if op[0] not in _SILENT:
                found[site_of(program, agent, pc)] = None
    return found


def begin_of(program: Program, agent: int) -> int:
    """Where the agent's own work begins, after the inits, and the fence and the barrier that publish them."""
    begin = 0
    for pc, op in enumerate(program.code[agent]):
        if op[0] in SETS_UP - ON_NAMED_BARRIER or is_syncthreads(program, agent, op):
            begin = pc + 1
        else:
            break
    return begin


def published_at(program: Program, agent: int) -> int:
    """Where an agent knows that the mbarriers of its CTA are initialised: after it has met those who did it."""
    place, me = begin_of(program, agent), program.agents[agent]
    for other, code in enumerate(program.code):
        inits = [
            pc
            for pc, op in enumerate(code)
            if op[0] == Op.INIT and program.barriers[operand(op, "barrier")].cta == me.cta
        ]
        met = next((pc for pc in range(inits[-1], len(code)) if code[pc][0] in MEETING_WAITS), -1) if inits else -1
        if other == agent:
            place = max(place, met + 1)
        elif met >= 0:
            meeting = _meeting(program, code[met])
            times = sum(_meeting(program, op) == meeting for op in code[: met + 1])
            mine = [pc for pc, op in enumerate(program.code[agent]) if _meeting(program, op) == meeting]
            place = max(place, mine[times - 1] + 1) if len(mine) >= times else place
    return place


def _meeting(program: Program, op: Operation) -> int:
    """The number of the named barrier that an operation waits at, -1 for the cluster; -2 of any other operation."""
    return program.named_barrier(op) if op[0] == Op.BAR_SYNC else -1 if op[0] == Op.CLUSTER_WAIT else -2


def is_syncthreads(program: Program, agent: int, op: Operation) -> bool:
    """True for a bar_sync of all threads of the agent's CTA."""
    if op[0] != Op.BAR_SYNC or program.named_barrier(op):
        return False
    return operand(op, "threads") == threads_of(program, program.agents[agent].cta)


def threads_of(program: Program, cta: int) -> int:
    """The threads of a CTA, as far as the program names its warps."""
    return 32 * len({agent.warp for agent in program.agents if agent.cta == cta})


def numbers_of(program: Program, agent: int) -> list[int]:
    """The named barriers of the hardware that an agent uses after the prologue, in the order of their first use."""
    code = program.code[agent][begin_of(program, agent) :]
    return [n for n in dict.fromkeys(program.named_barrier(op) for op in code) if 0 <= n < NAMED_BARRIERS]


def engines_of(program: Program, role: str) -> Iterator[int]:
    """The engines on which a role has transfers that end by groups or commits."""
    yield from dict.fromkeys(
        operand(op, "engine")
        for agent in members(program, role)
        for op in program.code[agent]
        if op[0] in ENGINE_ACCESSES
    )


def barriers_of(program: Program, group: str) -> list[int]:
    """The barriers of a group, in all CTAs."""
    return [n for n, barrier in enumerate(program.barriers) if barrier.name == group]


def stages_of(program: Program, agent: int, group: str, cta: int = -1) -> dict[int, int]:
    """The barriers of a group in the agent's CTA, or in this one, by stage."""
    cta = cta if cta >= 0 else program.agents[agent].cta
    return {b.stage: n for n, b in enumerate(program.barriers) if (b.name, b.cta) == (group, cta)}


def arrived_at(program: Program, role: str) -> list[int]:
    """The named barriers at which a role arrives without waiting."""
    found: dict[int, None] = {}
    for agent in members(program, role):
        for op in program.code[agent]:
            if op[0] == Op.BAR_ARRIVE:
                found[program.named_barrier(op)] = None
    return list(found)


def operations_at(program: Program, role: str, site: SourceInstruction) -> list[list[Operation]]:
    """What each agent of a role executes at an instruction, in its order."""
    codes = [zip(program.code[n], program.instructions[n], strict=True) for n in members(program, role)]
    return [[op for op, here in code if here == site] for code in codes]


def executes_everywhere(program: Program, role: str, site: SourceInstruction) -> bool:
    """True if all agents of a role execute this instruction."""
    return all(executes(program, agent, site) for agent in members(program, role))


def executes_together(program: Program, role: str, site: SourceInstruction) -> bool:
    """True if of each CTA all agents of a role execute this instruction, or none: some CTAs may do other things."""
    does = {(program.agents[agent].cta, executes(program, agent, site)) for agent in members(program, role)}
    return len(does) == len({cta for cta, _ in does}) and any(executing for _, executing in does)


def executes(program: Program, agent: int, site: SourceInstruction) -> bool:
    """True if the agent executes this instruction, however often."""
    return any(site_of(program, agent, pc) == site for pc in range(len(program.code[agent])))
