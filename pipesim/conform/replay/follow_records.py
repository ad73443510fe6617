"""Replay on demand: is there an order of the machine's moves that explains the recorded times?

Waits (and tries that succeeded) are taken in the order in which they returned. To let a wait return at time t, only
operations whose earliest possible time is not after t plus the uncertainty are executed, and of those only what its
barrier still needs; bytes in flight may land whenever they are needed. If nothing is left that could help, the wait
returned too early. Every operation is executed once, so the whole is linear in the trace (after sorting it).

Operations outside the window of a recording, and those whose records were lost, are executed when they are needed too:
before the window at any time before their agent's first record, after it at any time after its last.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from pipesim.conform.replay.align import Aligned
from pipesim.conform.replay.divergence import CtaDivergences
from pipesim.conform.replay.releases import ReplayWatcher
from pipesim.conform.replay.supply import AFTER, BEFORE, INSIDE, Supply, Where, supplies
from pipesim.conform.result import Divergence
from pipesim.model import barrier as mbarrier
from pipesim.model.finding import Fault
from pipesim.model.groups import AT_ONCE_UNRECORDED, LOOP_MARKS, MAY_BLOCK, PARITY_WAITS, PLAIN_WAITS, SUPPLIES_HERE
from pipesim.model.machine import (
    Flight,
    State,
    finished,
    initial_state,
    land,
    own_channel,
    step,
)
from pipesim.model.moves import can_land, completing_size, failed, finds, first_to_land
from pipesim.model.ops import Op, Operation
from pipesim.model.positions import BARRIER, COUNT, PARITY
from pipesim.model.program import Program
from pipesim.model.state import pool_channel
from pipesim.trace.schema import Events

#: A trap is noticed late: its agent may go on for so many cycles. On the chip it recorded the copy behind an arrive
#: that trapped, 55 cycles later.
TRAP_LATE = 500
_NEVER = -(1 << 62)
_EVER = 1 << 62


class _Demand(NamedTuple):
    """Advance ``agent`` to position ``end`` of what it ran, for a wait that returned at ``limit`` by event ``row``.

    ``refused`` are the agents that were asked to enable its next operation and could not, by ``limit``.
    """

    agent: int
    end: int
    limit: int
    row: int
    refused: set[int]


class Rules(NamedTuple):
    """How strict a replay is.

    ``forgiving``: broken rules that the hardware does not notice are collected; ``trapped``: so is one that it does
    notice, and ends the replay. ``everything``: before each return all is executed that happened before it, not only
    what the return needs; a phase that comes and goes while an agent waits is found in one of the two ways.
    """

    forgiving: bool = False
    trapped: bool = False
    everything: bool = False


STRICT = Rules()


class Replayed(NamedTuple):
    """How far the machine followed one CTA's records.

    ``divergence`` is None if it followed them all. If the rules forgive, ``hazards`` are the faults that the hardware
    does not notice (races, wrong items), ``trap`` the one at which it ends the launch. ``state``: where everything is.
    """

    state: State
    divergence: Divergence | None
    hazards: tuple[Fault, ...]
    trap: Fault | None


def replay(
    program: Program, events: Events, aligned: list[Aligned], partial: list[bool], uncertainty: int,
    divergences: CtaDivergences, rules: Rules, releases: ReplayWatcher | None = None,
) -> Replayed:  # fmt: skip
    """Move the machine along the records of one CTA; ``partial``: agents that did not finish.

    ``releases`` is told what happens, and says which return came too soon after its release.
    """
    moving = _Replay(program, events, aligned, partial, uncertainty, divergences, rules, releases)
    found = moving.run()
    return Replayed(moving.state, found, tuple(moving.hazards), moving.trap)


class _Replay:
    """One CTA's machine, moved by its recorded events."""

    def __init__(
        self,
        program: Program,
        events: Events,
        aligned: list[Aligned],
        partial: list[bool],
        uncertainty: int,
        divergences: CtaDivergences,
        rules: Rules = STRICT,
        releases: ReplayWatcher | None = None,
    ) -> None:
        self._program = program
        self._releases = releases
        self._rules = rules
        self.hazards: list[Fault] = []
        self.trap: Fault | None = None
        self._over = False  #: a landing ended the launch
        self._uncertainty = uncertainty
        self._divergences = divergences
        self.state: State = initial_state(program)
        self._ran = [a.ran for a in aligned]
        self._rows = [a.rows for a in aligned]
        #: the last operation of each agent that was recorded, -1 if none was
        self._final = [max((n for n, mine in enumerate(a.rows) if mine), default=-1) for a in aligned]
        self._answers = [a.answers for a in aligned]
        self._begin = [a.begin for a in aligned]
        self._end = [a.end for a in aligned]
        self._hung = [p and not a.cut for p, a in zip(partial, aligned, strict=True)]  #: stopped where its records end
        self._partial = partial  #: agents that may have done less than all between two records, or more after the last
        self._cycle = [int(c) for c in events.cycle]
        self._done = [0] * len(aligned)  #: operations of each agent executed, as positions in ``ran``
        self._open_end = [len(a.ran) - 1 if a.half else -1 for a in aligned]  #: a wait that was begun last of all
        self._stuck = [False] * len(aligned)  #: agents that the end of the records shows in a wait
        self._latest = [self._bounds(rows) for rows in self._rows]
        self._supply = Supply(pool_channel(program, program.ctas))
        self._waits = self._plan()
        self._last = [max((self._cycle[row] for mine in a.rows for row in mine), default=_NEVER) for a in aligned]

    def _bounds(self, rows: tuple[tuple[int, ...], ...]) -> list[int]:
        """For each operation the latest time at which it can have taken effect: that of the agent's next event.

        For a wait with both its events it is that of its return. No uncertainty: an agent's own stamps are in order.
        """
        bounds = []
        following = _EVER
        for mine in reversed(rows):
            bounds.append(self._cycle[mine[1]] if len(mine) == 2 else following)
            if mine:
                following = self._cycle[mine[0]]
        return bounds[::-1]

    def _plan(self) -> list[tuple[int, int, int, int]]:
        """What must return, in order of time; and into the supply, agent by agent, what could make a channel signal.

        An operation without an event of its own cannot have happened before its agent's event before it.
        """
        program = self._program
        waits: list[tuple[int, int, int, int]] = []
        for agent, (ran, rows) in enumerate(zip(self._ran, self._rows, strict=True)):
            earliest = _NEVER
            code = program.code[agent]
            for position, (pc, mine) in enumerate(zip(ran, rows, strict=True)):
                op = code[pc]
                if mine:
                    earliest = self._cycle[mine[0]]
                demands = (op[0] in MAY_BLOCK and len(mine) == 2) or self._answers[agent].get(pc)
                if demands or (self._rules.everything and mine and self._latest[agent][position] < _EVER):
                    waits.append((self._latest[agent][position], agent, position, mine[-1]))
                for channel in supplies(program, agent, op):
                    self._supply.add(channel, agent, self._where(agent, position), earliest, position)
                if mine:
                    earliest = self._cycle[mine[-1]]
        return sorted(waits)

    def _where(self, agent: int, position: int) -> Where:
        """Before, inside or after the window."""
        return BEFORE if position < self._begin[agent] else INSIDE if position < self._end[agent] else AFTER

    def run(self) -> Divergence | None:
        """Replay everything; the first divergence, or None."""
        ends = [
            _Demand(agent, len(ran), _EVER, self._divergences.last_row(agent), set())
            for agent, ran in enumerate(self._ran)
        ]
        for demand in [_Demand(agent, at + 1, cycle, row, set()) for cycle, agent, at, row in self._waits] + ends:
            wrong = self._advance(demand)
            if wrong is None and self._releases is not None and self._releases.first is not None:
                wrong = self._divergences.too_soon(self._releases.first)
            if wrong is not None or self._over:
                return wrong
        if self._rules.trapped and self.trap is None:
            self._trap_next()
        return None if self.trap is not None else self._settle()

    def _trap_next(self) -> None:
        """The last record before a trap may not have left the chip: look at what each agent would have done next."""
        for agent, partial in enumerate(self._partial):
            if partial and not self._stuck[agent] and not finished(self._program, self.state, agent):
                traps = [f for f in step(self._program, self.state, agent).faults if f.kind.traps]
                self.trap = self.trap or next(iter(traps), None)

    def _broke(self, faults: tuple[Fault, ...], row: int, *, last: bool) -> tuple[Divergence | None, bool]:
        """What these broken rules are: a divergence, or noted down; and whether what broke them did not happen.

        Only what an agent did ``last`` can have been the trap that ended the launch.
        """
        if not faults:
            return None, False
        if not self._rules.forgiving:
            return self._divergences.fault(faults[0], row), True
        trap = next((fault for fault in faults if fault.kind.traps), None)
        self.hazards += [fault for fault in faults if not fault.kind.traps]
        if trap is None:
            return None, False
        if not (self._rules.trapped and last):
            return self._divergences.fault(trap, row), True
        self.trap = self.trap or trap
        return None, True

    def _put_down(self, flight: Flight, part: int, row: int) -> Divergence | None:
        """Let bytes of a flight land."""
        result = land(self._program, self.state, flight, part)
        wrong, self._over = self._broke(result.faults, row, last=True)
        if not self._over:
            if self._releases is not None:
                self._releases.landed(flight, part, row, self.state, result.state)
            self.state = result.state
        return wrong

    def _settle(self) -> Divergence | None:
        """Let everything land that is under way: a kernel ends, or is stopped, long after its last copy arrived."""
        while (flight := next((f for f in self.state.flights if can_land(self.state, f)), None)) is not None:
            wrong = self._put_down(flight, -1, self._divergences.last_row(flight.agent))
            if self._over:
                return wrong
        return None

    def _advance(self, first: _Demand) -> Divergence | None:
        """Execute what is demanded; operations that others must enable pull them along, on an explicit stack.

        An agent that cannot go on in time is given up, and whoever asked for it asks the next that could help; only if
        nobody can is the first wait that nothing enables a divergence.
        """
        stack = [first]
        culprit: Divergence | None = None
        while stack and not self._over:
            who, end, limit, at, refused = stack[-1]
            position = self._done[who]
            if position >= end or self._stuck[who]:
                stack.pop()
                continue
            pc = self._ran[who][position]
            rows = self._rows[who][position]
            row = rows[-1] if rows else at
            code = self._program.code[who]
            if self._hung[who] and code[pc][0] in PARITY_WAITS and len(rows) == 1:
                self._stuck[who] = True  # entered, never returned: the kernel was stopped here
                continue
            blocked, wrong = self._execute(who, pc, row)
            if wrong is not None:
                return wrong
            if blocked < 0:
                refused.clear()
                continue
            if self._hung[who] and position == self._open_end[who]:
                self._stuck[who] = True  # it has come to a named barrier, or to its own transfers, and never returned
                continue
            when = min(self._latest[who][position], limit)
            if blocked < len(self._program.barriers):
                self._pass_parked(who, blocked, when)
            landed = self._land_for(blocked, row)
            if landed is True:
                continue
            if landed is not None:
                return landed
            demand = self._supplier(blocked, when, row, refused.union(entry.agent for entry in stack))
            if demand is not None:
                stack.append(demand)
            elif self._stays(who, position, first if len(stack) == 1 else None):
                self._stuck[who] = True  # entered, never returned: the kernel was stopped here, or the rest is lost
            else:
                seen = self._where(who, position) == INSIDE
                if culprit is None and (seen or len(stack) == 1):
                    gap = self._supply.late(blocked, when, self._done)
                    culprit = self._divergences.too_early(self.state, who, pc, row, gap, outside=not seen)
                stack.pop()
                if not stack:
                    return culprit
                stack[-1].refused.add(who)
        return None

    def _stays(self, who: int, position: int, last: _Demand | None) -> bool:
        """Whether an agent that cannot go on may have stayed where it is, ``last`` being its demand if nobody asked it.

        After its last record, that is: at that very place, or further on once everything else has been tried.
        """
        if not self._partial[who] or self._latest[who][position] != _EVER:
            return False
        return self._where(who, position) == INSIDE or (last is not None and last.limit == _EVER)

    def _pass_parked(self, who: int, barrier: int, latest: int) -> None:
        """Before something happens to a barrier, by ``latest``, let those pass whose wait on it is open now.

        Their stamps only come later. Otherwise a phase that completes next could close the wait again, though the chip
        let it pass in between.
        """
        latest += self._uncertainty
        for agent, ran in enumerate(self._ran):
            position = self._pass_marks(agent)
            if agent == who or position >= len(ran):
                continue
            where = self._where(agent, position)
            if where != INSIDE:
                if where == BEFORE or self._last[agent] <= latest:
                    self._drift(agent)
                continue
            rows = self._rows[agent][position]
            other = self._program.code[agent][ran[position]]
            entered = len(rows) == 2 and self._cycle[rows[0]] <= latest
            if entered and other[0] in PLAIN_WAITS and other[BARRIER] == barrier and self._open(other):
                self.state = step(self._program, self.state, agent).state
                self._note(agent, position, self.state)
                self._done[agent] += 1

    def _note(self, agent: int, position: int, before: State) -> None:
        """The agent's operation at this position has just been carried out, in the state ``before``."""
        if self._releases is None:
            return
        pc = self._ran[agent][position]
        returns = self._program.code[agent][pc][0] in PARITY_WAITS or self._answers[agent].get(pc)
        if returns and self._rows[agent][position] and self._where(agent, position) == INSIDE:
            self._releases.returned(agent, position, before, self._could_happen)
        else:
            self._releases.carried_out(agent, position, before, self.state)

    def _could_happen(self, channel: int, by: int) -> bool:
        """Whether an operation on this channel that was not executed yet can have happened by then."""
        return self._supply.possible(channel, by, self._done)

    def _drift(self, agent: int) -> None:
        """Let an agent outside the window go on to the next operation that matters to others or blocks."""
        ran, code = self._ran[agent], self._program.code[agent]
        while (position := self._done[agent]) < len(ran) and self._where(agent, position) != INSIDE:
            op = code[ran[position]]
            if not (op[0] in AT_ONCE_UNRECORDED or self._open(op)):
                return
            result = step(self._program, self.state, agent)
            if result.faults:
                return
            self.state = result.state
            if result.blocked >= 0:
                return
            self._done[agent] += 1

    def _open(self, op: Operation) -> bool:
        """Whether it is a wait that passes now."""
        if op[0] not in PARITY_WAITS:
            return False
        word = self.state.barriers[op[BARRIER]]
        return word.life == mbarrier.LIVE and mbarrier.passes(word, op[PARITY])

    def _pass_marks(self, agent: int) -> int:
        """Where the agent stands, behind marks of its loops, which happen at no time."""
        code, ran = self._program.code[agent], self._ran[agent]
        while self._done[agent] < len(ran) and code[ran[self._done[agent]]][0] in LOOP_MARKS:
            self.state = step(self._program, self.state, agent).state
            self._done[agent] += 1
        return self._done[agent]

    def _execute(self, who: int, pc: int, row: int) -> tuple[int, Divergence | None]:
        """Let the agent carry out its operation; the channel it is blocked on, or -1, and what it broke."""
        op = self._program.code[who][pc]
        if op[0] in SUPPLIES_HERE:
            self._pass_parked(who, op[BARRIER], self._latest[who][self._done[who]])
        while self._lands_first(who, pc) and self._land_for(op[BARRIER], row) is True and not self._over:
            pass
        blocked = self._try_to_succeed(who, pc)
        if blocked >= 0:
            return blocked, None
        result = step(self._program, self.state, who)
        if result.faults:
            wrong, self._stuck[who] = self._broke(result.faults, row, last=self._is_last(who))
            if self._stuck[who]:
                return -1, wrong
        before, self.state = self.state, result.state
        if result.blocked < 0:
            self._note(who, self._done[who], before)
            if self._answers[who].get(pc) == 0:
                self.state = failed(self._program, self.state, who, pc)
            self._done[who] += 1
        return result.blocked, None

    def _lands_first(self, who: int, pc: int) -> bool:
        """Whether bytes must have landed before this arrive, because it would trap otherwise and the chip did not."""
        op = self._program.code[who][pc]
        if not self._rules.forgiving or op[0] != Op.ARRIVE or op[COUNT] <= self.state.barriers[op[BARRIER]].pending:
            return False
        return not (self._rules.trapped and self._is_last(who))

    def _is_last(self, who: int) -> bool:
        """Whether the agent's present operation can have ended the launch: no later one was recorded, or just so."""
        position = self._done[who]
        after = self._rows[who][self._final[who]] if self._final[who] > position else ()
        mine = self._rows[who][position]
        return not after or (bool(mine) and self._cycle[after[-1]] - self._cycle[mine[0]] <= TRAP_LATE)

    def _try_to_succeed(self, agent: int, pc: int) -> int:
        """The channel that a try needs whose recorded answer is true while the machine's would be false, else -1."""
        if not self._answers[agent].get(pc):
            return -1
        barrier = self._program.code[agent][pc][BARRIER]
        if self.state.barriers[barrier].life != mbarrier.LIVE:
            return -1  # the machine says what is wrong with that
        return -1 if finds(self._program, self.state, agent, pc) else barrier

    def _land_for(self, channel: int, row: int) -> Divergence | Literal[True] | None:
        """Let something under way land that helps ``channel`` to signal, or must land before it; None if nothing can.

        A copy lands whole, unless a part of it completes the phase and the whole would not: bytes arrive in pieces.
        """
        for flight in self.state.flights:
            if flight.barrier == channel or own_channel(self._program, flight.agent) == channel:
                ready = first_to_land(self.state, flight)
                part = completing_size(self.state, ready) if ready.barrier == channel else 0
                return self._put_down(ready, part or ready.remaining, row) or True
        return None

    def _supplier(self, channel: int, when: int, row: int, asking: set[int]) -> _Demand | None:
        """The next operation to execute so that ``channel`` may signal by ``when``, None if there is none."""
        found = self._supply.ask(channel, when + self._uncertainty, self._done, asking, self._stuck)
        return None if found is None else _Demand(found[0], found[1] + 1, when, row, set())
