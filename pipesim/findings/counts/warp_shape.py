"""warp_shape: not all threads that have to execute an instruction together execute it."""

from pipesim.findings.kind import Certainty, Evidence, FindingKind, ProtocolExample
from pipesim.findings.words import who_at
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import TAKES_REGISTERS
from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import WARP
from pipesim.model.tables import WARP_GROUP


def _who_else(program: Program, fault: Fault) -> str:
    """Which warps the warp group has, and which of them does something else."""
    if fault.expected == WARP:
        warp = f"warp {fault.found}" if fault.found >= 0 else "a warp"
        return f": only some lanes of {warp} execute the .aligned instruction there"
    agent = program.agents[fault.agent]
    first = agent.warp // WARP_GROUP * WARP_GROUP
    instruction = "setmaxnreg" if program.code[fault.agent][fault.pc][0] in TAKES_REGISTERS else "wgmma"
    group = f": {instruction} is for the warp group of warps {first} to {first + WARP_GROUP - 1}"
    if fault.expected:
        return f"{group}, of which the CTA has {fault.found}"
    other = f"{group}, of which warp {program.agents[fault.cause_agent].warp},"
    if fault.cause_pc < 0:
        return f"{other} {program.agent_name(fault.cause_agent)}, does not execute this one"
    return f"{other} {who_at(program, fault.cause_agent, fault.cause_pc)}, executes another one"


def _aligned(program: Program, fault: Fault) -> str:
    """The role should begin at a multiple of 4, where others of its group do not multiply at all."""
    if fault.expected == WARP:
        return "let all lanes of the warp execute it: outside of the branch or the guard"
    role = program.agents[fault.agent].role
    warps = sorted(a.warp for a in program.agents if (a.cta, a.role) == (program.agents[fault.agent].cta, role))
    if len(warps) % WARP_GROUP == 0 and warps[0] % WARP_GROUP:
        return f"let the role {role} begin at a warp that is a multiple of {WARP_GROUP}: align={WARP_GROUP}"
    like = who_at(program, fault.agent, fault.pc)
    return f"let all four warps of the group execute the same instruction equally often, like {like}"


WARP_SHAPE = FindingKind(
    FaultKind.WARP_SHAPE,
    what=(
        "wgmma, its commit_group and wait_group, and setmaxnreg are executed by all threads of a warp group: four "
        "warps, the first a multiple of 4, the same instruction equally often. An .aligned instruction is executed by "
        "all lanes of a warp."
    ),
    ptx="wgmma.mma_async",
    shows="PTX leaves it undefined: the warps that come may hang, or compute with what the others left in registers.",
    corrected="Let whole warp groups execute it, outside of conditions that differ between their warps.",
    certainty=Certainty.SCHEDULE,
    evidence=Evidence.CODE,
    causes_itself=True,
    detail=_who_else,
    correction=_aligned,
    example=ProtocolExample("""Half a warp group multiplies.

    tile = p.smem("tile", 1, 256)

    @p.role("math", warps=4)
    def math(w: Warp) -> None:
        w.write(tile[0].part(64 * w.index, 64), 1)
        w.fence(Fence.PROXY_ASYNC)
        w.sync_threads()
        if right or w.index < 2:
            w.mma(Engine.WGMMA, reads=[(tile[0], 1)])
            w.commit(Engine.WGMMA)
            w.wait_group(Engine.WGMMA)
"""),
)
