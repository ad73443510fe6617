"""A schedule being made, move by move: as far as a given past and no farther, then on in a plain order to some end."""

import re
from collections.abc import Callable, Sequence
from itertools import groupby
from reprlib import repr as brief  # of a word of any length

from pipesim.bounds import MAX_MOVES, MAX_SCHEDULE_DIGITS
from pipesim.errors import ParameterError
from pipesim.explain.blocked_agents import explain
from pipesim.model.finding import Deadlock, Fault
from pipesim.model.machine import Flight, Observer, Step, finished, initial_state
from pipesim.model.moves import Kind, Move, attempt, canonical, held_up, landing_flights, make, opens, stepped
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.prove.refutation import Schedule


class Play:
    """The state after the moves made so far; the faults of the last one. ``observers`` see every move.

    ``passes``: the faults after which it continues, as the hardware does where it does not trap.
    """

    def __init__(
        self,
        program: Program,
        schedule: Sequence[Move] = (),
        observers: Sequence[Observer] = (),
        passes: Callable[[Fault], bool] = lambda _: False,
    ) -> None:
        self._program = program
        self._observers = observers
        self._passes = passes
        self.state = canonical(initial_state(program))
        self.moves: list[Move] = []
        self.faults: tuple[Fault, ...] = ()
        for move in schedule:
            self.make(move)

    def fork(self) -> "Play":
        """A copy, to continue in another way, without observers."""
        twin = Play(self._program, passes=self._passes)
        twin.state, twin.moves, twin.faults = self.state, self.moves.copy(), self.faults
        return twin

    @property
    def deadlock(self) -> Deadlock | None:
        """The deadlock that the program is in now, None if something can still happen."""
        return explain(self._program, self.state)

    @property
    def ended(self) -> bool:
        """True if every agent has run its last operation."""
        return all(finished(self._program, self.state, agent) for agent in range(len(self._program.agents)))

    def make(self, move: Move) -> None:
        """Make a move."""
        self._record_move(move, make(self._program, self.state, move))

    def _record_move(self, move: Move, result: Step) -> None:
        before = self.state
        self.state = result.state
        self.faults = result.faults and tuple(
            f for f in result.faults if f.kind.traps or result.state == before or not self._passes(f)
        )
        self.moves.append(move)
        for observer in self._observers:
            if move.kind == Kind.LAND:
                observer.on_landing(before.flights[move.who], move.nbytes, result)
            elif move.kind != Kind.OPEN:
                observer.on_step(before, move.who, result)

    def ask_all(self) -> None:
        """Let the observers see what every agent that cannot move is asking for."""
        for agent in range(len(self._program.agents)):
            result = held_up(self._program, self.state, agent)
            if result is not None:
                for observer in self._observers:
                    observer.on_step(self.state, agent, result)

    def advance(self, agent: int) -> bool:
        """One operation of the agent, from its begin to its end; False if it is blocked or has ended."""
        if finished(self._program, self.state, agent):
            return False
        if opens(self._program, self.state, agent):
            self.make(Move(Kind.OPEN, agent))
            if self.faults:
                return True
        result = stepped(self._program, self.state, agent)
        if result is None:
            return False
        self._record_move(Move(Kind.STEP, agent), result)
        return True

    def begin(self, agent: int) -> bool:
        """The agent's next operation begins: an access of its own opens and stays open; others are carried out."""
        if not opens(self._program, self.state, agent):
            return self.advance(agent)
        self.make(Move(Kind.OPEN, agent))
        return True

    def land(self, skip: tuple[int, int] = (-1, -1)) -> bool:
        """Let the first transfer land that may and is not the one issued by this (agent, pc)."""
        for place, flight in landing_flights(self._program, self.state):
            if (flight.agent, flight.pc) != skip:
                self.make(Move(Kind.LAND, place, flight.remaining))
                return True
        return False

    def land_one(self, flight: Flight, most: int | None = None) -> bool:
        """Let this transfer land, or at most this many bytes, whatever its number is; False if it cannot, or has."""
        for place, other in landing_flights(self._program, self.state):
            if other[:-2] == flight[:-2]:
                self.make(Move(Kind.LAND, place, other.remaining if most is None else min(other.remaining, most)))
                return True
        return False

    def reach(self, past: Sequence[int], hold: tuple[int, int] = (-1, -1)) -> bool:
        """Carry out this many operations of each agent, and what must land for that, but not the transfer ``hold``."""
        while True:
            moved = False
            for agent, bound in enumerate(past):
                while self.state.pcs[agent] < bound and self.advance(agent):
                    moved = True
                    if self.faults:
                        return True
            if all(pc >= bound for pc, bound in zip(self.state.pcs, past, strict=True)):
                return True
            if not (moved or self._join(past) or self.land(hold) or self._give_back(past, hold[0])):
                return False
            if self.faults:
                return True

    def go_on(
        self, order: Sequence[int], most: int = 1_000_000, hold: tuple[int, int] = (-1, -1), *, early: bool = False
    ) -> None:
        """On to an end: the agents in this order, each as far as it goes, and transfers only where no agent can
        move; ``early``: all of them after each round. ``hold``: an agent that goes no farther than to this operation.
        """
        for _ in range(most):
            moved = False
            for agent in order:
                while (agent, self.state.pcs[agent]) != hold and self.advance(agent):
                    moved = True
                    if self.faults:
                        return
            landed = (early or not moved) and self.land()
            while early and self.land() and not self.faults:
                pass
            if not (moved or landed) or self.faults:
                return

    def _give_back(self, past: Sequence[int], but: int) -> bool:
        """A step of an agent at its bound towards the registers that it gives back, where one below its bound waits for
        some: a past does not say who gave them. Not of the agent ``but``, whose transfer is held.
        """
        pools, pcs = self._program.register_pools, self.state.pcs
        if pools is None:
            return False
        asked = [{request.pc: request.registers for request in mine} for mine in pools.requests]
        if not any(pc < bound and pc in asked[agent] for agent, (pc, bound) in enumerate(zip(pcs, past, strict=True))):
            return False
        for agent, (pc, bound) in enumerate(zip(pcs, past, strict=True)):
            later = next((at for at in asked[agent] if at >= pc), -1)
            gives = later >= 0 and asked[agent][later] < pools.of_thread(agent, pc)
            if agent != but and pc >= bound and gives and self.advance(agent):
                return True
        return False

    def _join(self, past: Sequence[int]) -> bool:
        """What an agent at its bound may do besides: arrive at the named barrier where it will wait, which is in the
        past as well; give back registers that another asks for.
        """
        for agent, bound in enumerate(past):
            code, pc = self._program.code[agent], self.state.pcs[agent]
            if not bound <= pc < len(code) or self.state.holds[agent]:
                continue
            if (pc == bound and code[pc][0] == Op.BAR_SYNC) or code[pc][0] == Op.SETMAXNREG:
                move = Move(Kind.STEP, agent)
                result = attempt(self._program, self.state, move)
                if result is not None:
                    self._record_move(move, result)
                    return True
        return False


_MARKS = {Kind.STEP: "", Kind.OPEN: "o", Kind.FAIL: "n"}
_KINDS = {mark: kind for kind, mark in _MARKS.items()}
_NUMBER = rf"\d{{1,{MAX_SCHEDULE_DIGITS}}}"
_MOVE = re.compile(
    rf"(?:(?P<agent>{_NUMBER})(?P<mark>[on]?)|~(?P<place>{_NUMBER}):(?P<nbytes>{_NUMBER}))"
    rf"(?:\*(?P<times>(?!0){_NUMBER}))?",
    re.ASCII,
)


# A schedule as one line of text, and back: what ``check --replay`` and ``run --schedule`` replay.
#
# Moves are separated by dots: ``3`` is a step of agent 3, ``3o`` the begin of its access, ``3n`` its try that says
# no, ``~2:64`` lets 64 bytes of the flight at place 2 land. ``3*5`` is the same move five times.


def to_text(schedule: Schedule) -> str:
    """The line of a schedule."""
    words = []
    for move, same in groupby(schedule):
        times = len(list(same))
        word = f"~{move.who}:{move.nbytes}" if move.kind == Kind.LAND else f"{move.who}{_MARKS[Kind(move.kind)]}"
        words.append(word if times == 1 else f"{word}*{times}")
    return ".".join(words)


def from_text(text: str) -> Schedule:
    """The schedule of a line, which may be broken into several. ParameterError naming a word that is not a move."""
    moves: list[Move] = []
    for number, word in enumerate("".join(text.split()).split("."), 1):
        match = _MOVE.fullmatch(word)
        if match is None:
            raise ParameterError(
                f"the schedule: word {number}, {brief(word)}, is not a move",
                cause="the text was cut or edited",
                correction="give the line that `pipesim check` prints at the end, or the field replay of its --json",
            )
        times = int(match["times"] or 1)
        if len(moves) + times > MAX_MOVES:
            raise ParameterError(
                f"the schedule: more than {MAX_MOVES:,} moves",
                cause="a move that is repeated very often",
                correction="give the line that `pipesim check` prints at the end, or the field replay of its --json",
            )
        if match["place"] is not None:
            moves += [Move(Kind.LAND, int(match["place"]), int(match["nbytes"]))] * times
        else:
            moves += [Move(_KINDS[match["mark"]], int(match["agent"]))] * times
    return tuple(moves)


def play_schedule(program: Program, text: str) -> Play:
    """The play of a line's schedule; where nothing is wrong at its end, as far as to the first fault, if there is one.

    ParameterError for a move that is not possible where it is.
    """
    play, first = Play(program), None
    for number, move in enumerate(from_text(text), 1):
        trapped = any(fault.kind.traps for fault in play.faults)
        if trapped or attempt(program, play.state, move) is None:
            raise ParameterError(
                f"the schedule: move {number} is not possible in {program.name} at these parameters",
                cause="the schedule belongs to another protocol, other parameters, or another version of it",
                correction="give the parameters that `pipesim check` printed with the schedule",
            )
        play.make(move)
        first = play.fork() if play.faults and first is None else first
    return play if play.faults or play.deadlock is not None else first or play
