"""Kinds of findings about what is read, and about what a warp does as a whole or leaves under way."""

from pipesim.explain.operation_words import accessed_bytes
from pipesim.findings.kind import (
    Certainty,
    Evidence,
    ExampleEdit,
    FindingKind,
    FlatExample,
    ProtocolExample,
    PtxExample,
)
from pipesim.findings.words import tile_of, who_at
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import TAKES_REGISTERS, TOUCHES_MEMORY
from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import WARP
from pipesim.model.tables import WARP_GROUP

RACE = FindingKind(
    FaultKind.RACE,
    what="Two accesses to the same bytes can happen at the same time, and at least one of them is a write.",
    ptx="memory consistency model: conflict and data-races",
    shows=(
        "Results are wrong in some launches: tiles are torn or mixed. Nothing detects it, and a recording or a debugger"
        " can make it vanish."
    ),
    corrected=(
        "Let the later agent wait for an arrive that the earlier one makes after its access: a wait for full before "
        "reading, an arrive on empty after the last read, a barrier between writing and reading."
    ),
    certainty=Certainty.SCHEDULE,
    detail=tile_of,
    example=ProtocolExample("""A tile is written and read at the same time.

    tile = p.smem("tile", slots=1, nbytes=64)

    @p.role("producer")
    def producer(w: Warp) -> None:
        w.write(tile[0], item=0)
        w.sync_threads()
        if right:
            w.sync_threads()
        w.write(tile[0], item=1)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        w.sync_threads()
        w.read(tile[0], item=0)
        if right:
            w.sync_threads()
"""),
)


UNINITIALISED_READ = FindingKind(
    FaultKind.UNINITIALISED_READ,
    what="Bytes are read that nothing has written.",
    ptx="state spaces: shared",
    shows="The result has whatever the memory held: often the data of an earlier launch, so that a test may pass.",
    corrected=(
        "Read what was written: compare offsets and sizes of both accesses, and wait for all copies of the phase. With "
        "--strict-tensor-memory the same holds for tensor memory."
    ),
    certainty=Certainty.SCHEDULE,
    note="{role} reads {place}, where nothing has been written",
    detail=tile_of,
    example=ProtocolExample("""No agent has written the second half of what is read.

    tile = p.smem("tile", slots=1, nbytes=64)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        w.write(tile[0].part(0, 32), item=0)
        if right:
            w.write(tile[0].part(32, 32), item=0)
        w.read(tile[0], item=0)
"""),
)


def _items(program: Program, fault: Fault) -> str:
    operation = program.code[fault.agent][fault.pc]
    where = f" in {accessed_bytes(program, operation)}" if operation[0] in TOUCHES_MEMORY else ""
    return f": item {fault.found} instead of {fault.expected}{where}"


WRONG_ITEM = FindingKind(
    FaultKind.WRONG_ITEM,
    what="The bytes are there and ordered, and hold another item than the reader expects.",
    ptx="memory consistency model: causality order",
    shows="The result is wrong in every launch, or in those in which one agent is late by a lap.",
    corrected=(
        "Compare the stage and the phase that writer and reader compute for the same item: the counters of one of them "
        "start, toggle or skip differently."
    ),
    certainty=Certainty.SCHEDULE,
    detail=_items,
    example=ProtocolExample("""The reader takes the slot of item 0 for that of item 1.

    tile = p.smem("tile", slots=2, nbytes=64)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        w.write(tile[0], item=0)
        w.write(tile[1], item=1)
        w.read(tile[1 if right else 0], item=1)
"""),
)


def _outcomes(program: Program, fault: Fault) -> str:
    one, other = (f"item {item}" if item >= 0 else "nothing" for item in (fault.found, fault.expected))
    where = accessed_bytes(program, program.code[fault.agent][fault.pc])
    return f": {one} in {where} after one, {other} after the other"


TWO_OUTCOMES = FindingKind(
    FaultKind.TWO_OUTCOMES,
    what="Two schedules both finish without a fault and leave different results: a try, or who came first, decides.",
    ptx="mbarrier.test_wait, mbarrier.try_wait",
    shows="Results differ from launch to launch, and each of them looks right by itself.",
    corrected="Wait where an outcome depends on a try_wait's result; fix the order of writers that exclude each other.",
    certainty=Certainty.SCHEDULE,
    evidence=Evidence.ALL_SCHEDULES,
    detail=_outcomes,
    example=FlatExample(
        "INIT; FENCE; BAR_SYNC threads=64; ARRIVE\nBAR_SYNC threads=64; WRITE item=2; WAIT; WRITE item=1; READ",
        ExampleEdit("it tries instead of waiting", "WAIT", "TRY_WAIT register=0; JUMP_IF register=0 value=0 skip=1"),
    ),
)


LANES_APART = FindingKind(
    FaultKind.LANES_APART,
    what=(
        "Lanes of a warp that took different branches execute an operation of all lanes, an elected lane signals "
        "what all have read or written, or a lane uses what another one has written or waited for, and PTX does not "
        "promise that they are together there, or not the order of what they access (a finding with --strict-lanes)."
    ),
    ptx="bar.warp.sync",
    shows=(
        "The compiler usually lets them meet. Where it does not, an arrive of 32 lanes becomes several arrivals, and "
        "lanes can run ahead of others that still read. shfl.sync, vote.sync, elect.sync and .aligned instructions "
        "have lanes execute together, but only barriers put what one lane has accessed before what another one does."
    ),
    corrected=(
        "Put __syncwarp() (bar.warp.sync with a mask of all these lanes) after the branch, before the operation that "
        "depends on it; or describe the role "
        "with lanes_apart=True, and it is proved with lanes that run independently."
    ),
    certainty=Certainty.LETTER,
    evidence=Evidence.LANES,
    switches=("--strict-lanes",),
    correction="let all lanes of the warp meet there: __syncwarp(), which is bar.warp.sync",
    example=PtxExample(
        " setp.lt.u32 %p4, %r2, 16;\n @!%p4 bra rest;\n st.shared.u32 [tile], %r2;\nrest:\n"
        " bar.warp.sync -1;\n mbarrier.arrive.shared::cta.b64 _, [%r3];",
        ExampleEdit("the lanes do not meet after the branch", " bar.warp.sync -1;\n", ""),
    ),
)


UNDER_WAY_AT_EXIT = FindingKind(
    FaultKind.UNDER_WAY_AT_EXIT,
    what=(
        "A CTA ends while its own copy, MMA or commit still uses its shared memory, and no agent of it waits for that "
        "(a finding with --strict-exit). PTX says nothing of that. What reaches into another CTA is exited_cta."
    ),
    ptx="async operations: completion mechanisms",
    shows="A bulk store may read, a copy or an arrival may change, memory that the next CTA on the SM uses.",
    corrected="Wait for the group, or for the mbarrier of the copy or commit, before the end.",
    certainty=Certainty.LETTER,
    evidence=Evidence.RUN,
    switches=("--strict-exit",),
    correction="wait for its group, or for the phase of the mbarrier on which it arrives, before the CTA ends",
    example=ProtocolExample("""The CTA ends while its bulk copy still reads shared memory.

    out = p.smem("out", slots=1, nbytes=64)

    @p.role("epilogue")
    def epilogue(w: Warp) -> None:
        w.write(out[0], item=0)
        w.fence(Fence.PROXY_ASYNC)
        w.sync_warp()
        with w.elect_one():
            w.async_read(Engine.BULK, out[0], item=0)
            w.commit(Engine.BULK)
            if right:
                w.wait_group(Engine.BULK, 0)
"""),
)


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
