"""What a run must fulfil beside its phases: lives of mbarriers, requests for registers, and CTAs that have not ended.

A life of an mbarrier goes from an init to the inval that ends it; another init of the same word may follow. A life is
closed if its inval occurs after every other operation of that life and after the completion of each of its phases, and
if the open phase is untouched. Then, in every schedule, nothing of one life can meet the next, and phases may be
numbered through all lives of a word: whoever knows of the next init knows that the phases before it are over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipesim.model.groups import ACCESS, ACCESSES, ASYNC_ACCESS, BARRIER, COPY_MASK, MAY_BLOCK
from pipesim.model.moves import Committer
from pipesim.model.ops import Op, Operation, Space, operand
from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import WARP, RegisterPools
from pipesim.prove.happens_before.accesses import Accesses, AccessEvent
from pipesim.prove.happens_before.snapshot import Clock, Marks
from pipesim.prove.refutation import Doubt, Why

Place = tuple[int, int]  #: an operation: agent and pc


class Lives:
    """Which init of each mbarrier is in force, and who has used the barrier since."""

    def __init__(self, program: Program) -> None:
        self._ended = {op[BARRIER] for op in program.operations if op[0] == Op.INVAL}
        self._inits: dict[int, Place] = {}
        self._invals: dict[int, Place] = {}  # of words that are in no life now
        self._uses: dict[int, dict[int, int]] = {bar: {} for bar in self._ended}  # by agent the last operation
        self._landings: dict[int, tuple[Place, int]] = {}  # the last that was no operation's own, and its phase
        self._begun: dict[int, int] = {}  # lives that were begun, of the words that have several

    def fork(self) -> Lives:
        """The same, to continue by itself."""
        twin = object.__new__(Lives)
        twin._ended = self._ended
        twin._inits, twin._invals = self._inits.copy(), self._invals.copy()
        twin._uses = {bar: uses.copy() for bar, uses in self._uses.items()}
        twin._landings, twin._begun = self._landings.copy(), self._begun.copy()
        return twin

    def begin(self, bar: int, place: Place, clock: Clock) -> bool:
        """An init. True if it occurs after the inval of the life before, if there was one."""
        inval = self._invals.pop(bar, None)
        follows = bar not in self._inits and (inval is None or inval[0] == place[0] or clock.covers(*inval))
        self._inits[bar] = place
        if bar in self._ended:
            self._begun[bar] = self._begun.get(bar, 0) + 1
        return follows

    def use(self, bar: int, place: Place, clock: Clock) -> bool:
        """An operation on the barrier. True if it occurs after the init."""
        if bar in self._ended:
            self._uses[bar][place[0]] = place[1]
        init = self._inits.get(bar)
        return init is not None and (init[0] == place[0] or clock.covers(*init))

    def land(self, bar: int, place: Place, phase: int) -> None:
        """An arrival or bytes of an operation that was carried out before come in this phase."""
        if bar in self._ended:
            self._landings[bar] = place, phase

    def end(self, bar: int, place: Place, clock: Clock, phases: int) -> tuple[Place, ...]:
        """An inval, after this many phases of the channel: the operations that it may come before in some schedule."""
        early = [use for use in self._uses[bar].items() if use[0] != place[0] and not clock.covers(*use)]
        issued, phase = self._landings.pop(bar, ((-1, -1), -1))
        if phase == phases - 1 and clock.known[bar] < phases:  # the last phase occurs after those before it
            early.append(issued)
        self._inits.pop(bar, None)
        self._invals[bar] = place
        self._uses[bar] = {}
        return tuple(early)

    def mark(self, marks: Marks) -> None:
        """Enter all that may yet be compared."""
        marks.operations += sorted(self._inits.values())
        marks.operations += sorted(self._invals.values())
        marks.shape += (tuple(sorted(self._begun.items())), len(self._inits), len(self._invals))
        for bar in sorted(self._ended):
            marks.shape += (bar, len(self._uses[bar]), bar in self._landings)
            marks.operations += sorted(self._uses[bar].items())
            if bar in self._landings:
                issued, phase = self._landings[bar]
                marks.operations.append(issued)
                marks.phases.append((bar, phase))


_Request = tuple[int, int]  #: an agent, and its operation
Phase = tuple[int, int]  #: a channel, and which of its phases


# Requests for registers: whether every one is granted in every schedule (PTX ISA, ``setmaxnreg``).
#
# Suppose that a schedule ends with requests that no agent grants. Take the one that this run made first.
# Every other agent has ended, or is before an operation that may block, and everything that occurs before the request
# has been carried out, but nothing that occurs after it; nor is the phase that it waits for one that the request knows
# to be complete. It is not where it was in this run before the request was made: of the agents that are, the first in
# this run waits for what others did before, and nothing holds them up. So each warp group holds at most what it holds
# at such a place. If the pool suffices for the request in addition to all of these, the request is granted, so there
# cannot be such an end.


class RegisterRequests:
    """Watches one run for the requests, and for what agents hold at places where they may have to wait."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._made: dict[_Request, tuple[int, Clock]] = {}  # for more than the agent has: how many, the moment before
        self._unheard: list[dict[_Request, None]] = [{} for _ in program.agents]  # that an agent knows nothing of
        #: Requests, and where others may stand until they are granted: an agent, after how many requests of its own.
        self._stands: dict[_Request, set[tuple[int, int]]] = {}
        self._whole = True  #: no request was left out with the laps of a loop

    def fork(self, program: Program) -> RegisterRequests:
        """The same for another program, which began with the same operations."""
        twin = RegisterRequests(program)
        twin._made = self._made.copy()
        twin._unheard = [each.copy() for each in self._unheard]
        twin._stands = {request: stands.copy() for request, stands in self._stands.items()}
        none = program.register_pools is None and self._program.register_pools is None
        twin._whole = self._whole and (none or _requests(program) == _requests(self._program))
        return twin

    def record_operation(
        self, agent: int, pc: int, op: Operation, before: Clock, after: Clock, phase: Phase | None
    ) -> None:
        """An agent has carried out an operation: the moments before and after it, and the phase it has waited for."""
        pools = self._program.register_pools
        if pools is None:
            return
        more = op[0] == Op.SETMAXNREG and operand(op, "registers") > pools.of_thread(agent, pc)
        if more or (op[0] in MAY_BLOCK and op[0] != Op.SETMAXNREG):
            for request in self._unheard[agent]:
                if not _is_complete(self._made[request][1], phase):
                    self._stands[request].add((agent, pools.made_before(agent, pc)))
        if more:
            self._make(agent, pc, operand(op, "registers"), before)
        if self._unheard[agent] and after is not before:
            self._unheard[agent] = {each: None for each in self._unheard[agent] if not after.covers(*each)}

    def _make(self, agent: int, pc: int, wanted: int, clock: Clock) -> None:
        """A request: an agent that does not know of it may from now on reach a place while no agent grants it."""
        request = agent, pc
        self._made[request], self._stands[request] = (wanted, clock), set()
        for other, unheard in enumerate(self._unheard):
            if other != agent:
                unheard[request] = None

    def all_granted(self) -> bool:
        """Once the run is over: whether every request is granted in every schedule."""
        pools = self._program.register_pools
        if pools is None:
            return True
        ends = [(agent, len(mine)) for agent, mine in enumerate(pools.requests)]
        for agent, unheard in enumerate(self._unheard):
            for request in unheard:
                self._stands[request].add(ends[agent])
        return self._whole and all(self._is_granted(pools, request, made[0]) for request, made in self._made.items())

    def _is_granted(self, pools: RegisterPools, request: _Request, wanted: int) -> bool:
        cta, mine = self._program.agents[request[0]].cta, pools.members(request[0])
        total = len(mine) * wanted
        for (where, _), members in pools.groups.items():
            if where == cta and members != mine:
                held = [pools.registers_after(agent, made) for agent, made in self._stands[request] if agent in members]
                total += len(members) * max(held, default=0)
        return WARP * total <= pools.size(cta)


def _is_complete(clock: Clock, phase: Phase | None) -> bool:
    return phase is not None and clock.known[phase[0]] > phase[1]


def _requests(program: Program) -> int:
    return sum(op[0] == Op.SETMAXNREG for op in program.operations)


# What reaches into another CTA, which must not have ended by then: parts of its phases, accesses to its memory.


class PhasePart(NamedTuple):
    """A part of a phase of a barrier in another CTA: of an operation, or of a flight (0: none).

    Of several flights of one operation the last. ``by``: whose later commits show that it has arrived, if any do.
    """

    bar: int
    phase: int
    agent: int
    pc: int
    flight: int
    by: Committer | None = None


class OtherCta:
    """The parts and accesses of one run of which no agent in the other CTA knows yet."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._parts: list[PhasePart] = []
        self._accesses: list[tuple[int, AccessEvent]] = []  # with the CTA whose memory it is

    def fork(self, program: Program) -> OtherCta:
        """The same for another program, which has the same tables."""
        twin = OtherCta(program)
        twin._parts, twin._accesses = self._parts.copy(), self._accesses.copy()
        return twin

    def part(self, part: PhasePart) -> None:
        """Something is counted on a barrier; of interest if that lies in another CTA than its agent."""
        if self._program.barriers[part.bar].cta != self._program.agents[part.agent].cta:
            self._parts.append(part)

    def all_arrived(self, bar: int, phase: int) -> None:
        """Whoever knows this phase, the last one of the barrier, knows all of its parts."""
        self._parts = [part._replace(phase=phase) if part.bar == bar else part for part in self._parts]

    def access(self, access: AccessEvent) -> None:
        """The same of an access. A multicast lands where the barrier is that it signals, or in that one's pair."""
        program, op = self._program, self._program.code[access.agent][access.pc]
        memory = program.accesses[op[ACCESS] if op[0] in ACCESSES else op[ASYNC_ACCESS]]
        if op[0] == Op.TMA_LOAD and op[COPY_MASK]:
            cta = program.cell_ctas[access.first]
            if program.barriers[op[BARRIER]].cta != memory.cta and cta != program.agents[access.agent].cta:
                self._accesses.append((cta, access))
            return
        if memory.cta != self._program.agents[access.agent].cta and memory.space != Space.GLOBAL:
            self._accesses.append((memory.cta, access))

    def doubts(self, clocks: Sequence[Clock], accesses: Accesses) -> list[Doubt]:
        """What may come when its CTA has ended; the clocks are those of all agents at the end of the run."""
        found = []
        by_cta = [self._ends(clocks, cta) for cta in range(self._program.ctas)] if self._parts or self._accesses else []
        for part in self._parts:
            ends = by_cta[self._program.barriers[part.bar].cta]
            if ends and not any(_knows(accesses, clock, part) for clock in ends):
                found.append(Doubt(Why.EXIT, part.agent, part.pc, _all(ends), where=part.bar))
        for cta, access in self._accesses:
            ends = by_cta[cta]
            if ends and not any(accesses.over(clock, access) for clock in ends):
                found.append(Doubt(Why.EXIT, access.agent, access.pc, _all(ends)))
        return found

    def mark(self, marks: Marks, clocks: Sequence[Clock], accesses: Accesses) -> None:
        """Enter what no agent of the other CTA knows of yet; what one knows it knows for good."""
        self._parts = [part for part in self._parts if not self._is_known(accesses, part, clocks)]
        self._accesses = [
            (cta, access)
            for cta, access in self._accesses
            if not any(accesses.over(clocks[a], access) for a in self._program.agents_of_cta[cta])
        ]
        for cta, access in self._accesses:
            marks.shape += (cta, access.flight > 0, access.engine)
            marks.operations.append((access.agent, access.pc))
            if access.flight:
                accesses.mark_end(marks, access.agent, access.engine, access.flight)
        for part in self._parts:
            marks.shape += (part.bar, part.flight > 0)
            marks.phases.append((part.bar, part.phase))
            marks.operations.append((part.agent, part.pc))
            if part.by is not None:
                accesses.mark_end(marks, *part.by, part.flight, in_order=True)

    def _is_known(self, accesses: Accesses, part: PhasePart, clocks: Sequence[Clock]) -> bool:
        there = self._program.agents_of_cta[self._program.barriers[part.bar].cta]
        return any(_knows(accesses, clocks[agent], part) for agent in there)

    def _ends(self, clocks: Sequence[Clock], cta: int) -> list[Clock]:
        """What each agent of a CTA knows at its end. A CTA without agents, or with one that was cut, never exits."""
        if any(a in self._program.cut for a in self._program.agents_of_cta[cta]):
            return []
        return [clocks[a].after_operation(a, len(self._program.code[a]) - 1) for a in self._program.agents_of_cta[cta]]


def _knows(accesses: Accesses, clock: Clock, part: PhasePart) -> bool:
    """True if this part of a phase occurs before the moment; where commits keep their order, a later one shows so."""
    if clock.known[part.bar] > part.phase or (not part.flight and clock.covers(part.agent, part.pc)):
        return True
    return part.by is not None and accesses.committed_since(clock, *part.by, part.flight, in_order=True)


def _all(clocks: Sequence[Clock]) -> tuple[int, ...]:
    """The operations of each agent that one of the clocks has seen."""
    return tuple(map(max, *(clock.seen for clock in clocks))) if len(clocks) > 1 else tuple(clocks[0].seen)
