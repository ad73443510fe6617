"""What the records say about each agent of one CTA: what it ran, when, and which operations make a barrier signal.

Nothing here changes while the machine is moved along the records (:mod:`pipesim.conform.replay.follow_records`).
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple

from pipesim.conform.replay.align import AgentAlignment
from pipesim.model.groups import (
    BARRIER,
    COMMITS,
    LOOP_MARKS,
    MAY_BLOCK,
    ON_NAMED_BARRIER,
    PLAIN_WAITS,
    SUPPLIES,
    SUPPLIES_HERE,
)
from pipesim.model.machine import own_channel
from pipesim.model.ops import Engine, Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.state import new, pool_channel
from pipesim.trace.schema import Events, numbers

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
        return tuple(barrier for barrier, _ in program.landings(op))
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


NEVER = -(1 << 62)  #: a cycle before every other one
EVER = 1 << 62  #: one after every other one
PASSING = -1  #: in place of a barrier: a mark of a loop, or a position outside the window
PARKED_NOWHERE = -2

Rows = tuple[tuple[int, ...], ...]  #: for each position, the events of its operation


@dataclass(frozen=True, slots=True)
class RecordedAgent:
    """One agent. Positions are those in ``ran``, which holds the operations that it ran, as indices of ``code``.

    ``cycle``: of each event of the CTA. ``begin``, ``end``: the window. ``final``: the last operation that was
    recorded, -1 if none was; ``last``: the cycle of its last event. ``partial``: it may have done less than all between
    two records, or more after the last; ``hung``: it stopped where its records end. ``open_end``: a wait that was begun
    last of all, -1 if there is none. ``latest``: :func:`_latest`. ``parks``: :func:`_parks`.
    """

    code: Sequence[Operation]
    ran: Sequence[int]
    rows: Rows
    cycle: Sequence[int]
    answers: Mapping[int, int]
    begin: int
    end: int
    final: int
    last: int
    partial: bool
    hung: bool
    open_end: int
    latest: Sequence[int]
    parks: Sequence[int]

    def where(self, position: int) -> Where:
        """Before, inside or after the window."""
        return BEFORE if position < self.begin else INSIDE if position < self.end else AFTER


def recorded_agents(
    program: Program, events: Events, aligned: Sequence[AgentAlignment], partial: Sequence[bool]
) -> tuple[RecordedAgent, ...]:
    """The agents of a CTA; ``partial``: those that did not finish."""
    cycle = numbers(events.cycle)
    found = []
    for code, each, unfinished in zip(program.code, aligned, partial, strict=True):
        found.append(
            RecordedAgent(
                code=code,
                ran=each.ran,
                rows=each.rows,
                cycle=cycle,
                answers=each.answers,
                begin=each.begin,
                end=each.end,
                final=next((n for n in range(len(each.rows) - 1, -1, -1) if each.rows[n]), -1),
                last=max(map(cycle.__getitem__, chain.from_iterable(each.rows)), default=NEVER),
                partial=unfinished,
                hung=unfinished and not each.cut,
                open_end=len(each.ran) - 1 if each.half else -1,
                latest=_latest(cycle, each, [program.is_access_to_word(code[pc]) for pc in each.ran]),
                parks=_parks(code, each),
            )
        )
    return tuple(found)


def _latest(cycle: Sequence[int], aligned: AgentAlignment, of_words: Sequence[bool]) -> list[int]:
    """For each operation the latest time at which it can have taken effect: that of the agent's next event.

    For a wait with both its events it is that of its return, also for what comes before a wait for a word of global
    memory or an atomic on one (``of_words``): one instruction may be several operations, of which the last has events.
    No uncertainty: an agent's own timestamps are in order.
    """
    bounds = []
    following = EVER
    for mine, of_word in zip(reversed(aligned.rows), reversed(of_words), strict=True):
        bounds.append(cycle[mine[1]] if len(mine) == 2 else following)
        if mine:
            following = cycle[mine[-1 if of_word else 0]]
    return bounds[::-1]


def _parks(code: Sequence[Operation], aligned: AgentAlignment) -> list[int]:
    """Where an agent is at each position, and after the last, if something happens to a barrier.

    The barrier of a plain wait that was recorded from its beginning to its end; else PASSING where an agent may
    move on unasked, PARKED_NOWHERE where it cannot.
    """
    found = []
    for position, (pc, rows) in enumerate(zip(aligned.ran, aligned.rows, strict=True)):
        op = code[pc]
        if not aligned.begin <= position < aligned.end or op[0] in LOOP_MARKS:
            found.append(PASSING)
        else:
            found.append(op[BARRIER] if len(rows) == 2 and op[0] in PLAIN_WAITS else PARKED_NOWHERE)
    return [*found, PARKED_NOWHERE]


def waits_in_order(agents: Sequence[RecordedAgent], *, everything: bool) -> list[tuple[int, int, int, int]]:
    """What must return: cycle, agent, position and event, in order of time.

    ``everything``: whatever was recorded, not only waits and the tries that succeeded.
    """
    found = []
    for number, agent in enumerate(agents):
        for position, (pc, mine) in enumerate(zip(agent.ran, agent.rows, strict=True)):
            if mine:
                both = len(mine) == 2 and (agent.code[pc][0] in MAY_BLOCK or agent.code[pc][0] == Op.ARRIVE)
                demands = both or agent.answers.get(pc)
                if demands or (everything and agent.latest[position] < EVER):
                    found.append((agent.latest[position], number, position, mine[-1]))
    return sorted(found)


def supply_of(program: Program, agents: Sequence[RecordedAgent]) -> Supply:
    """Agent by agent, what could make a channel signal.

    An operation without an event of its own cannot have happened before its agent's event before it.
    """
    supply = Supply(pool_channel(program, program.ctas))
    for number, agent in enumerate(agents):
        earliest = NEVER
        cycle = agent.cycle
        for position, (pc, mine) in enumerate(zip(agent.ran, agent.rows, strict=True)):
            op = agent.code[pc]
            if mine:
                earliest = cycle[mine[0]]
            if op[0] in SUPPLIES:
                where = agent.where(position)
                for channel in supplies(program, number, op):
                    supply.add(channel, number, where, earliest, position)
            if mine:
                earliest = cycle[mine[-1]]
    return supply
