"""Requests for registers: whether every one is granted in every schedule (PTX ISA, ``setmaxnreg``).

Suppose that a schedule comes to an end with requests that nobody grants. Take the one that this run made first. Every
other agent has ended, or stands before an operation that may block, and everything that occurs before the request has
been carried out, but nothing that occurs after it; nor is the phase that it waits for one that the request knows to be
complete. It does not stand where it stood in this run before the request was made: of those who do, the first in this
run waits for what others did before, and nothing holds them up. So each warp group holds at most what it holds at such
a place. If the pool suffices for the request beside all of these, it is granted: there is no such end.
"""

from __future__ import annotations

from pipesim.model.groups import MAY_BLOCK
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.register_pool import WARP, RegisterPools
from pipesim.prove.happens_before.clock import Clock

_Request = tuple[int, int]  #: an agent, and its operation
Phase = tuple[int, int]  #: a channel, and which of its phases


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

    def moved(self, agent: int, pc: int, op: Operation, before: Clock, after: Clock, phase: Phase | None) -> None:
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
        """A request: whoever does not know of it may from now on come to a place while nobody grants it."""
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
                held = [pools.after(agent, made) for agent, made in self._stands[request] if agent in members]
                total += len(members) * max(held, default=0)
        return WARP * total <= pools.size(cta)


def _is_complete(clock: Clock, phase: Phase | None) -> bool:
    return phase is not None and clock.known[phase[0]] > phase[1]


def _requests(program: Program) -> int:
    return sum(op[0] == Op.SETMAXNREG for code in program.code for op in code)
