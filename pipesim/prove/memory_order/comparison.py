"""The accesses of one run, each compared with those before it, and every use of a barrier with its init.

What an agent knows is the observer's to say (:mod:`pipesim.prove.memory_order.order`). Here is what it has to know:
which accesses conflict, what orders them, and which of them need a fence between the proxies as well.
"""

from collections import deque
from collections.abc import Iterator, Set
from enum import IntEnum
from typing import NamedTuple

from pipesim.model import groups
from pipesim.model.coverage import Assumption
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import COMMIT_BARRIER, ENGINE, FENCE
from pipesim.model.ops import Engine, Fence, Op, Operation, Order, Scope, Space, operand, order_of, scope_of
from pipesim.model.program import Program
from pipesim.model.state import own_channel
from pipesim.model.tables import ProgramData
from pipesim.prove.happens_before.accesses import OWN, Accesses, AccessEvent
from pipesim.prove.happens_before.snapshot import Clock, Knowledge, Marks, PhaseKnowledge

_MOST_WEAK = 4_000  #: operations that may be to blame for what comes after them, each with what comes before it


class _Weak(NamedTuple):
    """An operation that releases, or acquires, less than comes before it."""

    kind: FaultKind
    agent: int
    pc: int
    occurs: Clock


class AccessOrder:
    """Of one run: ``accesses``, and whether any two were ``unordered`` by all that an observer of memory knows."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.accesses = Accesses()
        self.unordered = False
        self._inits: dict[int, tuple[int, int]] = {}
        self._weak = deque[_Weak](maxlen=_MOST_WEAK)
        self._faults: dict[tuple[FaultKind, str, str, str, str], tuple[Fault, tuple[int, ...]]] = {}
        self._proxies = _cells_in(program, {Space.SHARED, Space.GLOBAL})
        self._addresses: set[tuple[int, int, int]] = set()  # reads (agent, pc, cell) of what tcgen05.alloc has written
        self._allocates = program.fences_reads and _allocates(program)
        self.tensor_seen: dict[int, Clock] = {}  #: by agent: what its last tcgen05.fence::after_thread_sync orders
        self._tensor = _cells_in(program, {Space.TENSOR}) if needs_tensor_fences(program) else set()
        self._synchronous = frozenset(_releases(program) if self._tensor else ())
        self._no_fence = Clock((0,) * len(program.agents), (0,) * own_channel(program, 0))

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Each (kind, role and line, role and line of the other access) once, in order."""
        return tuple(fault for fault, _ in self._faults.values())

    @property
    def pasts(self) -> tuple[tuple[int, ...], ...]:
        """For each fault how many operations of each agent occur before it."""
        return tuple(past for _, past in self._faults.values())

    def goes_on_in(self, program: Program) -> None:
        """From here on the run is that of another program, which has the same tables and began as this one."""
        self._program = program

    def add_weak_operation(self, kind: FaultKind, agent: int, pc: int, occurs: Clock) -> None:
        """Remember an operation that may be to blame for what comes after it."""
        self._weak.append(_Weak(kind, agent, pc, occurs))

    def begin_life(self, bar: int, agent: int, pc: int) -> None:
        """An mbarrier begins a life."""
        self._inits[bar] = (agent, pc)

    def end_life(self, bar: int) -> None:
        """An mbarrier ends its life."""
        self._inits.pop(bar, None)

    # comparing

    def touch(self, access: AccessEvent, here: Knowledge) -> None:
        """Enter an access that begins after the moment ``here``; compare it with those before it."""
        if self._allocates and access.flight == OWN and not access.writes:
            for cell in range(access.first, access.end):
                seen = self.accesses.writes.get(cell)
                if seen is not None and seen.engine == Engine.TCGEN05 and cell in self._proxies:
                    self._addresses.add((access.agent, access.pc, cell))
        for cell, other in self.accesses.enter(access):
            kind = self._wrong(here, cell, other, access)
            if kind is not None:
                self._report(kind, here, access.agent, access.pc, (other.agent, other.pc), -1, other)

    def _wrong(self, here: Knowledge, cell: int, other: AccessEvent, access: AccessEvent) -> FaultKind | None:
        ordered = self.accesses.ordered
        if not ordered(here.occurs, other, access):
            self.unordered = True
            return None  # a race in some schedule: which the certificate reports
        tensor = cell in self._tensor and other.agent != access.agent
        if tensor and ordered(self.tensor_seen.get(access.agent, self._no_fence), other, access):
            return None
        if here.ordered is not here.occurs and not ordered(here.ordered, other, access):
            return FaultKind.WEAK_ORDER
        if here.synced is not here.ordered and not ordered(here.synced, other, access):
            return FaultKind.NARROW_SCOPE
        if tensor and self._asks_for_tensor_fence(other, access):
            return FaultKind.TENSOR_FENCE
        if other.generic == access.generic or cell not in self._proxies:
            return None
        if not self._needs_fence(other, cell) or self.accesses.over(here.proxied, other):
            return None
        return FaultKind.MISSING_PROXY_FENCE if other.writes else FaultKind.READ_NOT_FENCED

    def _asks_for_tensor_fence(self, other: AccessEvent, access: AccessEvent) -> bool:
        """True if the rule is strict, and neither access is that of a release, which is synchronous."""
        if Assumption.TENSOR_FENCES not in self._program.strictness:
            return False
        return self._synchronous.isdisjoint({(other.agent, other.pc), (access.agent, access.pc)})

    def _needs_fence(self, other: AccessEvent, cell: int) -> bool:
        """True if a fence has to follow the access before one through the other proxy.

        What an engine has written is visible to whoever has waited for it; of reads it may be assumed that they have
        ended before the next arrive, but not of a thread's on sm_100 and later. (Of the address that ``tcgen05.alloc``
        has written it may: a warp reads it once, long before other bytes come there, and no library fences that.)
        """
        if other.writes:
            return other.generic
        if Assumption.PROXIES in self._program.strictness:
            return True
        return other.generic and self._program.fences_reads and (other.agent, other.pc, cell) not in self._addresses

    def use(self, bar: int, agent: int, pc: int, here: Knowledge, *, asynchronous: bool = False) -> None:
        """An operation on a barrier, or (asynchronous) of an engine, at this moment: the init must have reached it."""
        init = self._inits.get(bar)
        if init is not None and init[0] != agent and not here.occurs.covers(*init):
            self.unordered = True
        if init is None or not here.occurs.covers(*init) or here.published.covers(*init):
            return
        if here.synced.covers(*init) and (not asynchronous or self._is_enough(init, bar, agent)):
            return
        self._report(FaultKind.UNPUBLISHED_INIT, here, agent, pc, init, bar, None)

    def _is_enough(self, init: tuple[int, int], bar: int, agent: int) -> bool:
        """True if an init needs no fence within its CTA: its own agent uses the barrier, or others first learn of the
        init by a barrier of the CTA.

        Program order is as strong as such a barrier: PTX asks for the fence after either. The bytes of a copy and the
        arrival of ``cp.async`` tell no agent what their agent did before; an agent that waits for the barrier itself
        knows of its init already.
        """
        owner, began = init
        agents = self._program.agents
        ctas = {agents[owner].cta, agents[agent].cta, self._program.barriers[bar].cta}
        if Assumption.INIT in self._program.strictness or len(ctas) > 1:
            return False
        if agent == owner:
            return True
        following = (op for op in self._program.code[owner][began + 1 :] if op[0] in groups.LETS_OTHERS_KNOW)
        return next((op[0] in groups.MEETINGS for op in following if not _is_on(op, bar)), False)

    def report_absent(self, here: Knowledge, agent: int, pc: int, access: int, *, started: bool) -> None:
        """An access to the memory of a CTA that may have exited, or (not ``started``) may not have begun."""
        key = FaultKind.ABSENT_CTA, self._program.agents[agent].role, self._program.line(agent, pc), "", str(started)
        fault = Fault(FaultKind.ABSENT_CTA, agent, pc, -1, access, int(started))
        self._faults.setdefault(key, (fault, here.occurs.seen))

    def _report(
        self,
        kind: FaultKind,
        here: Knowledge,
        agent: int,
        pc: int,
        other: tuple[int, int],
        bar: int,
        on: AccessEvent | None,
    ) -> None:
        program = self._program
        role, its_role = program.agents[agent].role, program.agents[other[0]].role
        key = kind, role, program.line(agent, pc), its_role, program.line(*other)
        if key in self._faults:
            return
        cause = self._cause(kind, here.occurs, on) if on is not None else (-1, -1)
        fault = Fault(kind, agent, pc, bar, 0, 0, *other, *cause)
        self._faults[key] = (fault, here.occurs.seen)

    def _cause(self, kind: FaultKind, here: Clock, access: AccessEvent) -> tuple[int, int]:
        """The first operation between the two accesses that is too weak, (-1, -1) if no operation is.

        With a ``fence.sc`` after the access it is the last that reads: such a fence after it is enough.
        """
        code = self._program.code
        over = [each for each in self._weak if each.kind is kind and self.accesses.over(each.occurs, access)]
        found = [(each.agent, each.pc) for each in over if here.covers(each.agent, each.pc)]
        fenced = any(op[0] == Op.FENCE and op[FENCE] == Fence.SC for op in code[access.agent][access.pc :])
        seen = (each for each in reversed(found) if fenced and code[each[0]][each[1]][0] in groups.MAY_ACQUIRE)
        return next(seen, found[0] if found else (-1, -1))

    # its place

    def fork(self) -> "AccessOrder":
        """The same, to continue by itself."""
        twin = object.__new__(AccessOrder)
        vars(twin).update(vars(self))
        twin.accesses = self.accesses.fork()
        twin.tensor_seen, twin._addresses = self.tensor_seen.copy(), self._addresses.copy()
        twin._inits, twin._faults, twin._weak = self._inits.copy(), self._faults.copy(), self._weak.copy()
        return twin

    def mark(self, marks: Marks) -> None:
        """Enter what later accesses and uses will be compared with."""
        marks.shape += (len(self._faults), *sorted(self._inits))
        marks.operations += [self._inits[bar] for bar in sorted(self._inits)]
        self.accesses.mark(marks)
        marks.operations += sorted({(agent, pc) for agent, pc, _ in self._addresses})
        marks.shape += tuple(sorted(self.tensor_seen))
        marks.clocks += [self.tensor_seen[agent] for agent in sorted(self.tensor_seen)]


# What orders accesses of two threads to tensor memory (PTX ISA, "Memory Consistency Model for 5th generation of
# TensorCore operations"): tcgen05.fence::before_thread_sync orders what its thread has done for what synchronises after
# it, and a commit implies it; ::after_thread_sync orders what came before by that for what its thread does later. The
# order of the operations in between has no effect: in the canonical form they are relaxed.


def needs_tensor_fences(program: ProgramData) -> bool:
    """True if an observer has to follow the fences of tensor memory: there is some, and a fence or the strict rule."""
    if all(a.space != Space.TENSOR for a in program.accesses):
        return False
    fences = {Fence.TCGEN05_BEFORE, Fence.TCGEN05_AFTER}
    return Assumption.TENSOR_FENCES in program.strictness or any(
        op[0] == Op.FENCE and op[FENCE] in fences for op in program.operations
    )


def _allocates(program: Program) -> bool:
    """True if ``tcgen05.alloc`` writes an address into shared memory, which is all that tcgen05 writes there."""
    writes = {op for op in program.operations if op[0] == Op.TRANSFER_WRITE and op[ENGINE] == Engine.TCGEN05}
    return any(program.accesses[operand(op, "access")].space == Space.SHARED for op in writes)


def _is_on(op: Operation, bar: int) -> bool:
    """True of an operation on this mbarrier alone."""
    return op[0] in groups.ON_BARRIER and operand(op, "barrier") == bar


def _cells_in(program: Program, spaces: Set[Space]) -> set[int]:
    found = zip(program.accesses, program.cells, strict=True)
    return {cell for a, (first, end) in found if a.space in spaces for cell in range(first, end)}


def _releases(program: ProgramData) -> Iterator[tuple[int, int]]:
    """The accesses of ``tcgen05.dealloc``: those whose agent closes their group and waits, as no other tcgen05 does."""
    for agent, code in enumerate(program.code):
        closed = False
        for pc in range(len(code) - 1, -1, -1):
            op = code[pc]
            if op[0] in groups.COMMITS and op[ENGINE] == Engine.TCGEN05:
                closed = op[COMMIT_BARRIER] < 0
            elif closed and op[0] == Op.TRANSFER_WRITE and op[ENGINE] == Engine.TCGEN05:
                yield agent, pc
            elif op[0] != Op.TRANSFER_WRITE:
                closed = False


_ACQUIRES = frozenset({Order.DEFAULT, Order.ACQUIRE, Order.ACQ_REL})


# How far what an operation says about memory reaches: to no agent, inside one CTA, or to other CTAs as well.
#
# PTX ISA, memory consistency model, *release and acquire patterns*: a relaxed arrival releases what a fence before it
# covers, a relaxed wait or try orders what it has seen from the next fence on, each as far as fence and operation
# reach.


class FenceReach(IntEnum):
    """How far something orders memory: not at all, inside one CTA, or across CTAs as well."""

    NOWHERE = 0
    CTA = 1
    CLUSTER = 2


class Observation(NamedTuple):
    """What having seen a phase orders: how far it orders ``now``, and how far a wide fence after it would."""

    now: FenceReach
    fenced: FenceReach


class Fences(NamedTuple):
    """What an agent's fences cover: the last one of any scope, and the last one that reaches other CTAs."""

    near: Knowledge
    wide: Knowledge


class WeakTry(NamedTuple):
    """A try whose answer an agent holds: its order and scope, its position, and the fences since.

    ``phases`` were complete when it said yes, of which ``seen`` is the last; 0 if it said no.
    """

    written: int
    pc: int
    phases: int
    seen: PhaseKnowledge | None
    fenced: FenceReach


def is_acquire(written: int) -> bool:
    """True for an order and scope, as an operand has them, that acquires what was released."""
    return order_of(written) in _ACQUIRES


def observation(written: int) -> Observation:
    """What a wait or try of this order and scope is worth once it has seen its phase."""
    reach = FenceReach.CTA if scope_of(written) == Scope.CTA else FenceReach.CLUSTER
    return Observation(reach if is_acquire(written) else FenceReach.NOWHERE, reach)
