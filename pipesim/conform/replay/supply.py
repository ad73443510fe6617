"""What could make a barrier signal: the operations of all agents, and whose turn it is."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Literal, NamedTuple

from pipesim.model.groups import COMMITS, ON_NAMED_BARRIER, SUPPLIES_HERE
from pipesim.model.machine import own_channel
from pipesim.model.ops import Engine, Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.state import new, pool_channel

BEFORE: Literal[0] = 0  #: before the window of iterations that were recorded
INSIDE: Literal[1] = 1
AFTER: Literal[2] = 2
Where = Literal[0, 1, 2]


class _Entry(NamedTuple):
    """An operation: its place in the order of asking, the earliest time at which it can have happened, its position."""

    rank: tuple[int, int]
    earliest: int
    position: int


class Supply:
    """For each channel the operations that can make it signal, agent by agent, in program order.

    Inside the window the earliest is asked first. Outside, where no times are known, agents take turns. No operation is
    looked at again once its agent is past it.
    """

    def __init__(self, channels: int) -> None:
        self._entries: list[dict[int, list[_Entry]]] = [{} for _ in range(channels)]
        self._heads: list[dict[int, int]] = [{} for _ in range(channels)]
        self._turns: dict[tuple[int, int, Where], int] = {}

    def add(self, channel: int, agent: int, where: Where, earliest: int, position: int) -> None:
        """The next operation of ``agent``, at this position of what it ran, that can make ``channel`` signal."""
        turn = self._turns[channel, agent, where] = self._turns.get((channel, agent, where), -1) + 1
        rank = (where, earliest if where == INSIDE else turn)
        entry = new(_Entry, (rank, earliest, position))
        if agent in self._heads[channel]:
            self._entries[channel][agent].append(entry)
        else:
            self._entries[channel][agent] = [entry]
            self._heads[channel][agent] = 0

    def ask(
        self, channel: int, by: int, done: Sequence[int], asking: AbstractSet[int], stuck: Sequence[bool]
    ) -> tuple[int, int] | None:
        """The agent and the position to execute next so that ``channel`` may signal; None if none can have happened.

        ``done`` are the positions that the agents have reached; not asked are those in ``asking`` and those ``stuck``.
        """
        best: tuple[tuple[int, int], int, int] | None = None
        heads = self._heads[channel]
        for agent, entries in self._entries[channel].items():
            if agent in asking or stuck[agent]:
                continue
            head, end, reached = heads[agent], len(entries), done[agent]
            while head < end and entries[head][2] < reached:
                head += 1
            heads[agent] = head
            if head < end:
                rank, earliest, position = entries[head]
                if earliest <= by and (best is None or (rank, agent) < best[:2]):
                    best = (rank, agent, position)
        return None if best is None else best[1:]

    def possible(self, channel: int, by: int, done: Sequence[int]) -> bool:
        """Whether an operation that could make ``channel`` signal, not executed yet, can have happened by then."""
        agents = self._entries[channel].items()
        return any(e.earliest <= by for agent, entries in agents for e in entries if e.position >= done[agent])

    def late(self, channel: int, when: int, done: Sequence[int]) -> int:
        """Cycles from ``when`` to the first operation left that could have helped, 0 if there is none."""
        agents = self._entries[channel].items()
        left = (e.earliest - when for agent, entries in agents for e in entries if e.position >= done[agent])
        return min((gap for gap in left if gap > 0), default=0)


def supplies(program: Program, agent: int, op: Operation) -> tuple[int, ...]:
    """The channels that an operation can make signal for others, now or when its transfer lands."""
    if op[0] == Op.TMA_LOAD and operand(op, "cta_mask"):  # a multicast counts its bytes in every CTA of its mask
        return tuple(
            program.at_rank(operand(op, "barrier"), operand(op, "access"), rank)[0]
            for rank in range(program.ctas)
            if operand(op, "cta_mask") >> rank & 1
        )
    if op[0] in SUPPLIES_HERE:
        return (operand(op, "barrier"),)
    if op[0] in ON_NAMED_BARRIER:
        return (len(program.barriers) + operand(op, "named_barrier"),)
    if op[0] == Op.SETMAXNREG:
        return (pool_channel(program, program.agents[agent].cta),)
    if op[0] == Op.CLUSTER_ARRIVE:
        return (len(program.barriers) + len(program.named_barriers),)
    if op[0] == Op.COMMIT and operand(op, "barrier") < 0 and operand(op, "engine") == Engine.WGMMA:
        return (own_channel(program, agent),)  # the other warps of its warp group wait for it
    return (operand(op, "barrier"),) if op[0] in COMMITS and operand(op, "barrier") >= 0 else ()
