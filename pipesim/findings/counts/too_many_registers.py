"""too_many_registers: a CTA is launched with more registers than an SM has, or its warps ask for more in the end."""

from pipesim.findings.kind import Certainty, Evidence, FindingKind, ProtocolExample
from pipesim.findings.words import who_at
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import TAKES_REGISTERS
from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import register_bound


def _how_many(program: Program, fault: Fault) -> str:
    what = "its warps ask for" if program.code[fault.agent][fault.pc][0] in TAKES_REGISTERS else "it is launched with"
    return f": {what} {fault.found:,}, an SM has {fault.expected:,}"


def _fewer(program: Program, fault: Fault) -> str:
    if program.code[fault.agent][fault.pc][0] in TAKES_REGISTERS:
        return f"let some of its warps ask for fewer than {who_at(program, fault.agent, fault.pc)}"
    warps = {agent.warp for agent in program.agents if agent.cta == program.agents[fault.agent].cta}
    return f"launch it with at most {register_bound(len(warps))} registers a thread"


TOO_MANY_REGISTERS = FindingKind(
    FaultKind.TOO_MANY_REGISTERS,
    what=(
        "A CTA has at most 65,536 registers. The launch gives each of its threads the same number, in multiples of 8, "
        "and setmaxnreg distributes them again."
    ),
    ptx="setmaxnreg",
    shows="A launch with more fails (cudaErrorLaunchOutOfResources); a request for more waits indefinitely.",
    corrected="Ask for fewer registers in some warps, or use fewer warps.",
    certainty=Certainty.SCHEDULE,
    evidence=Evidence.CODE,
    causes_itself=True,
    detail=_how_many,
    correction=_fewer,
    example=ProtocolExample("""Three warp groups ask for 240 registers a thread each.

    @p.role("math", warps=12)
    def math(w: Warp) -> None:
        w.setmaxnreg(160 if right else 240)
"""),
)
