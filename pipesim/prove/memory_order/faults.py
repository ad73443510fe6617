"""Faults of memory order with the shortest way to them: the causal past of the later access, then that access."""

from __future__ import annotations

from collections.abc import Sequence

from pipesim.explain.phases import run_canonically
from pipesim.model.ending import Ending
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.moves import Move
from pipesim.model.program import Program
from pipesim.prove.counterexample.play import Play
from pipesim.prove.memory_order.may_fail import order_may_fail
from pipesim.prove.memory_order.order import MemoryOrder
from pipesim.prove.refutation import Refutation


def memory_order(program: Program) -> MemoryOrder | None:
    """An observer for a run of this program, None if nothing in it can be wrong in memory order alone."""
    return MemoryOrder(program) if order_may_fail(program) else None


def memory_faults(program: Program) -> tuple[Fault, ...]:
    """What is wrong with the memory order of the canonical run, each pair of lines once."""
    order = memory_order(program)
    if order is not None:
        run_canonically(program, observers=[order])
    return order.faults if order is not None else ()


def memory_refutations(program: Program, order: MemoryOrder | None) -> tuple[Refutation, ...]:
    """A schedule for the first fault of each kind that the observer of a run has seen."""
    found: dict[FaultKind, Refutation] = {}
    for fault, past in zip(order.faults, order.pasts, strict=True) if order is not None else ():
        if fault.kind not in found:
            found[fault.kind] = Refutation(Ending.FAULT, _schedule(program, fault, past), fault)
    return tuple(found.values())


def memory_fault_of(program: Program, schedule: Sequence[Move]) -> Fault | None:
    """The last fault of memory order that a schedule shows, None if it shows none."""
    order = MemoryOrder(program)
    Play(program, schedule, [order])
    return order.faults[-1] if order.faults else None


def _schedule(program: Program, fault: Fault, past: Sequence[int]) -> tuple[Move, ...]:
    """The moves up to the fault: its past alone where that is enough, else everything in a plain order."""
    order = MemoryOrder(program)
    play = Play(program, observers=[order])
    if play.reach(past):
        play.advance(fault.agent)
        if fault in order.faults:
            return tuple(play.moves)
    order = MemoryOrder(program)
    play = Play(program, observers=[order])
    while fault not in order.faults and _on(play, len(program.agents)):
        pass
    return tuple(play.moves)


def _on(play: Play, agents: int) -> bool:
    """One operation of the first agent that can move, or else a landing; False if nothing can happen."""
    return any(play.advance(agent) for agent in range(agents)) or play.land()
