"""Every schedule, one by one: breadth first over the states of the machine, so that what is found is found shortest.

A state is explored once, whatever led to it. A fault ends its branch. With ``reduced``, operations that nobody notices
are carried out at once; nothing else is left out.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.machine import State, finished, initial_state
from pipesim.model.program import Program
from pipesim.prove.moves import PRIVATE, Kind, Move, canonical, make, moves
from pipesim.prove.refutation import End, Refutation, Schedule
from pipesim.unfold.blocked import explain


@dataclass(frozen=True)
class Exploration:
    """What a search saw. ``complete``: it saw every schedule. ``outcomes``: final states of runs that finished."""

    verdict: Verdict
    states: int
    steps: int
    complete: bool
    refutations: tuple[Refutation, ...]
    outcomes: int

    @property
    def kinds(self) -> frozenset[FaultKind | End]:
        """Every kind of what is wrong."""
        return frozenset(r.kind for r in self.refutations)


def explore(program: Program, max_states: int = 1_000_000, *, reduced: bool = True) -> Exploration:
    """Explore every schedule of ``program``, up to so many states."""
    return _Search(program, max_states, reduced=reduced).run()


class _Search:
    """The mutable side of one search."""

    def __init__(self, program: Program, max_states: int, *, reduced: bool) -> None:
        self._program = program
        self._most = max_states
        self._reduced = reduced
        start = canonical(initial_state(program))
        self._came: dict[State, tuple[State, Move] | None] = {start: None}
        self._queue = deque([start])
        self._found: dict[object, Refutation] = {}
        self._ends: set[State] = set()
        self._steps = 0

    def run(self) -> Exploration:
        complete = True
        while self._queue:
            if len(self._came) > self._most:
                complete = False
                break
            self._expand(self._queue.popleft())
        found = tuple(self._found.values())
        verdict = Verdict.REFUTED if found else Verdict.PROVED if complete else Verdict.UNKNOWN
        return Exploration(verdict, len(self._came), self._steps, complete, found, len(self._ends))

    def _expand(self, state: State) -> None:
        possible = self._possible(state)
        if not possible:
            self._end(state)
        for move in possible:
            result = make(self._program, state, move)
            self._steps += 1
            if result.faults:
                for fault in result.faults:
                    self._report(
                        (fault.kind, fault.agent, fault.pc), Refutation(End.FAULT, self._to(state, move), fault)
                    )
            elif result.state not in self._came:
                self._came[result.state] = (state, move)
                self._queue.append(result.state)

    def _possible(self, state: State) -> list[Move]:
        if self._reduced:
            for agent, code in enumerate(self._program.code):
                pc = state.pcs[agent]
                if pc < len(code) and code[pc][0] in PRIVATE:
                    return [Move(Kind.STEP, agent)]
        return moves(self._program, state)

    def _end(self, state: State) -> None:
        if all(finished(self._program, state, agent) for agent in range(len(self._program.agents))):
            self._ends.add(state)
            return
        stuck = explain(self._program, state)
        assert stuck is not None, "nothing can move, so somebody waits"
        where = tuple(state.pcs)
        self._report((End.DEADLOCK, where), Refutation(End.DEADLOCK, self._to(state), deadlock=stuck))

    def _report(self, key: object, refutation: Refutation) -> None:
        self._found.setdefault(key, refutation)

    def _to(self, state: State, *last: Move) -> Schedule:
        """The moves from the start to ``state``, and what follows."""
        path: list[Move] = []
        came = self._came[state]
        while came is not None:
            state, move = came
            path.append(move)
            came = self._came[state]
        return (*reversed(path), *last)
