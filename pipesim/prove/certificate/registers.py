"""Requests for registers: whether every one is granted in every schedule (PTX ISA, ``setmaxnreg``).

Suppose that a schedule comes to an end with requests that nobody grants. Take one of them. Every other agent has ended,
or stands before an operation that may block, and everything that occurs before the request has been carried out, but
nothing that occurs after it; nor is the phase that it waits for one that the request knows to be complete. So each warp
group holds at most what it holds at such a place. If the pool suffices for the request beside all of these, it is
granted: there is no such end.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipesim.model.groups import MAY_BLOCK
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.register_pool import WARP, RegisterPools
from pipesim.prove.happens_before.clock import Clock

_Request = tuple[int, int]  #: an agent, and its operation
Phase = tuple[int, int]  #: a channel, and which of its phases
_NONE: Phase = (-1, -1)


class RegisterRequests:
    """Watches one run for the requests, and for what agents hold at places where they may have to wait."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._made: dict[_Request, tuple[int, Clock]] = {}  # for more than the agent has: how many, the moment before
        self._unheard: list[dict[_Request, None]] = [{} for _ in program.agents]  # that an agent knows nothing of
        #: By agent and how many requests it has made: where it may have had to wait, and for which phase.
        self._waited: dict[tuple[int, int], list[tuple[int, Phase]]] = {}
        #: Requests, and where others may stand until they are granted: an agent, after how many requests of its own.
        self._stands: dict[_Request, set[tuple[int, int]]] = {}
        self._whole = True  #: no request was left out with the laps of a loop

    def fork(self, program: Program) -> RegisterRequests:
        """The same for another program, which began with the same operations."""
        twin = RegisterRequests(program)
        twin._made = self._made.copy()
        twin._waited = {at: places.copy() for at, places in self._waited.items()}
        twin._unheard = [each.copy() for each in self._unheard]
        twin._stands = {request: stands.copy() for request, stands in self._stands.items()}
        twin._whole = self._whole and _requests(program) == _requests(self._program)
        return twin

    def moved(self, agent: int, pc: int, op: Operation, before: Clock, after: Clock, phase: Phase | None) -> None:
        """An agent has carried out an operation: the moments before and after it, and the phase it has waited for."""
        pools = self._program.register_pools
        if pools is None:
            return
        more = op[0] == Op.SETMAXNREG and operand(op, "registers") > pools.of_thread(agent, pc)
        if more or (op[0] in MAY_BLOCK and op[0] != Op.SETMAXNREG):
            at, place = (agent, pools.made_before(agent, pc)), (pc, phase or _NONE)
            for request in self._unheard[agent]:
                if not _is_complete(self._made[request][1], place[1]):
                    self._stands[request].add(at)
            self._waited.setdefault(at, []).append(place)
        if more:
            self._make(agent, pc, operand(op, "registers"), before)
        if self._unheard[agent] and after is not before:
            self._unheard[agent] = {each: None for each in self._unheard[agent] if not after.covers(*each)}

    def _make(self, agent: int, pc: int, wanted: int, clock: Clock) -> None:
        """A request: whoever waited somewhere that does not occur before it may stand there still."""
        request = agent, pc
        self._made[request] = wanted, clock
        self._stands[request] = {
            at for at, places in self._waited.items() if at[0] != agent and _may_stand(places, clock.seen[at[0]], clock)
        }
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
                held = [pools.after(agent, made) for agent, made in self._stands[request] if agent in members]
                total += len(members) * max(held, default=0)
        return WARP * total <= pools.size(cta)


def _is_complete(clock: Clock, phase: Phase) -> bool:
    return phase is not _NONE and clock.known[phase[0]] > phase[1]


def _may_stand(places: Sequence[tuple[int, Phase]], first: int, clock: Clock) -> bool:
    """Whether an agent that has come to the operation ``first`` may have to wait at one of these places."""
    for pc, phase in reversed(places):
        if pc < first:
            return False
        if not _is_complete(clock, phase):
            return True
    return False


def _requests(program: Program) -> int:
    return sum(op[0] == Op.SETMAXNREG for code in program.code for op in code)
