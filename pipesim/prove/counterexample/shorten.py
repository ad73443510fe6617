"""A schedule without what its end does not need: no single move can be left out of it.

What is left out must leave a schedule that ends in the same way: the same fault of the same operation, or a deadlock of
the same agents at the same operations. First the agents stop earlier, each as early as it can; then every move is left
out once. Leaving a move out takes with it what is not possible without it: an agent that is held up stops there, and
bytes of a copy that was not issued do not land.

A landing names its flight by its place in the state, which another schedule moves; here it is known by its operation.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pipesim.explain.blocked_agents import explain
from pipesim.model.ending import Ending
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import BRANCHES
from pipesim.model.machine import Flight, State, finished, initial_state
from pipesim.model.moves import Kind, Move, attempt, canonical
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.prove.refutation import Refutation

MOST_MOVES = 100_000  #: made while shortening; what is not left out by then stays
_ALL = -1

_FlightKey = tuple[int, int, int, int]  # its agent, operation, barrier and first cell: those of a multicast differ


class _Act(NamedTuple):
    """A move that can be made in another schedule as well: of an agent, or of the flight of an operation."""

    kind: Kind
    agent: int
    flight: _FlightKey | None = None
    nbytes: int = 0  #: of a landing; ``_ALL`` for its last


class _ReplayedRun(NamedTuple):
    """A schedule carried out: its acts, the state before each of them and after the last, and its moves."""

    acts: tuple[_Act, ...]
    states: tuple[State, ...]
    moves: tuple[Move, ...]
    fault: Fault | None

    def then(self, done: int, rest: Sequence[tuple[_Act, State, Move]], fault: Fault | None) -> "_ReplayedRun":
        """The first ``done`` of its moves, and after them others, each with the state that it leads to."""
        return _ReplayedRun(
            self.acts[:done] + tuple(act for act, _, _ in rest),
            self.states[: done + 1] + tuple(state for _, state, _ in rest),
            self.moves[:done] + tuple(move for _, _, move in rest),
            fault,
        )


def shorten(program: Program, refutation: Refutation, most_moves: int = MOST_MOVES) -> Refutation:
    """The same end with a schedule that has no move to spare.

    ``most_moves`` bounds the work: of a schedule of many hundred moves, what there was no time to look at stays. What
    comes back always ends in the same way.
    """
    return _Shortener(program, refutation, most_moves).run()


class _Shortener:
    """The mutable side: the shortest replay so far."""

    def __init__(self, program: Program, refutation: Refutation, most_moves: int) -> None:
        self._program = program
        self._refutation = refutation
        self._left = most_moves
        self._varies = any(op[0] in BRANCHES or op[0] == Op.BAR_ARRIVE for op in program.operations)
        self._stands = frozenset[tuple[int, int]]()  # where the agents of the deadlock are stuck
        self._passed = set[tuple[FaultKind, int, int]]()  # the faults after which the schedule continues
        self._best = self._replay_schedule()

    def run(self) -> Refutation:
        if self._refutation.end is Ending.FAULT:
            self._cut_tails()
        while self._left > 0 and self._leave_out_each():
            pass
        best = self._best
        if self._refutation.end is Ending.FAULT:
            return replace(self._refutation, schedule=best.moves, fault=best.fault)
        return replace(self._refutation, schedule=best.moves, deadlock=explain(self._program, best.states[-1]))

    def _replay_schedule(self) -> _ReplayedRun:
        """The replay of the schedule as it was given."""
        state = canonical(initial_state(self._program))
        acts: list[_Act] = []
        states = [state]
        faults: tuple[Fault, ...] = ()
        for move in self._refutation.schedule:
            acts.append(_act(state, move))
            result = attempt(self._program, state, move)
            assert result is not None, "every move of a refutation is possible"
            state = result.state
            states.append(state)
            self._passed |= {(fault.kind, fault.agent, fault.pc) for fault in faults}
            faults = result.faults
        self._stands = _stuck_places(self._program, state)
        return _ReplayedRun(tuple(acts), tuple(states), self._refutation.schedule, self._refutation.fault)

    def _cut_tails(self) -> None:
        """Let every agent stop as early as it can: found by halving, as if what fails early failed later as well."""
        for agent in range(len(self._program.agents)):
            mine = [n for n, act in enumerate(self._best.acts) if act.agent == agent and act.flight is None]
            low, high = 0, len(mine)  # it must keep more than low moves, if any; with high it fails
            while low < high and self._left > 0:
                middle = (low + high) // 2
                found = self._replay_without(mine[middle], stopped=agent)
                if found is not None:
                    self._best = found
                    mine = [n for n, act in enumerate(found.acts) if act.agent == agent and act.flight is None]
                    high = min(middle, len(mine))
                else:
                    low = middle + 1

    def _leave_out_each(self) -> bool:
        """Try every move once, the last first; True if one could be left out."""
        before = len(self._best.acts)
        for n in range(before - 1, -1, -1):
            if n < len(self._best.acts) and self._left > 0 and self._may_be_spared(n):
                found = self._replay_without(n)
                if found is not None:
                    self._best = found
        return len(self._best.acts) < before

    def _may_be_spared(self, n: int) -> bool:
        """False where counting suffices: in a deadlock every agent has made all the moves to where it is.

        Only a jump, or an arrival at a named barrier (who comes last need not wait there), makes their number vary.
        """
        if self._refutation.end is Ending.FAULT or self._best.acts[n].flight is not None:
            return True
        return self._varies

    def _replay_without(self, without: int, stopped: int = -1) -> _ReplayedRun | None:
        """The replay without one act, or without all of an agent's from there on; None if it ends differently."""
        best = self._best
        state = best.states[without]
        rest: list[tuple[_Act, State, Move]] = []  # what replaces it; most trials end before there is much of it
        gone = {stopped}
        if self._ends_with(stopped):
            return None
        for act in best.acts[without + (stopped < 0) :]:
            if act.flight is None and act.agent in gone:
                continue
            move = _move(state, act)
            result = attempt(self._program, state, move) if move is not None else None
            self._left -= 1
            if result is None or move is None:
                if act.flight is None:
                    if self._ends_with(act.agent):
                        return None
                    gone.add(act.agent)
                continue
            state = result.state
            rest.append((act, state, move))
            if any((fault.kind, fault.agent, fault.pc) not in self._passed for fault in result.faults):
                same = next((fault for fault in result.faults if self._same(fault)), None)
                return best.then(without, rest, same) if same is not None else None
        if self._refutation.end is Ending.FAULT or state.flights or _stuck_places(self._program, state) != self._stands:
            return None
        stuck = explain(self._program, state)
        return best.then(without, rest, None) if stuck is not None else None

    def _ends_with(self, agent: int) -> bool:
        """True if there is no such end once this agent has stopped early."""
        fault = self._refutation.fault
        if agent < 0:
            return False
        return fault is None or (fault.agent == agent and self._best.acts[-1].flight is None)

    def _same(self, fault: Fault) -> bool:
        wanted = self._refutation.fault
        return wanted is not None and (fault.kind, fault.agent, fault.pc) == (wanted.kind, wanted.agent, wanted.pc)


def _stuck_places(program: Program, state: State) -> frozenset[tuple[int, int]]:
    """Every agent that has not ended, and its operation."""
    return frozenset((a, pc) for a, pc in enumerate(state.pcs) if not finished(program, state, a))


def _key(flight: Flight) -> _FlightKey:
    return flight.agent, flight.pc, flight.barrier, flight.first


def _act(state: State, move: Move) -> _Act:
    """A move as what it is in any schedule."""
    if move.kind != Kind.LAND:
        return _Act(Kind(move.kind), move.who)
    flight = state.flights[move.who]
    return _Act(Kind.LAND, flight.agent, _key(flight), move.nbytes if move.nbytes < flight.remaining else _ALL)


def _move(state: State, act: _Act) -> Move | None:
    """The act as a move in this state, None if its flight is not under way."""
    if act.flight is None:
        return Move(act.kind, act.agent)
    for place, flight in enumerate(state.flights):
        if _key(flight) == act.flight:
            return Move(Kind.LAND, place, flight.remaining if act.nbytes == _ALL else act.nbytes)
    return None
