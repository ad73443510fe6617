"""Kinds of warnings: no rule of PTX is broken."""

from collections.abc import Iterator

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.model.finding import Advisory
from pipesim.model.groups import BARRIER, COUNTS_BYTES, TRANSACTIONS
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import RegisterPools

UNREAD_DATA = FindingKind(
    "unread_data",
    "data is left in memory that no agent reads",
    what=(
        "A tile is written or loaded, and no agent reads it, or a part of it: it is there at the end, or the copy of a "
        "later phase has overwritten it."
    ),
    shows="The work is for nothing, the protocol leaves out who reads it, or a reader takes another tile for it.",
    corrected="Leave out the copy, or describe the read.",
    certainty=Certainty.WARNING,
    note="{role} leaves data in {place}",
    example=ProtocolExample("""A tile is loaded and no agent reads it.

    tile = p.smem("tile", slots=1, nbytes=64)
    full = p.mbarriers("full", 1, count=1)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        with w.elect_one():
            full[0].expect_bytes(64)
            w.tma_load(tile[0], full[0], item=0)
            full[0].wait(0)
            if right:
                w.read(tile[0], item=0)
"""),
)


def _unscoped_arrive(program: Program) -> Iterator[Advisory]:
    """Arrives without a scope on a barrier of another CTA."""
    for a, code in enumerate(program.code):
        me = program.agents[a]
        for pc, op in enumerate(code):
            if op[0] == Op.ARRIVE and not operand(op, "semantics") and program.barriers[op[BARRIER]].cta != me.cta:
                claim = f"{me.role} arrives on {program.barriers[op[BARRIER]].name} of another CTA without a scope"
                claim += ", so with CTA scope, as libraries do"
                yield Advisory(me.role, claim, program.line(a, pc), "unscoped_arrive")


UNSCOPED_ARRIVE = FindingKind(
    "unscoped_arrive",
    "an arrive on a barrier of another CTA has no scope",
    what="An arrive on a barrier of another CTA is written without a scope, which PTX treats as CTA scope.",
    ptx="mbarrier.arrive",
    shows="No failure is known: CUTLASS and Modular's kernels do the same.",
    corrected="Write .release.cluster where you do not want to rely on that.",
    certainty=Certainty.WARNING,
    look=_unscoped_arrive,
    of=Op.ARRIVE,
    across_ctas=True,
    example=ProtocolExample(
        """An arrive on the barrier of another CTA has no scope.

    ready = p.mbarriers("ready", 1, count=1)

    @p.role("peer")
    def peer(w: Warp) -> None:
        with w.elect_one():
            if right:
                ready[0].arrive_cluster(w.cta ^ 1, scope=Scope.CLUSTER)
            else:
                ready[0].arrive_cluster(w.cta ^ 1)
            ready[0].wait(0)
""",
        cluster=2,
    ),
)


def _register_requests(program: Program) -> Iterator[Advisory]:
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
    look=_register_requests,
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


def _cp_async_count(program: Program) -> Iterator[Advisory]:
    """Arrives of ``cp.async`` without ``.noinc`` on an mbarrier that also counts bytes.

    PTX raises the pending count by them until the copies are done, and so does the model; H100 and H200 raise the
    transaction count instead (measured). Only where bytes are counted on the same barrier can a phase tell.
    """
    counted = {
        operand(op, "barrier")
        for op in program.operations
        if op[0] in TRANSACTIONS or (op[0] in COUNTS_BYTES and (op[0] != Op.ARRIVE or operand(op, "expect")))
    }
    for a, code in enumerate(program.code):
        role = program.agents[a].role
        for pc, op in enumerate(code):
            if op[0] != Op.CP_ASYNC_ARRIVE or operand(op, "noinc") or operand(op, "barrier") not in counted:
                continue
            name, line = program.barriers[operand(op, "barrier")].name, program.line(a, pc)
            claim = (
                f"{role} arrives on {name} by cp.async without .noinc, and {name} also counts bytes: PTX adds these "
                "arrivals to the pending count, H100 and H200 to the bytes"
            )
            yield Advisory(role, claim, line, "cp_async_count")


CP_ASYNC_COUNT = FindingKind(
    "cp_async_count",
    "a cp.async arrive without .noinc is on a barrier that counts bytes",
    what=(
        "cp.async.mbarrier.arrive without .noinc is used on a barrier that also counts bytes. PTX adds the arrivals to "
        "the pending count; H100 and H200 add them to the bytes (measured)."
    ),
    ptx="cp.async.mbarrier.arrive",
    shows="A phase can complete earlier or later than PTX says.",
    corrected="Use .noinc and count these arrivals in the init, or give the bytes a barrier of their own.",
    certainty=Certainty.WARNING,
    look=_cp_async_count,
    of=Op.CP_ASYNC_ARRIVE,
    example=ProtocolExample("""A barrier that counts bytes is arrived on by cp.async without .noinc.

    tile = p.smem("tile", slots=2, nbytes=64)
    full = p.mbarriers("full", 1, count=33 if right else 1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        w.async_write(Engine.CP_ASYNC, tile[0], item=0)
        full[0].cp_async_arrive(noinc=bool(right))
        with w.elect_one():
            full[0].expect_bytes(64)
            w.tma_load(tile[1], full[0], item=1)
        full[0].wait(0)
        w.read(tile[0], item=0)
        w.read(tile[1], item=1)
"""),
)
