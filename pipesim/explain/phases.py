"""The occurrence graph: what completed each phase of each barrier in one run, and which waits saw it.

:class:`PhaseLog` watches any driver of the machine; :func:`run_canonically` is the simplest driver, in a fixed order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pipesim.model import barrier as mbarrier
from pipesim.model.finding import Fault
from pipesim.model.groups import (
    ANSWER,
    ARRIVALS,
    BARRIER,
    BLOCKING_WAITS,
    COUNT,
    EXPECT,
    EXPECTS,
    PARITY,
    PARITY_TRIES,
    TRANSACTIONS,
    TX_BYTES,
)
from pipesim.model.machine import Flight, Observer, State, Step, finished, initial_state
from pipesim.model.moves import canonical_round
from pipesim.model.ops import Op
from pipesim.model.program import Program

_MOST_STEPS = 10_000_000  #: of the canonical run


class Contribution(NamedTuple):
    """One operation's (or landing's) part in a phase: who issued it, where, and what it added."""

    agent: int
    pc: int
    arrivals: int
    tx: int  #: change of the transaction count: positive expected, negative landed
    landed: bool  #: True for a landing, which happens later than its operation


@dataclass(frozen=True)
class Phase:
    """Phase ``index`` of a barrier: its contributions in order (the last completed it), and the waits that saw it."""

    barrier: int
    index: int
    contributions: tuple[Contribution, ...]
    complete: bool
    observers: tuple[tuple[int, int], ...]  #: (agent, pc) of the waits that passed because of this phase


@dataclass(frozen=True)
class Occurrence:
    """One run: the phases of every barrier, where it ended, what it did wrong."""

    phases: tuple[tuple[Phase, ...], ...]
    state: State
    faults: tuple[Fault, ...]
    steps: int
    finished: bool  #: every agent ran to its end
    exhausted: bool  #: the step budget ran out first


class PhaseLog:
    """Collects contributions and observers while a driver moves the machine.

    Phases are counted over a barrier's whole life; another init abandons the open phase and starts the next one afresh.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._made: list[list[list[Contribution]]] = [[[]] for _ in program.barriers]
        self._base = [0] * len(program.barriers)  # phases before the last init
        self._seen: list[dict[int, list[tuple[int, int]]]] = [{} for _ in program.barriers]

    def on_step(self, before: State, agent: int, result: Step) -> None:
        """An agent moved (or was blocked: then nothing happened)."""
        pc = before.pcs[agent]
        op = self._program.code[agent][pc]
        code = op[0]
        if result.state.pcs[agent] == pc or any(fault.kind.traps for fault in result.faults):
            return
        if code in BLOCKING_WAITS:
            done = before.barriers[op[BARRIER]].done
            if code == Op.WAIT_UNLESS and op[ANSWER] >= 0 and before.registers[agent][op[ANSWER]]:
                return  # skipped: its try saw the phase
            self._seen[op[BARRIER]].setdefault(self._base[op[BARRIER]] + done - 1, []).append((agent, pc))
        elif code in PARITY_TRIES:
            if mbarrier.passes(before.barriers[op[BARRIER]], op[PARITY]):
                done = before.barriers[op[BARRIER]].done
                self._seen[op[BARRIER]].setdefault(self._base[op[BARRIER]] + done - 1, []).append((agent, pc))
        elif code in ARRIVALS:
            tx = op[EXPECT] if code in EXPECTS else 0
            self._add(op[BARRIER], Contribution(agent, pc, op[COUNT], tx, landed=False), result)
        elif code in TRANSACTIONS:
            tx = op[TX_BYTES] if code == Op.EXPECT_TX else -op[TX_BYTES]
            self._add(op[BARRIER], Contribution(agent, pc, 0, tx, landed=False), result)
        elif code == Op.INIT:
            self._made[op[BARRIER]][-1] = []
            self._base[op[BARRIER]] = len(self._made[op[BARRIER]]) - 1

    def on_landing(self, flight: Flight, nbytes: int, result: Step) -> None:
        """A transfer delivered ``nbytes``, or its arrival."""
        if flight.barrier >= 0:
            part = Contribution(flight.agent, flight.pc, flight.arrivals, -nbytes, landed=True)
            self._add(flight.barrier, part, result)

    def phases(self) -> tuple[tuple[Phase, ...], ...]:
        """All phases so far; the last of each barrier is the open one."""
        return tuple(
            tuple(
                Phase(b, k, tuple(parts), k < len(made) - 1, tuple(self._seen[b].get(k, ())))
                for k, parts in enumerate(made)
            )
            for b, made in enumerate(self._made)
        )

    def _add(self, barrier: int, part: Contribution, result: Step) -> None:
        self._made[barrier][-1].append(part)
        if result.signalled == barrier:
            self._made[barrier].append([])


def run_canonically(program: Program, observers: Sequence[Observer] = ()) -> Occurrence:
    """Run the program in the canonical order: each agent in turn as far as it goes, then everything in flight lands.

    The phases are those of every schedule if the program is confluent; this function does not decide whether it is.
    ``observers`` see the run too.
    """
    state = initial_state(program)
    log = PhaseLog(program)
    watching = (log, *observers)
    faults: list[Fault] = []
    steps = 0
    moved = True
    while moved and steps < _MOST_STEPS and not any(f.kind.traps for f in faults):
        done = canonical_round(program, state, watching, _MOST_STEPS - steps)
        moved, state, steps = done.moved, done.state, steps + done.steps
        faults.extend(done.faults)
    ended = all(finished(program, state, a) for a in range(len(program.agents)))
    exhausted = steps >= _MOST_STEPS and moved and not (ended and not state.flights)
    return Occurrence(log.phases(), state, tuple(faults), steps, ended, exhausted)
