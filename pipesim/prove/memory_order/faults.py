"""Faults of memory order with the shortest way to them: the causal past of the later access, then that access."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence

from pipesim.explain.phases import run_canonically
from pipesim.model.ending import Ending
from pipesim.model.finding import Fault
from pipesim.model.moves import Move
from pipesim.model.program import Program
from pipesim.prove.certain import is_unsure
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
    """A schedule for the first fault of each kind that the observer of a run has seen; certain if one is."""
    return _refutations(program, order, lambda fault: fault.kind)


def memory_refutations_by_line(program: Program, order: MemoryOrder | None, most: int) -> tuple[Refutation, ...]:
    """The same, for at most this number of faults of each kind and pair of lines in a run of its own."""
    if order is not None:
        run_canonically(program, observers=[order])

    def lines(fault: Fault) -> Hashable:
        sides = (fault.agent, fault.pc), (fault.other_agent, fault.other_pc)
        return fault.kind, *(program.line(*side) for side in sides if min(side) >= 0)

    return _refutations(program, order, lines, most)


def _refutations(
    program: Program, order: MemoryOrder | None, key: Callable[[Fault], Hashable], most: int | None = None
) -> tuple[Refutation, ...]:
    found: dict[Hashable, tuple[Fault, Sequence[int]]] = {}
    for fault, past in zip(order.faults, order.pasts, strict=True) if order is not None else ():
        known = found.get(key(fault))
        if known is None or (is_unsure(program, known[0]) and not is_unsure(program, fault)):
            found[key(fault)] = fault, past
    return tuple(Refutation(Ending.FAULT, _schedule(program, *each), each[0]) for each in [*found.values()][:most])


def memory_faults_of(program: Program, schedule: Sequence[Move]) -> tuple[Fault, ...]:
    """The faults of memory order that a schedule shows, in the order in which it does."""
    order = MemoryOrder(program)
    Play(program, schedule, [order])
    return order.faults


def _schedule(program: Program, fault: Fault, past: Sequence[int]) -> tuple[Move, ...]:
    """The moves up to the fault: its past alone where that is enough, else the canonical run until then."""
    order = MemoryOrder(program)
    play = Play(program, observers=[order])
    if play.reach(past):
        play.advance(fault.agent)
        if fault in order.faults:
            return tuple(play.moves)
    order = MemoryOrder(program)
    play = Play(program, observers=[order])
    for _ in _canonical_moves(play, len(program.agents)):
        if fault in order.faults:
            break
    return tuple(play.moves)


def _canonical_moves(play: Play, agents: int) -> Iterator[None]:
    """The rounds of the canonical run, move by move: each agent as far as it goes, then each flight lands once."""
    moved = True
    while moved:
        moved = False
        for agent in range(agents):
            while play.advance(agent):
                moved = True
                yield
        for flight in play.state.flights:
            if play.land_one(flight):
                moved = True
                yield
