"""A counterexample as a story: after each step the state of every agent, and what every barrier holds."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from pipesim.answers.views.check import Counterexample
from pipesim.explain.operation_words import operation_in_words
from pipesim.model.barrier import LIVE
from pipesim.model.machine import finished
from pipesim.model.moves import held_up
from pipesim.model.program import Program
from pipesim.model.state import OWN
from pipesim.prove.counterexample.play import Play, from_text
from pipesim.prove.counterexample.words import Line

MOST_STEPS = 2_000  #: that a story has; of a longer schedule it is the end


class AgentStanding(Enum):
    """The state of an agent after a step. The value is what a reader sees."""

    READY = "runs"
    BLOCKED = "waits"
    ENDED = "has finished"


class AgentAt(NamedTuple):
    """An agent: its state, its next operation in words ("" at its end) and the author's line of that."""

    standing: AgentStanding
    next: str
    line: str


class BarrierAt(NamedTuple):
    """A barrier: arrivals ``pending`` of ``expected``, bytes outstanding, phases completed."""

    expected: int
    pending: int
    tx: int
    done: int


class StoryStep(NamedTuple):
    """A step and the state that it leaves. A barrier is None before its init. ``flights`` are what is under way."""

    line: Line
    agents: tuple[AgentAt, ...]
    barriers: tuple[BarrierAt | None, ...]
    flights: tuple[str, ...]


@dataclass(frozen=True)
class Story:
    """The steps of a counterexample. ``left_out``: how many came before the first."""

    agents: tuple[str, ...]
    barriers: tuple[str, ...]
    start: tuple[AgentAt, ...]
    steps: tuple[StoryStep, ...]
    left_out: int = 0


def story(program: Program, shown: Counterexample) -> Story:
    """The story of a counterexample of ``program``, which has the sizes at which it was found."""
    moves = from_text(shown.replay)
    play = Play(program)
    lines = {line.number: line for line in shown.schedule}
    words = _StateWords(program)
    start = words.agents(play)
    first = max(0, len(moves) - MOST_STEPS)
    steps = []
    for number, move in enumerate(moves, 1):
        play.make(move)
        line = lines.get(number)
        if line is not None and number > first:
            steps.append(StoryStep(line, words.agents(play), words.barriers(play), words.flights(play)))
    agents = tuple(program.agent_name(agent) for agent in range(len(program.agents)))
    barriers = tuple(program.barrier_name(barrier) for barrier in range(len(program.barriers)))
    return Story(agents, barriers, start, tuple(steps), first)


class _StateWords:
    """What a state is called, each operation once."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[tuple[int, ...], str] = {}

    def agents(self, play: Play) -> tuple[AgentAt, ...]:
        return tuple(self._agent(play, agent) for agent in range(len(self._program.agents)))

    def _agent(self, play: Play, agent: int) -> AgentAt:
        if finished(self._program, play.state, agent):
            return AgentAt(AgentStanding.ENDED, "", "")
        pc = play.state.pcs[agent]
        blocked = held_up(self._program, play.state, agent) is not None
        line = self._program.line(agent, pc)
        return AgentAt(AgentStanding.BLOCKED if blocked else AgentStanding.READY, self._operation(agent, pc), line)

    def barriers(self, play: Play) -> tuple[BarrierAt | None, ...]:
        return tuple(
            BarrierAt(word.expected, word.pending, word.tx, word.done) if word.life == LIVE else None
            for word in play.state.barriers
        )

    def flights(self, play: Play) -> tuple[str, ...]:
        flights = (flight for flight in play.state.flights if flight.engine != OWN)  # no access of an agent itself
        return tuple(self._operation(flight.agent, flight.pc) for flight in flights)

    def _operation(self, agent: int, pc: int) -> str:
        op = self._program.code[agent][pc]
        found = self._known.get(op)
        if found is None:
            found = self._known[op] = operation_in_words(self._program, op)
        return found
