"""The accesses of one run, each compared with those before it, and every use of a barrier with its init.

What an agent knows is the observer's to say (:mod:`pipesim.prove.memory_order.order`). Here is what it has to know:
which accesses conflict, what orders them, and which of them need a fence between the proxies as well.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from pipesim.model import groups
from pipesim.model.assumptions import Assumption
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.ops import Order, Scope, Space, order_of, scope_of
from pipesim.model.program import Program
from pipesim.prove.happens_before.accesses import Accesses, AccessEvent
from pipesim.prove.happens_before.snapshot import Clock, Knowledge, Marks


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
        self._weak: list[_Weak] = []
        self._faults: dict[tuple[FaultKind, str, str], tuple[Fault, tuple[int, ...]]] = {}
        spaces = {Space.SHARED, Space.GLOBAL}
        self._proxies = {
            cell for a, (first, end) in zip(program.accesses, program.cells, strict=True) if a.space in spaces
            for cell in range(first, end)
        }  # fmt: skip

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Each (kind, line, line of the other access) once, in order."""
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
        for cell, other in self.accesses.enter(access):
            kind = self._wrong(here, cell, other, access)
            if kind is not None:
                self._report(kind, here, access.agent, access.pc, (other.agent, other.pc), -1, other)

    def _wrong(self, here: Knowledge, cell: int, other: AccessEvent, access: AccessEvent) -> FaultKind | None:
        ordered = self.accesses.ordered
        if not ordered(here.occurs, other, access):
            self.unordered = True
            return None  # a race in some schedule: which the certificate reports
        if here.ordered is not here.occurs and not ordered(here.ordered, other, access):
            return FaultKind.WEAK_ORDER
        if here.synced is not here.ordered and not ordered(here.synced, other, access):
            return FaultKind.NARROW_SCOPE
        if other.generic == access.generic or cell not in self._proxies:
            return None
        if not self._needs_fence(other) or self.accesses.over(here.proxied, other):
            return None
        return FaultKind.MISSING_PROXY_FENCE if other.writes else FaultKind.READ_NOT_FENCED

    def _needs_fence(self, other: AccessEvent) -> bool:
        """True if a fence has to follow the access before one through the other proxy.

        What an engine has written is visible to whoever has waited for it; of reads it may be assumed that they have
        ended before the next arrive.
        """
        return other.generic if other.writes else Assumption.PROXIES in self._program.strictness

    def use(self, bar: int, agent: int, pc: int, here: Knowledge, *, asynchronous: bool = False) -> None:
        """An operation on a barrier, or (asynchronous) of an engine, at this moment: the init must have reached it."""
        init = self._inits.get(bar)
        if init is not None and init[0] != agent and not here.occurs.covers(*init):
            self.unordered = True
        if init is None or not here.occurs.covers(*init) or here.published.covers(*init):
            return
        if here.synced.covers(*init) and (not asynchronous or self._is_enough(init, bar, agent, pc)):
            return
        self._report(FaultKind.UNPUBLISHED_INIT, here, agent, pc, init, bar, None)

    def _is_enough(self, init: tuple[int, int], bar: int, agent: int, pc: int) -> bool:
        """True if an init needs no fence within its CTA: others first learn of it by a barrier of the CTA."""
        owner, began = init
        agents = self._program.agents
        ctas = {agents[owner].cta, agents[agent].cta, self._program.barriers[bar].cta}
        if Assumption.INIT in self._program.strictness or len(ctas) > 1:
            return False
        following = self._program.code[owner][began + 1 : pc if agent == owner else None]
        return next((op[0] in groups.MEETINGS for op in following if op[0] in groups.HANDS_ON), False)

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
        key = (kind, self._program.line(agent, pc), self._program.line(*other))
        if key in self._faults:
            return
        cause = self._cause(kind, here.occurs, on) if on is not None else (-1, -1)
        fault = Fault(kind, agent, pc, bar, 0, 0, *other, *cause)
        self._faults[key] = (fault, here.occurs.seen)

    def _cause(self, kind: FaultKind, here: Clock, access: AccessEvent) -> tuple[int, int]:
        """The first operation between the two accesses that is too weak, (-1, -1) if no operation is."""
        for weak in self._weak:
            between = here.covers(weak.agent, weak.pc) and self.accesses.over(weak.occurs, access)
            if weak.kind is kind and between:
                return weak.agent, weak.pc
        return -1, -1

    # its place

    def fork(self) -> AccessOrder:
        """The same, to continue by itself."""
        twin = object.__new__(AccessOrder)
        vars(twin).update(vars(self))
        twin.accesses = self.accesses.fork()
        twin._inits, twin._faults, twin._weak = self._inits.copy(), self._faults.copy(), self._weak.copy()
        return twin

    def mark(self, marks: Marks) -> None:
        """Enter what later accesses and uses will be compared with."""
        marks.shape += (len(self._faults), *sorted(self._inits))
        marks.operations += [self._inits[bar] for bar in sorted(self._inits)]
        self.accesses.mark(marks)


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

    ``phases`` were complete when it said yes; 0 if it said no.
    """

    written: int
    pc: int
    phases: int
    fenced: FenceReach


def is_acquire(written: int) -> bool:
    """True for an order and scope, as an operand has them, that acquires what was released."""
    return order_of(written) in _ACQUIRES


def observation(written: int) -> Observation:
    """What a wait or try of this order and scope is worth once it has seen its phase."""
    reach = FenceReach.CTA if scope_of(written) == Scope.CTA else FenceReach.CLUSTER
    return Observation(reach if is_acquire(written) else FenceReach.NOWHERE, reach)
