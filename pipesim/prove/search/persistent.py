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
from pipesim.prove.search.reach import Reach
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
        faulty = {id(process) for process, outcomes in enabled if any(outcome.faults for outcome in outcomes)}
        processes = self._successors.processes(row)
        best, fewest = enabled, sum(len(outcomes) for _, outcomes in enabled)
        for seed, _ in enabled:
            if id(seed) in faulty:
                continue
            held = self._closed(row, seed, processes)
            chosen = [(process, outcomes) for process, outcomes in enabled if id(process) in held]
            moves = sum(len(outcomes) for _, outcomes in chosen)
            if moves < fewest and not held & faulty:
                best, fewest = chosen, moves
                if moves == 1:
                    break
        return best

    def _unnoticed(self, row: Row, process: Process) -> bool:
        """True if nobody can notice its next move: it touches nothing, or goes on where a named barrier let it pass."""
        touch = process.touch
        if touch.writes or touch.adds:
            return False
        return not touch.reads or (process.flight is None and self._successors.parts.value(row, process.part).hold > 0)

    def _closed(self, row: Row, seed: Process, processes: list[Process]) -> set[int]:
        """The seed, and whatever may do what the next moves of those here could notice."""
        held, others = [seed], [process for process in processes if process is not seed]
        while others:
            joining = self._reach.noticing(row, held, others)
            if not joining:
                break
            held += joining
            new = {id(process) for process in joining}
            others = [process for process in others if id(process) not in new]
        return {id(process) for process in held}
