"""Who holds how many registers: the pool of a CTA, from which ``setmaxnreg`` takes and to which it gives back.

A CTA is launched with the same number of registers for every thread; that is all it ever has. A request for more waits
until others have given back enough (PTX ISA, ``setmaxnreg``; measured). A warp group asks together: it holds what its
most demanding warp has asked for, so that one warp's request is that of all, and registers are free when all four
have given them back. What a group holds follows from where its warps are in their code, so a state needs no more.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

from pipesim.model.ops import Op, Operation, operand

WARP, WARP_GROUP = 32, 4
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
        self.launched = launched or self._least()
        groups: dict[tuple[int, int], list[int]] = {}
        for a, agent in enumerate(agents):
            groups.setdefault((agent.cta, agent.warp // WARP_GROUP), []).append(a)
        self.groups = {key: tuple(members) for key, members in sorted(groups.items())}
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
        return WARP * (self.launched * sum(agent.cta == cta for agent in self._agents) - held)

    def highest(self, cta: int) -> int:
        """Registers that the warp groups of a CTA hold at most from their first request on, all of them together."""
        total = 0
        for (where, _), members in self.groups.items():
            if where == cta:
                asked = [request.registers for a in members for request in self.requests[a]]
                bare = any(not self.requests[a] for a in members)
                total += len(members) * max([*asked, *([self.launched] if bare or not asked else [])])
        return WARP * total

    def size(self, cta: int) -> int:
        """Registers of the pool of a CTA."""
        return WARP * self.launched * sum(agent.cta == cta for agent in self._agents)

    def _least(self) -> int:
        """The fewest registers of a thread at the launch with which every CTA holds what it asks for in the end."""
        least = GRANULE
        for cta in {agent.cta for agent in self._agents}:
            last = [
                mine[-1].registers
                for agent, mine in zip(self._agents, self.requests, strict=True)
                if agent.cta == cta and mine
            ]
            if last:
                least = max(least, -(-sum(last) // (len(last) * GRANULE)) * GRANULE)
        return least


def assumed_registers(agents: Sequence[_Agent], code: Sequence[Sequence[Operation]], launched: int) -> int:
    """Registers of a thread at the launch, where warps ask for some and it is not known how many there are; else 0."""
    if launched or not any(op[0] == Op.SETMAXNREG for ops in code for op in ops):
        return 0
    return RegisterPools(agents, code, 0).launched
