"""Which processes to follow in a state, so that what the others do meanwhile need not be tried: persistent sets.

Some processes are chosen and held still. The others are let run as far as they may come (``reach``). If nothing they
may do by then is noticed by a chosen one in its next move, or notices that move, it can be made first as well as last:
only the moves of the chosen processes are followed from here. Every move brings a program nearer to its end, so none is
put off indefinitely. A move that fails ends its branch and would hide what others still do; a choice with one in it is
not made. So the search loses no fault, no deadlock and no final state (P. Godefroid, "Partial-Order Methods for the
Verification of Concurrent Systems", persistent sets).
"""

from __future__ import annotations

from pipesim.model.program import Program
from pipesim.prove.search.parts import Row
from pipesim.prove.search.reach import Here, Reach, Weights
from pipesim.prove.search.successors import Process, Successor, Successors

Enabled = list[tuple[Process, tuple[Successor, ...]]]


class Persistent:
    """Chooses, in each state, the processes to follow."""

    def __init__(self, program: Program, successors: Successors) -> None:
        self._successors = successors
        self._reach = Reach(program, successors)

    def choose(self, row: Row, enabled: Enabled) -> Enabled:
        """Those of the enabled processes to follow: a smallest choice found, all of them if there is none."""
        for process, outcomes in enabled:
            if self._unnoticed(row, process) and not any(outcome.faults for outcome in outcomes):
                return [(process, outcomes)]
        every = sum(len(outcomes) for _, outcomes in enabled)
        weights = {
            id(process): every + 1 if any(outcome.faults for outcome in outcomes) else len(outcomes)
            for process, outcomes in enabled
        }
        here = self._reach.here(row, self._successors.processes(row), weights)
        for process, outcomes in enabled:  # one alone, if there is one
            if weights[id(process)] == 1 and _closed(here, process, weights, 1):
                return [(process, outcomes)]
        best, fewest = enabled, every
        for process, _ in enabled:
            held = _closed(here, process, weights, fewest - 1)
            if held:
                best = [(each, outcomes) for each, outcomes in enabled if id(each) in held]
                fewest = sum(len(outcomes) for _, outcomes in best)
        return best

    def _unnoticed(self, row: Row, process: Process) -> bool:
        """True if nobody can notice its next move: it touches nothing, or goes on where a named barrier let it pass."""
        touch = process.touch
        if touch.writes or touch.adds:
            return False
        return not touch.reads or (process.flight is None and self._successors.parts.value(row, process.part).hold > 0)


def _closed(here: Here, seed: Process, weights: Weights, most: int) -> set[int] | None:
    """The seed, and whatever may do what the next moves of those here could notice; None if it weighs too much."""
    held = [seed]
    most -= weights[id(seed)]
    while most >= 0:
        joining = here.noticing(held, most)
        if not joining:
            return None if joining is None else {id(process) for process in held}
        held += joining
        most -= sum(weights.get(id(process), 0) for process in joining)
    return None
