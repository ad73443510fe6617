"""Which warps execute what PTX has whole warp groups execute, and whether the registers of a CTA are enough.

A warp group is four warps of a CTA, the first a multiple of 4. ``wgmma`` and its ``commit_group`` and ``wait_group``
are executed by all of its threads, the same instruction each time; so is ``setmaxnreg`` (PTX ISA, "wgmma.mma_async",
"setmaxnreg"). No schedule matters for this: the code of the warps shows it.

Of ``setmaxnreg`` it is only asked that all of the group's warps that exist execute it equally often: upstream kernels
let each role of a group execute one of its own. Different numbers are a warning (``register_requests``).

A CTA is launched with the same number of registers for every thread; that is all it ever has. A request for more waits
until others have given back enough (PTX ISA, ``setmaxnreg``; measured). A warp group asks together: it holds what its
most demanding warp has asked for, so that one warp's request is that of all, and registers are free when all four
have given them back. What a group holds follows from where its warps are in their code, so a state needs no more.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from typing import NamedTuple, Protocol

from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import ACCESS, ENGINE, OF_ONE_PRODUCT, ON_ENGINE, TAKES_REGISTERS
from pipesim.model.ops import Engine, Op, Operation, operand
from pipesim.model.tables import ALL_LANES, WARP_GROUP, ProgramData

WARP = 32
SM_REGISTERS = 65_536  #: that a CTA can have at most
GRANULE = 8  #: registers of a thread are given in multiples of this


class _Agent(Protocol):
    """What is asked of an agent of a program."""

    @property
    def cta(self) -> int: ...
    @property
    def warp(self) -> int: ...


class Request(NamedTuple):
    """One ``setmaxnreg``: where it is in its agent's code, and the registers of a thread from there on."""

    pc: int
    registers: int


class RegisterPools:
    """The pools of all CTAs of a program whose threads have ``launched`` registers each at the launch.

    0: not known; then as few as let every CTA hold what its warps ask for in the end, which is what a kernel that
    uses ``setmaxnreg`` is compiled for.
    """

    def __init__(self, agents: Sequence[_Agent], code: Sequence[Sequence[Operation]], launched: int) -> None:
        self._agents = agents
        self.requests = tuple(
            tuple(Request(pc, operand(op, "registers")) for pc, op in enumerate(ops) if op[0] == Op.SETMAXNREG)
            for ops in code
        )
        ask = {(agent.cta, agent.warp) for agent, mine in zip(agents, self.requests, strict=True) if mine}
        groups: dict[tuple[int, int], list[int]] = {}
        for a, agent in enumerate(agents):
            if self.requests[a] or (agent.cta, agent.warp) not in ask:  # else others of its warp ask for its lanes
                groups.setdefault((agent.cta, agent.warp // WARP_GROUP), []).append(a)
        self.groups = {key: tuple(members) for key, members in sorted(groups.items())}
        self.warps = Counter(cta for (cta, _), members in self.groups.items() for _ in members)
        self.launched = launched or self._least()
        self._positions = tuple(tuple(request.pc for request in mine) for mine in self.requests)

    @cached_property
    def may_block(self) -> bool:
        """True if an agent ever asks for more than it has."""
        return any(
            now > before
            for mine in self.requests
            for before, now in zip(
                [self.launched, *(request.registers for request in mine)],
                [request.registers for request in mine],
                strict=False,
            )
        )

    def members(self, agent: int) -> tuple[int, ...]:
        """The agents of the warp group of an agent, itself among them."""
        return self.groups[self._agents[agent].cta, self._agents[agent].warp // WARP_GROUP]

    def of_thread(self, agent: int, pc: int) -> int:
        """Registers of a thread of an agent that is before the operation at ``pc``."""
        return self.registers_after(agent, self.made_before(agent, pc))

    def made_before(self, agent: int, pc: int) -> int:
        """How many requests an agent has made that is before the operation at ``pc``."""
        return bisect_left(self._positions[agent], pc)

    def registers_after(self, agent: int, made: int) -> int:
        """Registers of a thread of an agent after this many of its requests."""
        return self.requests[agent][made - 1].registers if made else self.launched

    def of_group(self, members: Sequence[int], pcs: Sequence[int]) -> int:
        """Registers of a thread that a warp group holds."""
        return max(self.of_thread(agent, pcs[agent]) for agent in members)

    def missing_registers(self, agent: int, pcs: Sequence[int], wanted: int) -> int:
        """How many registers of the pool are missing for this request, 0 if it is granted."""
        cta, mine = self._agents[agent].cta, self.members(agent)
        more = wanted - self.of_group(mine, pcs)
        return max(0, more * WARP * len(mine) - self.free(cta, pcs)) if more > 0 else 0

    def free(self, cta: int, pcs: Sequence[int]) -> int:
        """Registers of the pool of a CTA that no agent holds."""
        held = sum(len(g) * self.of_group(g, pcs) for (where, _), g in self.groups.items() if where == cta)
        return self.size(cta) - WARP * held

    def highest(self, cta: int) -> int:
        """Registers that the warp groups of a CTA hold at most from their first request on, all of them together."""
        return self._held(cta, self.launched, 0)

    def _held(self, cta: int, launched: int, since: int) -> int:
        """The same of their requests from that one on, -1 for the last; a warp without one has ``launched``."""
        total = 0
        for (where, _), members in self.groups.items():
            if where == cta:
                asked = [request.registers for a in members for request in self.requests[a][since:]]
                bare = any(not self.requests[a] for a in members)
                total += len(members) * max([*asked, *([launched] if bare or not asked else [])])
        return WARP * total

    def size(self, cta: int) -> int:
        """Registers of the pool of a CTA."""
        return WARP * self.launched * self.warps[cta]

    def _least(self) -> int:
        """The fewest registers of a thread at the launch with which every CTA holds what it asks for in the end."""
        asked = [request.registers for mine in self.requests for request in mine]
        enough = (
            registers
            for registers in range(GRANULE, max(asked, default=0), GRANULE)
            if all(self._held(cta, registers, -1) <= WARP * registers * warps for cta, warps in self.warps.items())
        )
        return next(enough, max(asked, default=GRANULE))


def assumed_registers(agents: Sequence[_Agent], code: Sequence[Sequence[Operation]], launched: int) -> int:
    """Registers of a thread at the launch, where warps ask for some and it is not known how many there are; else 0."""
    if launched or not any(op[0] == Op.SETMAXNREG for ops in code for op in ops):
        return 0
    return RegisterPools(agents, code, 0).launched


_READS = -1  #: after the line of a step that is reads in a row, before their accesses
Step = tuple[int, ...]  #: one execution of an instruction of a warp group, as it is compared
Steps = Sequence[tuple[int, Step]]  #: each with its place in the code


def warp_shape_faults(program: ProgramData) -> tuple[Fault, ...]:
    """What the warps of the program's warp groups do that not all of them do, and registers that no CTA has."""
    return (*_uneven_groups(program), *_too_many_registers(program))


def executes_as_warp_group(op: Operation) -> bool:
    """Whether all threads of a warp group execute it together."""
    return op[0] in TAKES_REGISTERS or (op[0] in ON_ENGINE and op[ENGINE] == Engine.WGMMA)


def _uneven_groups(program: ProgramData) -> Iterator[Fault]:
    steps = {a: _steps(program, a) for a, code in enumerate(program.code) if any(map(executes_as_warp_group, code))}
    groups: dict[tuple[int, int], list[int]] = {}
    for a, agent in enumerate(program.agents if steps else ()):
        groups.setdefault((agent.cta, agent.warp // WARP_GROUP), []).append(a)
    found: dict[tuple[str, int], Fault] = {}
    for members in groups.values():
        if any(program.agents[a].lanes != ALL_LANES for a in members):
            continue  # lanes that are followed apart: no agent is a whole warp
        products, requests = zip(*(steps.get(a, ((), ())) for a in members), strict=True)
        for each, least in ((products, WARP_GROUP), (requests, 1)):
            if fault := _uneven(program, members, each, least):
                found.setdefault((program.agents[fault.agent].role, program.lines[fault.agent][fault.pc]), fault)
    yield from found.values()


def _uneven(program: ProgramData, members: Sequence[int], steps: Sequence[Steps], least: int) -> Fault | None:
    """The first execution that is not one of all warps of a group, which has at least this number."""
    most = max(range(len(members)), key=lambda n: len(steps[n]))
    agent = members[most]
    for n, (pc, step) in enumerate(steps[most]):
        if len(members) < least:
            return Fault(FaultKind.WARP_SHAPE, agent, pc, found=len(members), expected=WARP_GROUP)
        for other, theirs in zip(members, steps, strict=True):
            at, same = theirs[n] if n < len(theirs) else (-1, None)
            if not _is_alike(program, step, same, members) and not (
                at < 0 and other in program.cut
            ):  # what follows was not read
                return Fault(FaultKind.WARP_SHAPE, agent, pc, cause_agent=other, cause_pc=at)
    return None


def _is_alike(program: ProgramData, one: Step, other: Step | None, members: Sequence[int]) -> bool:
    """Whether two warps execute the same: of reads in a row as many, or of parts of what the other one reads.

    Of a kernel an operand is read by an operation for each item that lies in it, which differ where others write
    meanwhile; what the warps of the group store themselves may lie there for the one, and not yet for the other.
    """
    if one == other or other is None:
        return one == other
    if one[0] != other[0] or not one[1:2] == other[1:2] == (_READS,):
        return False
    mine, theirs = Counter(one[2:]), Counter(other[2:])
    parts, wholes = mine - theirs, theirs - mine
    accesses = program.accesses

    def lie_in(some: Counter[int], others: Counter[int]) -> bool:
        whole = [accesses[each] for each in others]
        return bool(some) and all(any(accesses[each] in other for other in whole) for each in some)

    if len(one) == len(other) or lie_in(parts, wholes) or lie_in(wholes, parts):
        return True
    stored = {op[ACCESS] for a in members for op in program.code[a] if op[0] == Op.WRITE}
    return all(
        any(accesses[n] in accesses[each] or accesses[each] in accesses[n] for n in stored)
        for each in (*parts, *wholes)
    )


def _steps(program: ProgramData, agent: int) -> tuple[Steps, Steps]:
    """The executions of a warp: of wgmma and its groups, each with its line, and of setmaxnreg.

    One product is several operations of a line. They are counted by their ENGINE_WORK if they have one: what of the
    operands a description gives to each warp may differ. Else all in a row are one execution, with what it reads.
    """
    products: list[tuple[int, Step]] = []
    requests: list[tuple[int, Step]] = []
    code, lines = program.code[agent], program.lines[agent]
    mine = [pc for pc, op in enumerate(code) if executes_as_warp_group(op)]
    for (line, joined), same in groupby(mine, lambda pc: (lines[pc], code[pc][0] in OF_ONE_PRODUCT)):
        places = list(same)
        if joined:
            works = [pc for pc in places if code[pc][0] == Op.ENGINE_WORK]
            products.extend((pc, (line,)) for pc in works)
            if not works:
                products.append((places[0], (line, _READS, *(operand(code[pc], "access") for pc in places))))
            continue
        for pc in places:
            if code[pc][0] in TAKES_REGISTERS:
                requests.append((pc, ()))
            else:
                products.append((pc, (line, *code[pc])))
    return products, requests


def register_bound(warps: int, ctas_per_sm: int = 1) -> int:
    """The most registers of a thread with which a CTA of this number of warps can be launched, this many on an SM.

    Registers are given to warps in multiples of 8 a thread, and to CTAs for four warps at a time (CUDA occupancy
    calculator, compute capability 9.0).
    """
    threads = 32 * -(-warps // WARP_GROUP) * WARP_GROUP
    return min(SM_REGISTERS // (threads * max(ctas_per_sm, 1)) // GRANULE * GRANULE, 256)


def _too_many_registers(program: ProgramData) -> Iterator[Fault]:
    """A CTA that is launched with more registers than there are, or whose warps ask for more in the end."""
    warps: dict[int, dict[int, int]] = {}
    for a, agent in enumerate(program.agents):
        warps.setdefault(agent.cta, {}).setdefault(agent.warp, a)
    for held in warps.values():
        first = next((a for a in held.values() if program.code[a]), -1)
        if first < 0:
            continue
        launched = SM_REGISTERS if register_bound(len(held)) < program.launch_registers else 0
        if launched:
            total = 32 * len(held) * program.launch_registers
            yield Fault(FaultKind.TOO_MANY_REGISTERS, first, 0, found=total, expected=SM_REGISTERS)
            return
        last = {a: pc for a in held.values() if (pc := _last_request(program.code[a])) >= 0}
        total = 32 * sum(operand(program.code[a][pc], "registers") for a, pc in last.items())
        if total > SM_REGISTERS and last.keys().isdisjoint(program.cut):  # which may give some back
            a = max(last, key=lambda each: operand(program.code[each][last[each]], "registers"))
            yield Fault(FaultKind.TOO_MANY_REGISTERS, a, last[a], found=total, expected=SM_REGISTERS)
            return


def _last_request(code: Sequence[Operation]) -> int:
    return next((pc for pc in range(len(code) - 1, -1, -1) if code[pc][0] in TAKES_REGISTERS), -1)
