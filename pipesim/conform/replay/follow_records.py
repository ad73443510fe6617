"""Replay on demand: is there an order of the machine's moves that explains the recorded times?

Waits (and tries that succeeded) are taken in the order in which they returned. To let a wait return at time t, only
operations whose earliest possible time is not after t plus the uncertainty are executed, and of those only what its
barrier still needs; bytes in flight may land whenever they are needed. If nothing is left that could help, the wait
returned too early. Every operation is executed once, so the whole is linear in the trace (after sorting it).

Operations outside the window of a recording, and those whose records were lost, are executed when they are needed too:
before the window at any time before their agent's first record, after it at any time after its last.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pipesim.conform.replay.align import AgentAlignment
from pipesim.conform.replay.divergence import CtaDivergences
from pipesim.conform.replay.recorded_agent import (
    BEFORE,
    EVER,
    INSIDE,
    PARKED_NOWHERE,
    PASSING,
    recorded_agents,
    supply_of,
    waits_in_order,
)
from pipesim.conform.replay.releases import ReplayWatcher
from pipesim.conform.result import Divergence
from pipesim.model import barrier as mbarrier
from pipesim.model.finding import Fault
from pipesim.model.groups import (
    AT_ONCE_UNRECORDED,
    BARRIER,
    COUNT,
    LOOP_MARKS,
    NO_EFFECT,
    PARITY,
    PARITY_WAITS,
    PRIVATE,
    SUPPLIES_HERE,
)
from pipesim.model.machine import (
    Flight,
    State,
    finished,
    initial_state,
    land,
    own_channel,
    pass_over,
    step,
)
from pipesim.model.moves import can_land, completing_size, fail_try, finds, first_to_land
from pipesim.model.ops import Op, Operation
from pipesim.model.program import Program
from pipesim.trace.schema import Events

#: A trap is noticed late: its agent may continue for this many cycles. The GPU recorded the copy after an arrive that
#: trapped, 55 cycles later.
TRAP_LATE = 500


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


class ReplayResult(NamedTuple):
    """How far the machine followed one CTA's records.

    ``divergence`` is None if it followed them all. If the rules forgive, ``hazards`` are the faults that the hardware
    does not notice (races, wrong items), ``trap`` the one at which it ends the launch. ``state``: where everything is.
    """

    state: State
    divergence: Divergence | None
    hazards: tuple[Fault, ...]
    trap: Fault | None


def replay(
    program: Program, events: Events, aligned: list[AgentAlignment], partial: list[bool], uncertainty: int,
    divergences: CtaDivergences, rules: Rules, releases: ReplayWatcher | None = None,
) -> ReplayResult:  # fmt: skip
    """Move the machine along the records of one CTA; ``partial``: agents that did not finish.

    ``releases`` sees what happens, and says which return came too soon after its release.
    """
    moving = _Replay(program, events, aligned, partial, uncertainty, divergences, rules, releases)
    found = moving.run()
    return ReplayResult(moving.state, found, tuple(moving.hazards), moving.trap)


@dataclass(eq=False)
class _Replay:
    """One CTA's machine, moved by its recorded events."""

    program: Program
    events: Events
    aligned: list[AgentAlignment]
    partial: list[bool]
    uncertainty: int
    divergences: CtaDivergences
    rules: Rules
    releases: ReplayWatcher | None

    def __post_init__(self) -> None:
        self.hazards: list[Fault] = []
        self.trap: Fault | None = None
        self._over = False  #: a landing ended the launch
        self.state: State = initial_state(self.program)
        self._agents = recorded_agents(self.program, self.events, self.aligned, self.partial)
        self._parks = [agent.parks for agent in self._agents]
        self._done = [0] * len(self.aligned)  #: operations of each agent executed, as positions in ``ran``
        self._stuck = [False] * len(self.aligned)  #: agents that the end of the records shows in a wait
        self._supply = supply_of(self.program, self._agents)
        self._waits = waits_in_order(self._agents, everything=self.rules.everything)

    def run(self) -> Divergence | None:
        """Replay everything; the first divergence, or None."""
        for demand in self._demands():
            wrong = self._advance(demand)
            if wrong is None and self.releases is not None and self.releases.first is not None:
                wrong = self.divergences.too_soon(self.releases.first)
            if wrong is not None or self._over:
                return wrong
        if self.rules.trapped and self.trap is None:
            self._trap_next()
        return None if self.trap is not None else self._settle()

    def _demands(self) -> Iterator[_Demand]:
        """Every wait in order of its return, then every agent to its end."""
        for cycle, agent, at, row in self._waits:
            yield _Demand(agent, at + 1, cycle, row, set())
        for agent, recorded in enumerate(self._agents):
            yield _Demand(agent, len(recorded.ran), EVER, self.divergences.last_row(agent), set())

    def _trap_next(self) -> None:
        """The last record before a trap may not have been stored: look at what each agent would have done next."""
        for agent, recorded in enumerate(self._agents):
            if recorded.partial and not self._stuck[agent] and not finished(self.program, self.state, agent):
                traps = [f for f in step(self.program, self.state, agent).faults if f.kind.traps]
                self.trap = self.trap or next(iter(traps), None)

    def _broke(self, faults: tuple[Fault, ...], row: int, *, last: bool) -> tuple[Divergence | None, bool]:
        """What these broken rules are: a divergence, or noted down; and whether what broke them did not happen.

        Only what an agent did ``last`` can have been the trap that ended the launch.
        """
        if not faults:
            return None, False
        if not self.rules.forgiving:
            return self.divergences.fault(faults[0], row), True
        trap = next((fault for fault in faults if fault.kind.traps), None)
        self.hazards += [fault for fault in faults if not fault.kind.traps]
        if trap is None:
            return None, False
        if not (self.rules.trapped and last):
            return self.divergences.fault(trap, row), True
        self.trap = self.trap or trap
        return None, True

    def _put_down(self, flight: Flight, part: int, row: int) -> Divergence | None:
        """Let bytes of a flight land."""
        result = land(self.program, self.state, flight, part)
        wrong, self._over = self._broke(result.faults, row, last=True)
        if not self._over:
            if self.releases is not None:
                self.releases.on_landing(flight, part, row, self.state, result.state)
            self.state = result.state
        return wrong

    def _settle(self) -> Divergence | None:
        """Let everything land that is under way: a kernel ends, or is stopped, long after its last copy arrived."""
        program = self.program
        while (flight := next((f for f in self.state.flights if can_land(program, self.state, f)), None)) is not None:
            wrong = self._put_down(flight, -1, self.divergences.last_row(flight.agent))
            if self._over:
                return wrong
        return None

    def _advance(self, first: _Demand) -> Divergence | None:
        """Execute what is demanded; operations that others must enable pull them along, on an explicit stack.

        An agent that cannot continue in time is given up, and the agent that needs it asks the next that could help;
        only if none can is the first wait that nothing enables a divergence.
        """
        stack = [first]
        culprit: Divergence | None = None
        while stack and not self._over:
            who, _, limit, at, refused = stack[-1]
            blocked, wrong = self._go(stack[-1])
            if wrong is not None:
                return wrong
            if blocked < 0:
                stack.pop()
                continue
            position = self._done[who]
            agent = self._agents[who]
            pc, rows = agent.ran[position], agent.rows[position]
            row = rows[-1] if rows else at
            when = min(agent.latest[position], limit)
            if blocked < len(self.program.barriers):
                self._pass_parked(who, blocked, when)
            landed = self._land_for(blocked, row)
            if landed is True:
                continue
            if landed is not None:
                return landed
            demand = self._supplier(blocked, when, row, refused.union([entry.agent for entry in stack]))
            if demand is not None:
                stack.append(demand)
            elif self._stays(who, position, first if len(stack) == 1 else None):
                self._stuck[who] = True  # entered, never returned: the kernel was stopped here, or the rest is lost
            else:
                seen = agent.where(position) == INSIDE
                if culprit is None and (seen or len(stack) == 1):
                    gap = self._supply.late(blocked, when, self._done)
                    culprit = self.divergences.too_early(self.state, who, pc, row, gap, outside=not seen)
                stack.pop()
                if not stack:
                    return culprit
                stack[-1].refused.add(who)
        return None

    def _go(self, demand: _Demand) -> tuple[int, Divergence | None]:
        """Execute what is demanded of one agent; the channel at which it is blocked, -1 once it need not continue."""
        who, end, _, at, refused = demand
        agent, done, stuck = self._agents[who], self._done, self._stuck
        ran, rows, hung, code = agent.ran, agent.rows, agent.hung, agent.code
        while (position := done[who]) < end and not stuck[who] and not self._over:
            pc, mine = ran[position], rows[position]
            if code[pc][0] in NO_EFFECT:
                self.state = pass_over(self.program, self.state, who, end - position)
                done[who] += self.state[0][who] - pc  # none of them jumps
                continue
            if hung and code[pc][0] in PARITY_WAITS and len(mine) == 1:
                stuck[who] = True  # entered, never returned: the kernel was stopped here
                break
            blocked, wrong = self._execute(who, pc, mine[-1] if mine else at)
            if wrong is not None:
                return -1, wrong
            if blocked >= 0:
                if not (hung and position == agent.open_end):
                    return blocked, None
                stuck[who] = True  # it reached a named barrier, or a wait for its own transfers, and never returned
                break
            refused.clear()
        return -1, None

    def _stays(self, who: int, position: int, last: _Demand | None) -> bool:
        """Whether an agent that cannot continue may have stayed, ``last`` being its demand if no other agent asked it.

        After its last record, that is: at that very place, or further on once everything else has been tried.
        """
        agent = self._agents[who]
        if not agent.partial or agent.latest[position] != EVER:
            return False
        return agent.where(position) == INSIDE or (last is not None and last.limit == EVER)

    def _pass_parked(self, who: int, barrier: int, latest: int) -> None:
        """Before something happens to a barrier, by ``latest``, let those pass whose wait on it is open now.

        Their timestamps only come later. Otherwise a phase that completes next could close the wait again, though the
        hardware let it pass in between.
        """
        latest += self.uncertainty
        done = self._done
        for agent, parks in enumerate(self._parks):
            parked = parks[done[agent]]
            if parked == PASSING:
                parked = self._move_on(agent, who, latest)
            if parked != barrier or agent == who:
                continue
            position, recorded = done[agent], self._agents[agent]
            entered = recorded.cycle[recorded.rows[position][0]] <= latest
            if entered and self._open(recorded.code[recorded.ran[position]]):
                self.state = step(self.program, self.state, agent).state
                self._note(agent, position, self.state)
                done[agent] += 1

    def _move_on(self, agent: int, who: int, latest: int) -> int:
        """Let an agent pass the marks of its loops, and continue outside the window; where it parks inside it then."""
        position, recorded = self._pass_marks(agent), self._agents[agent]
        if agent == who or position >= len(recorded.ran):
            return PARKED_NOWHERE
        where = recorded.where(position)
        if where == INSIDE:
            return recorded.parks[position]
        if where == BEFORE or recorded.last <= latest:
            self._drift(agent)
        return PARKED_NOWHERE

    def _note(self, agent: int, position: int, before: State) -> None:
        """The agent's operation at this position has just been carried out, in the state ``before``."""
        if self.releases is None:
            return
        recorded = self._agents[agent]
        pc = recorded.ran[position]
        kind = recorded.code[pc][0]
        if kind in PRIVATE:
            return
        returns = kind in PARITY_WAITS or recorded.answers.get(pc)
        if returns and recorded.rows[position] and recorded.where(position) == INSIDE:
            self.releases.on_return(agent, position, before, self._could_happen)
        else:
            self.releases.carried_out(agent, position, before, self.state)

    def _could_happen(self, channel: int, by: int) -> bool:
        """Whether an operation on this channel that was not executed yet can have happened by then."""
        return self._supply.possible(channel, by, self._done)

    def _drift(self, agent: int) -> None:
        """Let an agent outside the window continue to the next operation that matters to others or blocks."""
        recorded = self._agents[agent]
        while (position := self._done[agent]) < len(recorded.ran) and recorded.where(position) != INSIDE:
            op = recorded.code[recorded.ran[position]]
            if not (op[0] in AT_ONCE_UNRECORDED or self._open(op)):
                return
            result = step(self.program, self.state, agent)
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
        """Where the agent is, after marks of its loops, which happen at no time."""
        code, ran = self._agents[agent].code, self._agents[agent].ran
        while self._done[agent] < len(ran) and code[ran[self._done[agent]]][0] in LOOP_MARKS:
            self.state = step(self.program, self.state, agent).state
            self._done[agent] += 1
        return self._done[agent]

    def _execute(self, who: int, pc: int, row: int) -> tuple[int, Divergence | None]:
        """Let the agent carry out its operation; the channel it is blocked on, or -1, and what it broke."""
        op = self.program.code[who][pc]
        if op[0] in SUPPLIES_HERE:
            self._pass_parked(who, op[BARRIER], self._agents[who].latest[self._done[who]])
            while self._lands_first(who, pc) and self._land_for(op[BARRIER], row) is True and not self._over:
                pass
        answers = self._agents[who].answers
        if answers and (needed := self._try_to_succeed(who, pc)) >= 0:
            return needed, None
        before = self.state
        after, blocked, _, faults = step(self.program, before, who)
        if faults:
            wrong, self._stuck[who] = self._broke(faults, row, last=self._is_last(who))
            if self._stuck[who]:
                return -1, wrong
        self.state = after
        if blocked < 0:
            self._note(who, self._done[who], before)
            if answers and answers.get(pc) == 0:
                self.state = fail_try(self.program, self.state, who, pc)
            self._done[who] += 1
        return blocked, None

    def _lands_first(self, who: int, pc: int) -> bool:
        """Whether bytes must have landed before this arrive: it would trap otherwise, and the hardware did not."""
        op = self.program.code[who][pc]
        if not self.rules.forgiving or op[0] != Op.ARRIVE or op[COUNT] <= self.state.barriers[op[BARRIER]].pending:
            return False
        return not (self.rules.trapped and self._is_last(who))

    def _is_last(self, who: int) -> bool:
        """Whether the agent's present operation can have ended the launch: no later one was recorded, or just so."""
        position, agent = self._done[who], self._agents[who]
        after = agent.rows[agent.final] if agent.final > position else ()
        mine = agent.rows[position]
        return not after or (bool(mine) and agent.cycle[after[-1]] - agent.cycle[mine[0]] <= TRAP_LATE)

    def _try_to_succeed(self, agent: int, pc: int) -> int:
        """The channel that a try needs whose recorded answer is true while the machine's would be false, else -1."""
        if not self._agents[agent].answers.get(pc):
            return -1
        barrier = self.program.code[agent][pc][BARRIER]
        if self.state.barriers[barrier].life != mbarrier.LIVE:
            return -1  # the machine says what is wrong with that
        return -1 if finds(self.program, self.state, agent, pc) else barrier

    def _land_for(self, channel: int, row: int) -> Divergence | Literal[True] | None:
        """Let something under way land that helps ``channel`` to signal, or must land before it; None if nothing can.

        A copy lands whole, unless a part of it completes the phase and the whole would not: bytes arrive in pieces.
        """
        for flight in self.state.flights:
            if flight.barrier == channel or own_channel(self.program, flight.agent) == channel:
                ready = first_to_land(self.program, self.state, flight)
                part = completing_size(self.state, ready) if ready.barrier == channel else 0
                return self._put_down(ready, part or ready.remaining, row) or True
        return None

    def _supplier(self, channel: int, when: int, row: int, asking: set[int]) -> _Demand | None:
        """The next operation to execute so that ``channel`` may signal by ``when``, None if there is none."""
        found = self._supply.ask(channel, when + self.uncertainty, self._done, asking, self._stuck)
        return None if found is None else _Demand(found[0], found[1] + 1, when, row, set())
