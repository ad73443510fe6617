"""register_requests: the warps of a warp group request different numbers of registers."""

from collections.abc import Iterator

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.model.finding import Advisory
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import RegisterPools


def _look(program: Program) -> Iterator[Advisory]:
    """Warps that do not ask for the same numbers of registers as the others of their warp group.

    ``setmaxnreg.sync.aligned``: all threads of the warp group must execute the same instruction (PTX ISA); what a chip
    does otherwise is not defined. Attention kernels of upstream ask for 24 in the group's idle warp and for more in the
    others. Warps that never ask are a finding (``warp_shape``).
    """
    pools = RegisterPools(program.agents, program.code, program.launch_registers)
    for members in pools.groups.values():
        first = members[0]
        requests = [request.registers for request in pools.requests[first]]
        for other in members[1:]:
            others = [request.registers for request in pools.requests[other]]
            if others != requests and len(others) == len(requests):
                role, line = program.agents[other].role, _line(program, pools, other, first)
                claim = (
                    f"{program.agent_name(other)} {_words(others)}, {program.agent_name(first)} in the same warp group "
                    f"{_words(requests)}, which PTX leaves undefined"
                )
                yield Advisory(role, claim, line, "register_requests")


def _words(requests: list[int]) -> str:
    return f"asks for {' and '.join(map(str, requests))} registers a thread"


def _line(program: Program, pools: RegisterPools, *agents: int) -> str:
    """The line of the first request of the first of these agents that makes one."""
    return next(program.line(a, request.pc) for a in agents for request in pools.requests[a])


REGISTER_REQUESTS = FindingKind(
    "register_requests",
    "the warps of a warp group request different numbers of registers",
    what="The four warps of a warp group must execute the same setmaxnreg; PTX leaves anything else undefined.",
    ptx="setmaxnreg",
    shows="What the hardware does was not measured.",
    corrected="Let all four warps of the group request the same number, or none of them.",
    certainty=Certainty.WARNING,
    look=_look,
    of=Op.SETMAXNREG,
    example=ProtocolExample("""The warps of a warp group ask for different numbers of registers.

    @p.role("one", warps=2)
    def one(w: Warp) -> None:
        w.setmaxnreg(152)

    @p.role("other", warps=2)
    def other(w: Warp) -> None:
        w.setmaxnreg(152 if right else 160)
"""),
)
