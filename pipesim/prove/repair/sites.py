"""Where corrections are made: roles, warps and lanes, instructions, barriers and their numbers."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from pipesim.model.edits import (
    Insertion,
    Listing,
    delete_operations,
    insert_operations,
    listing,
    reorder_operations,
    replace_operations,
)
from pipesim.model.finding import Fault
from pipesim.model.groups import (
    COMMITS,
    ENGINE_ACCESSES,
    MEETING_WAITS,
    ON_BARRIER,
    ON_NAMED_BARRIER,
    PRIVATE,
    SETS_UP,
    STAGE_WORK,
    TOUCHES_MEMORY,
)
from pipesim.model.ops import AT, Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.tables import NAMED_BARRIERS, SourceInstruction

ARRIVES = COMMITS | {int(Op.ARRIVE), int(Op.CP_ASYNC_ARRIVE)}  #: where they name a barrier
_SILENT = PRIVATE - {int(Op.FENCE)}  #: no operation is placed beside them


# operations


def barrier_of(op: Operation) -> int:
    """The barrier that an operation names, -1 if none."""
    at = AT["barrier"].get(op[0])
    return -1 if at is None else op[at]


def arrives(op: Operation) -> bool:
    """True for an arrive, with bytes or without, or a commit to a barrier."""
    return op[0] in ARRIVES and barrier_of(op) >= 0


def gives_back(op: Operation) -> bool:
    """True for what signals to others that an agent is done with a stage: an arrive without bytes, or a commit."""
    return arrives(op) and (op[0] != Op.ARRIVE or not operand(op, "expect"))


def works(op: Operation) -> bool:
    """True for what an agent does with a stage, which can stand between its wait and its release."""
    return op[0] in STAGE_WORK and not (op[0] in COMMITS and barrier_of(op) >= 0)


def on_engine(op: Operation, ops: Set[int], engine: int) -> bool:
    """True for one of these operations on an engine."""
    return op[0] in ops and operand(op, "engine") == engine


def cells_of(program: Program, op: Operation) -> range:
    """The cells of what an operation accesses, none if it does not."""
    return range(*program.cells[operand(op, "access")]) if op[0] in TOUCHES_MEMORY else range(0)


class Execution(NamedTuple):
    """One execution of an instruction: by which agent, at which place of it, of which operation."""

    agent: int
    pc: int
    op: Operation
    site: SourceInstruction


def executions(program: Program, role: str = "", ops: Set[int] | None = None) -> Iterator[Execution]:
    """What the agents of a role ("": all) execute, of these operations alone where they are given."""
    for agent in members(program, role):
        for pc, (op, site) in enumerate(zip(program.code[agent], program.instructions[agent], strict=True)):
            if ops is None or op[0] in ops:
                yield Execution(agent, pc, op, site)


def operations_of(fault: Fault) -> tuple[tuple[int, int], tuple[int, int]]:
    """The two operations that a fault is about, each by agent and place; -1 where there is none."""
    return (fault.agent, fault.pc), (fault.other_agent, fault.other_pc)


# instructions


def site_of(program: Program, agent: int, pc: int) -> SourceInstruction:
    """The instruction at this position of an agent."""
    return program.instructions[agent][pc]


def is_at(site: SourceInstruction, at: SourceInstruction) -> bool:
    """True for the instruction; where ``at`` has no line, for all such instructions on what it is about."""
    return site == at or (not at.line and (site.op, site.about) == (at.op, at.about))


def is_use(site: SourceInstruction, at: SourceInstruction) -> bool:
    """True for the instruction, on whichever tile; where it has no line for every use of the tile that it is about."""
    if at.line:
        return (site.op, site.line) == (at.op, at.line)
    return site == at or (site.about == at.about and site.op in TOUCHES_MEMORY)


def sites_of(program: Program, role: str, ops: Set[int] | None = None) -> list[SourceInstruction]:
    """The instructions of a role beside which others can be placed, in the order in which its agents reach them."""
    every = dict.fromkeys(each.site for each in executions(program, role, ops))
    return [site for site in every if site.op not in _SILENT]


def operations_at(program: Program, role: str, site: SourceInstruction) -> list[list[Operation]]:
    """What each agent of a role executes at an instruction, in its order."""
    codes = [zip(program.code[n], program.instructions[n], strict=True) for n in members(program, role)]
    return [[op for op, here in code if here == site] for code in codes]


def executes(program: Program, agent: int, site: SourceInstruction) -> bool:
    """True if the agent executes this instruction, however often."""
    return site in program.instructions[agent]


def executes_everywhere(program: Program, role: str, site: SourceInstruction) -> bool:
    """True if all agents of a role execute this instruction."""
    return all(executes(program, agent, site) for agent in members(program, role))


def executes_together(program: Program, role: str, site: SourceInstruction) -> bool:
    """True if of each CTA all agents of a role execute this instruction, or none: some CTAs may do other things."""
    does = {(program.agents[agent].cta, executes(program, agent, site)) for agent in members(program, role)}
    return len(does) == len({cta for cta, _ in does}) and any(executing for _, executing in does)


# roles and agents


def roles_of(program: Program) -> list[str]:
    """The roles, in the program's order."""
    return list(dict.fromkeys(agent.role for agent in program.agents))


def members(program: Program, role: str) -> list[int]:
    """The agents of a role, or of several with commas between; of the role "" all."""
    wanted = (role, *role.split(","))  # a role may have a comma in its own name
    return [n for n, agent in enumerate(program.agents) if not role or agent.role in wanted]


def team_of(program: Program, agent: int) -> str:
    """The role of an agent, with those that share its code."""
    role = program.agents[agent].role
    return families(program).get(role, role)


def beside(program: Program, agent: int) -> list[int]:
    """The agents of its role in its CTA, itself among them."""
    me = program.agents[agent]
    return [n for n in members(program, me.role) if program.agents[n].cta == me.cta]


def families(program: Program) -> dict[str, str]:
    """Of each role that shares most of its lines with others those that do so, with commas between.

    Their code is one function of the author's: what is wrong in one of them often is in all. Where a line is
    many instructions, as of what a compiler makes of a loop, they have to share these.
    """
    sites: dict[str, set[SourceInstruction]] = {}
    for n, agent in enumerate(program.agents):
        own = program.instructions[n][begin_of(program, n) :]
        sites.setdefault(agent.role, set()).update(site for site in own if site.op not in _SILENT and site.line)
    every = set().union(*sites.values())
    by_line = 3 * len({site.line for site in every}) > len(every)
    plain = {
        role: {site.line if by_line else str(site) for site in each} for role, each in sites.items() if "," not in role
    }
    found: dict[str, str] = {}
    for role, mine in plain.items():
        alike = [other for other, theirs in plain.items() if 2 * len(mine & theirs) > max(len(mine), len(theirs))]
        if len(alike) > 1:
            found[role] = ",".join(alike)
    return found


def warp_of(program: Program, agent: int) -> list[int]:
    """The agents that are lanes of the same warp, this one among them."""
    mine = program.agents[agent]
    return [n for n, each in enumerate(program.agents) if (each.cta, each.warp) == (mine.cta, mine.warp)]


def warpgroups(program: Program, role: str) -> list[int]:
    """The numbers of the warpgroups of which a role, or several, are all warps; [] if it is of a part of one."""
    warps = {program.agents[agent].warp for agent in members(program, role)}
    groups = sorted({warp // 4 for warp in warps})
    return groups if len(warps) == 4 * len(groups) else []


def threads_of(program: Program, cta: int) -> int:
    """The threads of a CTA, as far as the program names its warps."""
    return 32 * len({agent.warp for agent in program.agents if agent.cta == cta})


def begin_of(program: Program, agent: int) -> int:
    """Where the agent's own work begins, after the inits, and the fence and the barrier that publish them."""
    begin, threads = 0, threads_of(program, program.agents[agent].cta)
    for pc, op in enumerate(program.code[agent]):
        all_meet = op[0] == Op.BAR_SYNC and not program.named_barrier(op) and operand(op, "threads") == threads
        if op[0] not in SETS_UP - ON_NAMED_BARRIER and not all_meet:
            break
        begin = pc + 1
    return begin


def published_at(program: Program, agent: int) -> int:
    """Where an agent knows that the mbarriers of its CTA are initialised: after it has met those who did it."""
    place, me = begin_of(program, agent), program.agents[agent]
    for other, code in enumerate(program.code):
        inits = [
            pc for pc, op in enumerate(code) if op[0] == Op.INIT and program.barriers[barrier_of(op)].cta == me.cta
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


def engines_of(program: Program, role: str) -> dict[int, None]:
    """The engines on which a role has transfers that end by groups or commits."""
    return dict.fromkeys(operand(each.op, "engine") for each in executions(program, role, ENGINE_ACCESSES))


# barriers


def groups_in(program: Program) -> dict[str, None]:
    """The groups of barriers."""
    return dict.fromkeys(barrier.name for barrier in program.barriers)


def stages_in(program: Program) -> dict[str, tuple[int, ...]]:
    """The stages of every group."""
    found: dict[str, set[int]] = {}
    for barrier in program.barriers:
        found.setdefault(barrier.name, set()).add(barrier.stage)
    return {name: tuple(sorted(stages)) for name, stages in found.items()}


def barriers_of(program: Program, group: str) -> list[int]:
    """The barriers of a group, in all CTAs."""
    return [n for n, barrier in enumerate(program.barriers) if barrier.name == group]


def stages_of(program: Program, agent: int, group: str, cta: int = -1) -> dict[int, int]:
    """The barriers of a group in the agent's CTA, or in this one, by stage."""
    cta = cta if cta >= 0 else program.agents[agent].cta
    return {b.stage: n for n, b in enumerate(program.barriers) if (b.name, b.cta) == (group, cta)}


def ring_of(program: Program, agent: int, group: str, cta: int = -1) -> list[int]:
    """The same in the order of the stages."""
    return [barrier for _, barrier in sorted(stages_of(program, agent, group, cta).items())]


def pairs(program: Program, wanted: Callable[[Operation], bool]) -> list[tuple[str, str]]:
    """Every role and group of barriers of which the role has such an operation on a barrier."""
    every = (each for each in executions(program, ops=ON_BARRIER) if wanted(each.op) and barrier_of(each.op) >= 0)
    return list(dict.fromkeys((program.agents[n].role, program.barriers[barrier_of(op)].name) for n, _, op, _ in every))


def numbers_of(program: Program, agent: int) -> list[int]:
    """The named barriers of the hardware that an agent uses after the prologue, in the order of their first use."""
    code = program.code[agent][begin_of(program, agent) :]
    return [n for n in dict.fromkeys(program.named_barrier(op) for op in code) if 0 <= n < NAMED_BARRIERS]


def arrived_at(program: Program, role: str) -> list[int]:
    """The named barriers at which a role arrives without waiting."""
    return list(
        dict.fromkeys(program.named_barrier(each.op) for each in executions(program, role, {int(Op.BAR_ARRIVE)}))
    )


def numbered(numbers: Iterable[int]) -> str:
    """Named barriers as the group of a correction."""
    return ",".join(map(str, numbers))


# what a correction changes


@dataclass(frozen=True)
class AgentCode:
    """What one agent does, of which a correction makes a changed listing."""

    program: Program
    agent: int
    cta: int = field(init=False)
    same: Listing = field(init=False)
    sites: Sequence[SourceInstruction] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cta", self.program.agents[self.agent].cta)
        object.__setattr__(self, "same", listing(self.program, self.agent))
        object.__setattr__(self, "sites", self.program.instructions[self.agent])

    @property
    def code(self) -> tuple[Operation, ...]:
        """Its operations."""
        return self.same.code

    def at(self, site: SourceInstruction) -> list[int]:
        """Where it executes an instruction."""
        return [pc for pc, each in enumerate(self.sites) if each == site]

    def stages(self, group: str) -> dict[int, int]:
        """The barriers of a group in its CTA, by stage."""
        return stages_of(self.program, self.agent, group)

    def ring(self, group: str) -> list[int]:
        """The same in their order."""
        return ring_of(self.program, self.agent, group)

    def replaced(self, operations: Mapping[int, Operation]) -> Listing:
        """With other operations at these places."""
        return replace_operations(self.same, operations)

    def deleted(self, places: Iterable[int]) -> Listing:
        """Without the operations at these places."""
        return delete_operations(self.same, set(places))

    def reordered(self, order: Sequence[int]) -> Listing:
        """The operations at these places, in this order."""
        return reorder_operations(self.same, order)

    def inserted(self, new: Iterable[tuple[int, Operation]], *, after: bool = False) -> Listing:
        """With operations before those at these places, or after them, and with their lines."""
        lines = self.same.lines
        return insert_operations(self.same, [Insertion(pc + after, op, lines[pc]) for pc, op in new])

    def ended(self, end: int, new: Iterable[Operation], like: int) -> Listing:
        """With operations before the one at ``end``, which have the line of the one at ``like``."""
        line = self.same.lines[like] if self.same.lines else 0
        return insert_operations(self.same, [Insertion(end, op, line) for op in new])
