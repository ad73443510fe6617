"""How a run can end, and how a recorded one did: the question that every fault put into a kernel is asked.

What a run of the model says about the hardware:

* no agent can move and one has not finished: HANG; a rule broken at which the hardware traps: TRAP, whatever the data;
* all end and no data rule is broken: RIGHT;
* bytes of another item are read, and no race could have brought the right ones: WRONG_DATA;
* a race, or a read of bytes that nothing wrote: WRONG_DATA or RIGHT. A race may be won, and shared memory still holds
  what an earlier launch left there, which may be the very bytes.

The set is what the tried schedules show: more schedules can only add to it. It is not a proof that an outcome cannot
be. Schedules are drawn at random: agents and landings have weights that change now and then, so that some lag others
for a while, which finds what an even choice meets once in a million schedules. The same seed gives the same schedule.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from pipesim.conform.diagnose.examination import LaunchOutcome
from pipesim.errors import EvidenceError
from pipesim.model.ending import HUNG, TRAPPED, Ending
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import NO_EFFECT, ON_ENGINE
from pipesim.model.machine import Flight, State, begin, finished, initial_state, land, step
from pipesim.model.moves import PIECE, completing_size, landing_flights, landing_sizes, opens
from pipesim.model.program import Program
from pipesim.model.state import cluster_channel
from pipesim.trace.schema import Trace

_WEIGHTS = (1, 8, 64)
_CHANGE = 24  #: moves between two draws of the weights, on average
_MOST_MOVES = 1_000_000  #: of one schedule


class AgentMove(NamedTuple):
    """An agent tried its operation at ``pc``: carried out if ``passed``, else it has to wait."""

    agent: int
    pc: int
    passed: bool


@dataclass(frozen=True)
class RandomSchedule:
    """One schedule to its end: the moves of the agents in order, every broken rule, and where everything is.

    ``ended`` is True if every agent ran to its end; ``exhausted`` if the budget of moves ran out first.
    """

    moves: tuple[AgentMove, ...]
    faults: tuple[Fault, ...]
    state: State
    ended: bool
    exhausted: bool

    @property
    def trapped(self) -> bool:
        """Whether the hardware would have ended the launch."""
        return any(fault.kind.traps for fault in self.faults)


def random_schedule(program: Program, seed: int) -> RandomSchedule:
    """Run one random schedule until no agent can move, a rule is broken at which the hardware stops, or the budget
    ends.
    """
    return _RandomWalk(program, Random(seed)).walk()  # noqa: S311  # a schedule, no secret


class _RandomWalk:
    """The mutable side of one schedule."""

    def __init__(self, program: Program, random: Random) -> None:
        self._program = program
        self._random = random
        self._moves_left = _MOST_MOVES
        self._state = initial_state(program)
        agents = range(len(program.agents))
        self._waits = [-1 for _ in agents]  #: the channel each agent waits on
        self._slow = random.random() < 0.5  #: accesses take time
        self._pieces = random.random() < 0.5
        self._moves: list[AgentMove] = []
        self._faults: list[Fault] = []
        self._draw()

    def walk(self) -> RandomSchedule:
        """Move until nothing moves."""
        program = self._program
        agents = range(len(program.agents))
        while self._moves_left > 0 and not any(f.kind.traps for f in self._faults[-1:]):
            able = [a for a in agents if self._waits[a] < 0 and not finished(program, self._state, a)]
            flights = [flight for _, flight in landing_flights(program, self._state)]
            if not able and not flights:
                break
            if self._random.random() * _CHANGE < 1:
                self._draw()
            weights = [*(self._agents[a] for a in able), *(self._flight for _ in flights)]
            (chosen,) = self._random.choices(range(len(weights)), weights)
            if chosen < len(able):
                self._step(able[chosen])
            else:
                self._land(flights[chosen - len(able)])
        ended = all(finished(program, self._state, a) for a in agents)
        return RandomSchedule(
            tuple(self._moves), tuple(self._faults), self._state, ended, self._moves_left <= 0 and not ended
        )

    def _draw(self) -> None:
        self._agents = self._random.choices(_WEIGHTS, k=len(self._program.agents))
        self._flight = self._random.choice(_WEIGHTS)

    def _step(self, agent: int) -> None:
        """One operation of an agent, and what follows it that no other agent can notice."""
        code = self._program.code[agent]
        while True:
            self._moves_left -= 1
            pc = self._state.pcs[agent]
            if self._slow and opens(self._program, self._state, agent):
                began = begin(self._program, self._state, agent)
                self._state = began.state
                self._faults += began.faults
                return
            result = step(self._program, self._state, agent)
            self._state = result.state
            self._moves.append(AgentMove(agent, pc, result.blocked < 0))
            self._faults += result.faults
            self._waits[agent] = result.blocked
            self._signal(result.signalled)
            if self._program.leaves_cluster_barrier and finished(self._program, self._state, agent):
                self._signal(cluster_channel(self._program))
            following = self._state.pcs[agent]
            if result.blocked >= 0 or following >= len(code) or code[following][0] not in NO_EFFECT - ON_ENGINE:
                return

    def _land(self, flight: Flight) -> None:
        self._moves_left -= 1
        result = land(self._program, self._state, flight, self._size(flight))
        self._state = result.state
        self._faults += result.faults
        self._signal(result.signalled)

    def _size(self, flight: Flight) -> int:
        """How many bytes land now. Often just those that complete a phase."""
        if not self._pieces:
            return flight.remaining
        completing = completing_size(self._state, flight)
        if completing and self._random.random() < 0.5:
            return completing
        sizes = landing_sizes(self._state, flight, PIECE)
        return sizes[int(self._random.random() * len(sizes))] if len(sizes) > 1 else sizes[0]

    def _signal(self, channel: int) -> None:
        if channel >= 0:
            self._waits = [-1 if waits == channel else waits for waits in self._waits]


_UNCERTAIN = frozenset({FaultKind.RACE, FaultKind.UNINITIALISED_READ})


def outcomes(program: Program, schedules: int, seed: int = 0) -> frozenset[LaunchOutcome]:
    """How ``program`` can end, in this many random schedules. Same arguments, same set.

    Landings come whole or in pieces of 16 bytes, at any time.
    """
    found: set[LaunchOutcome] = set()
    for n in range(schedules):
        walk = random_schedule(program, seed * 1_000_003 + n)
        if not walk.exhausted:
            found |= _means(walk.faults, ended=walk.ended)
    return frozenset(found)


def outcome_of(trace: Trace) -> LaunchOutcome:
    """How the recorded (or simulated) run ended. EvidenceError if the trace does not say."""
    status = trace.meta.status
    if status == Ending.FINISHED:
        return LaunchOutcome.WRONG_DATA if trace.meta.wrong_tiles else LaunchOutcome.RIGHT
    if status in HUNG:
        return LaunchOutcome.HANG
    if status in TRAPPED:
        return LaunchOutcome.TRAP
    raise EvidenceError(f"the trace ended as “{status}”, which is not an outcome")


def _means(faults: Iterable[Fault], *, ended: bool) -> set[LaunchOutcome]:
    kinds = {fault.kind for fault in faults}
    if any(kind.traps for kind in kinds):
        return {LaunchOutcome.TRAP}
    if not ended:
        return {LaunchOutcome.HANG}
    if kinds & _UNCERTAIN:
        return {LaunchOutcome.RIGHT, LaunchOutcome.WRONG_DATA}
    return {LaunchOutcome.WRONG_DATA} if FaultKind.WRONG_ITEM in kinds else {LaunchOutcome.RIGHT}
