"""Which processes to follow in a state, so that what the others do meanwhile need not be tried: persistent sets.

Some processes are chosen and held still. The others are let run as far as they may come (``reach``). If nothing they
may do by then is noticed by a chosen one in its next move, or notices that move, it can be made first as well as last:
only the moves of the chosen processes are followed from here. Every move brings a program nearer to its end, so none is
put off indefinitely. A move that fails ends its branch and would hide what others still do; a choice with one in it is
not made. So the search loses no fault, no deadlock and no final state (P. Godefroid, "Partial-Order Methods for the
Verification of Concurrent Systems", persistent sets).
"""

from pipesim.model.program import Program
from pipesim.prove.search.meanwhile import FreeProcess, Meanwhile, Moves
from pipesim.prove.search.parts import Local, Row
from pipesim.prove.search.successors import Process, Successor, Successors
from pipesim.prove.search.ways import Supplies, Way

Weights = dict[int, int]  #: by the ``id`` of a process


class Here:
    """Who, in one state, may do what held processes notice before they move: the others, let run as far as they come.

    What this needs is gathered once, since many choices of processes are looked into. ``weights``: of the processes
    that can move; the others weigh nothing.
    """

    def __init__(self, choices: "Persistent", row: Row, processes: list[Process], weights: Weights) -> None:
        self._choices = choices
        self._row = row
        self._processes = processes
        self._weights = weights
        self._going: dict[bool, list[FreeProcess]] = {}
        self._begun: dict[int, Meanwhile] = {}  # for one process held: it may be asked again, with a higher limit

    def interfering_processes(self, held: list[Process], most: int) -> list[Process] | None:
        """Those that, before one of ``held`` moves, may do what does not leave its move as it is.

        None as soon as it is sure that they weigh more than ``most``.
        """
        begun = self._begun.get(id(held[0])) if len(held) == 1 else None
        if begun is not None:
            return begun.interfering_processes(most)
        moves = _join_moves(held)
        still = {id(process) for process in held}
        others = [each for each in self._others(held) if id(each.process) not in still]
        at_once = 0
        for each in others:  # who can move can do this at least
            if each.weight and moves.notice(each):
                at_once += each.weight
        if at_once > most:
            return None
        meanwhile = self._choices.meanwhile(self._row, held, others, moves)
        if len(held) == 1:
            self._begun[id(held[0])] = meanwhile
        return meanwhile.interfering_processes(most)

    def _others(self, held: list[Process]) -> list[FreeProcess]:
        """Every process; waits for groups of transfers matter only where a transfer is held."""
        for_groups = any(process.flight is not None for process in held)
        if for_groups not in self._going:
            self._going[for_groups] = [
                self._choices.free_process(self._row, process, self._weights.get(id(process), 0), for_groups=for_groups)
                for process in self._processes
            ]
        return self._going[for_groups]


def _join_moves(held: list[Process]) -> Moves:
    reads = writes = adds = 0
    for process in held:
        touch = process.touch
        reads |= touch.reads
        writes |= touch.writes
        adds |= touch.adds
    return Moves(adds, writes | adds, reads | writes | adds, reads | writes)


Enabled = list[tuple[Process, tuple[Successor, ...]]]


class Persistent:
    """Chooses, in each state, the processes to follow."""

    def __init__(self, program: Program, successors: Successors) -> None:
        self._program = program
        self._successors = successors
        self._parts = successors.parts
        self._supplies = Supplies(program, successors.parts, successors.footprints)
        self._ways: dict[tuple[int, int, bool], Way] = {}

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
        here = Here(self, row, self._successors.processes(row), weights)
        for process, outcomes in enabled:  # one alone, if there is one
            if weights[id(process)] == 1 and _closure(here, process, weights, 1):
                return [(process, outcomes)]
        best, fewest = enabled, every
        for process, _ in enabled:
            held = _closure(here, process, weights, fewest - 1)
            if held:
                best = [(each, outcomes) for each, outcomes in enabled if id(each) in held]
                fewest = sum(len(outcomes) for _, outcomes in best)
        return best

    def _unnoticed(self, row: Row, process: Process) -> bool:
        """True if no agent can notice its next move: it touches nothing, or has passed a named barrier."""
        touch = process.touch
        if touch.writes or touch.adds:
            return False
        return not touch.reads or (process.flight is None and self._parts.value(row, process.part).hold > 0)

    def meanwhile(self, row: Row, held: list[Process], others: list[FreeProcess], moves: Moves) -> Meanwhile:
        """The others in the state of ``row``, none of which has moved."""
        return Meanwhile(self._program, self._parts, self._supplies, row, held, others, moves)

    def free_process(self, row: Row, process: Process, weight: int, *, for_groups: bool) -> FreeProcess:
        """A process at its place in ``row``."""
        touch = process.touch
        if process.flight is not None:
            return FreeProcess(process, None, weight, touch.reads, touch.writes, touch.adds)
        key = process.part, row[process.part], for_groups
        way = self._ways.get(key)
        if way is None:
            local: Local = self._parts.value(row, process.part)
            way = Way(self._program, self._parts, self._supplies, process.agent, local, for_groups=for_groups)
            self._ways[key] = way
        first = way.legs[0]
        return FreeProcess(
            process, way, weight, touch.reads | first.reads, touch.writes | first.writes, touch.adds | first.adds
        )


def _closure(here: Here, seed: Process, weights: Weights, most: int) -> set[int] | None:
    """The seed, and whatever may do what the next moves of those here could notice; None if it weighs too much."""
    held = [seed]
    most -= weights[id(seed)]
    while most >= 0:
        joining = here.interfering_processes(held, most)
        if not joining:
            return None if joining is None else {id(process) for process in held}
        held += joining
        most -= sum(weights.get(id(process), 0) for process in joining)
    return None
