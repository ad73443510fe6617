"""Which flat programs the interpreter can run: the operations that it has, and one agent a warp. Needs no GPU."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from pipesim.model.groups import (
    ACCESSES,
    ARRIVALS,
    COMMITS,
    ENGINE_ACCESSES,
    EXPECTS,
    MBARRIER,
    MEETINGS,
    ON_ENGINE,
    ON_NAMED_BARRIER,
    ON_OTHER_CTA,
    SETS_UP,
    TOUCHES_MEMORY,
    WRITES_REGISTER,
)
from pipesim.model.ops import AT, Engine, Fence, Op, Operation, Space, operand
from pipesim.model.program import Program
from pipesim.model.rules.sync import WARP
from pipesim.model.tables import ALL_LANES, WARP_GROUP
from pipesim.protocols.limits import MAX_SMEM

MAX_WARPS = 31  #: of a CTA, besides the watchdog
MAX_REGISTERS = 31  #: and one for results that are not used
MAX_CTAS = 8  #: a cluster of more must be asked for
_MOST_GROUPS = 7  #: a wait for a group takes a constant: the kernel has 0 to 7
_OWN_SHARED = 2048  #: bytes of shared memory that the kernel needs for itself
_FENCES = frozenset({Fence.MBARRIER_INIT, Fence.PROXY_ASYNC, Fence.ACQ_REL, Fence.SC})


def unable(program: Program) -> str:
    """Why the interpreter cannot run a program, as the end of a sentence: "it uses tcgen05"; "" if it can.

    Its own warps have the registers that they need: ``setmaxnreg`` does nothing, and no warp waits there.
    """
    return next(_reasons(program), "")


def _reasons(program: Program) -> Iterator[str]:
    places = {(agent.cta, agent.warp) for agent in program.agents}
    if len(places) < len(program.agents) or any(agent.lanes != ALL_LANES for agent in program.agents):
        yield "its warps have several agents"
    if max(agent.warp for agent in program.agents) >= MAX_WARPS:
        yield f"a CTA has more than {MAX_WARPS} warps"
    if program.words_cta >= 0:
        yield "it uses words of global memory"
    if program.ctas > MAX_CTAS:
        yield f"its cluster has more than {MAX_CTAS} CTAs"
    if program.cut or program.laps or program.unsure or program.coverage.stopped:
        yield "a part of it was not read"
    if program.registers > MAX_REGISTERS:
        yield f"its agents have more than {MAX_REGISTERS} registers"
    if program.stored:
        yield "it uses st.async"
    if smem_bytes(program) > MAX_SMEM - _OWN_SHARED:
        yield f"its CTA has no {_OWN_SHARED:,} bytes of shared memory left for the interpreter"
    if len(remote_inits(program)) < sum(
        _is_remote_init(program, a, op) for a, code in enumerate(program.code) for op in code
    ):
        yield "an mbarrier of another CTA is initialised later than at the beginning"
    for agent, code in enumerate(program.code):
        for op in code:
            yield from _reasons_of(program, agent, op)
        yield from _tokens(code)
    yield from _warp_groups(program)


def _reasons_of(program: Program, agent: int, op: Operation) -> Iterator[str]:
    """What of one operation the kernel does not have."""
    cta = program.agents[agent].cta
    if op[0] == Op.COMMIT_MULTICAST or (op[0] in ON_ENGINE and operand(op, "engine") == Engine.TCGEN05):
        yield "it uses tcgen05"
    if op[0] in MBARRIER and program.barriers[operand(op, "barrier")].cta != cta and op[0] != Op.INIT:
        if op[0] not in ON_OTHER_CTA:
            yield f"{Op(op[0]).name} is on an mbarrier of another CTA"
        elif op[0] in EXPECTS and operand(op, "register") >= 0:
            yield "an arrive on an mbarrier of another CTA keeps a state"
    if op[0] in COMMITS and operand(op, "barrier") >= 0:
        yield "a commit arrives on an mbarrier"
    if op[0] == Op.CP_ASYNC_ARRIVE and operand(op, "lanes") != WARP:
        yield "some lanes of a warp arrive for their cp.async"
    if op[0] == Op.WAIT_GROUP and operand(op, "groups") > _MOST_GROUPS:
        yield f"it waits for all but more than {_MOST_GROUPS} groups"
    if op[0] in ON_NAMED_BARRIER and program.named_barriers[operand(op, "named_barrier")][0] != cta:
        yield "a named barrier is another CTA's"
    if op[0] == Op.FENCE and operand(op, "fence") not in _FENCES:
        yield f"it uses the fence {Fence(operand(op, 'fence')).name}"
    if op[0] in TOUCHES_MEMORY:
        yield from _reasons_of_access(program, agent, op)


def _tokens(code: Sequence[Operation]) -> Iterator[str]:
    """The count in a register that holds no state of an mbarrier is not defined: the hardware's is not the model's."""
    states: set[int] = set()
    for op in code:
        if op[0] in AT["state_register"] and operand(op, "state_register") not in states:
            yield "a register that is asked for the state of an mbarrier may hold none"
        if op[0] == Op.WAIT_STATE and operand(op, "register") not in states:
            yield "a register that is asked for the state of an mbarrier may hold none"
        if op[0] in WRITES_REGISTER:
            (states.add if op[0] in ARRIVALS else states.discard)(operand(op, "register"))


def _reasons_of_access(program: Program, agent: int, op: Operation) -> Iterator[str]:
    access, mine = program.accesses[operand(op, "access")], program.agents[agent].cta
    if access.space == Space.TENSOR:
        yield "it uses tensor memory"
    if access.space == Space.GLOBAL and op[0] not in ACCESSES:
        yield "an engine works on global memory"
    if op[0] in ENGINE_ACCESSES and access.cta != mine:
        yield "an engine works on the memory of another CTA"
    engine = operand(op, "engine") if op[0] in ON_ENGINE else None
    if op[0] == Op.TRANSFER_READ and engine == Engine.CP_ASYNC:
        yield "cp.async reads shared memory"
    if op[0] == Op.TRANSFER_WRITE and engine == Engine.BULK:
        yield "a bulk copy of a group writes shared memory"
    if op[0] == Op.TRANSFER_WRITE and engine == Engine.WGMMA and access.space != Space.REGISTERS:
        yield "a wgmma writes shared memory"
    if op[0] == Op.TMA_LOAD and operand(op, "bytes") != access.nbytes:
        yield "a copy counts other bytes than it writes"
    if op[0] == Op.TMA_LOAD and program.barriers[operand(op, "barrier")].cta != access.cta:
        yield "a copy signals an mbarrier of another CTA than it writes to"


def _warp_groups(program: Program) -> Iterator[str]:
    """A wgmma is of four warps together, each of which must have the same ones."""
    for agents in program.warp_groups:
        if not agents:
            continue
        counts = {
            sum(op[0] in ON_ENGINE and operand(op, "engine") == Engine.WGMMA for op in program.code[a]) for a in agents
        }
        if len(agents) != WARP_GROUP or len(counts) > 1:
            yield "a wgmma is not of the four warps of a warp group"
        if any(op[0] == Op.JUMP_IF for a in agents for op in program.code[a]):
            yield "a warp group with wgmma decides by the result of a try"


def _is_remote_init(program: Program, agent: int, op: Operation) -> bool:
    return op[0] == Op.INIT and program.barriers[operand(op, "barrier")].cta != program.agents[agent].cta


def remote_inits(program: Program) -> list[Operation]:
    """The inits of mbarriers of other CTAs with which agents begin: the kernel makes them before the program begins."""
    found: list[Operation] = []
    for agent, code in enumerate(program.code):
        begins = takewhile(lambda op: op[0] in SETS_UP - MEETINGS, code)
        found += [op for op in begins if _is_remote_init(program, agent, op)]
    return found


def scale(program: Program) -> int:
    """By how much all sizes are multiplied, so that a bulk copy has multiples of 16 bytes and an access of 4."""
    bulk = {operand(op, "access") for op in program.operations if op[0] in TOUCHES_MEMORY and op[0] not in ACCESSES}
    fits = all(
        not (access.offset | access.nbytes) % (16 if number in bulk else 4)
        for number, access in enumerate(program.accesses)
    )
    return 1 if fits else 16


def barrier_base(program: Program) -> int:
    """Where the mbarriers lie in the shared memory of every CTA: after all accesses."""
    shared = [access.offset + access.nbytes for access in program.accesses if access.space == Space.SHARED]
    return -(-max(shared, default=0) * scale(program) // 16) * 16


def smem_bytes(program: Program) -> int:
    """Shared memory of a CTA as the kernel lays it out."""
    return barrier_base(program) + 8 * len({(b.name, b.stage) for b in program.barriers}) + 16
