"""How a simulation ends: finished, in a deadlock, by a trap, or at its budget; and the sizes at the edge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pipesim.lang.protocol import Protocol
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.timed.engine import simulate

Make = Callable[..., Any]


def test_a_consumer_that_stops_arriving_leaves_the_producer_waiting(ring: Make, toy: Make) -> None:
    result = simulate(ring(stages=2, tiles=6, arrives=1), toy())
    assert result.outcome is Ending.DEADLOCK
    assert result.trace.meta.status == "deadlock"
    assert result.ends == (-1, -1)
    assert result.deadlock is not None
    producer, consumer = result.deadlock.blocked
    assert (producer.agent, producer.barrier, producer.phase_wanted, producer.arrivals_missing) == (
        "load",
        "empty[1]",
        0,
        1,
    )
    assert (consumer.agent, consumer.barrier, consumer.phase_wanted, consumer.bytes_missing) == ("use", "full[1]", 1, 0)
    # what both left behind: the producer three tiles and a wait, the consumer three tiles, one arrive, and a wait
    kinds = [result.trace.meta.sites[s].kind.name for s in result.trace.events.site]
    assert (kinds.count("COPY"), kinds.count("ARRIVE"), kinds.count("WAIT_ENTER")) == (3, 1, 4 + 4)
    assert kinds.count("WAIT_RETURN") == 3 + 3
    assert result.cycles == max(result.trace.events.cycle)  # nothing happens after the last wait begins


def test_a_deadlock_ends_at_its_last_landing(ring: Make, toy: Make) -> None:
    result = simulate(ring(stages=2, tiles=2, expect=80), toy())  # 16 bytes more than come
    assert result.outcome is Ending.DEADLOCK
    assert result.state.flights == ()
    last_copy = max(result.trace.events.cycle[result.trace.events.agent == 0])
    assert result.cycles == last_copy + 54
    assert result.deadlock is not None
    assert [b.bytes_missing for b in result.deadlock.blocked] == [16]
    assert result.deadlock.finished == ("load",)


def test_an_over_arrival_traps(ring: Make, toy: Make, lines: Make) -> None:
    result = simulate(ring(stages=2, tiles=4, lanes=2, empty_count=1), toy())
    assert result.outcome is Ending.FAULT
    assert result.trace.meta.status == "fault"
    assert [(f.kind, f.agent, f.found, f.expected) for f in result.faults] == [(FaultKind.OVER_ARRIVAL, 1, 2, 1)]
    assert (result.deadlock, result.ends) == (None, (-1, -1))
    arrive = [line for line in lines(result.trace) if "arrive" in line]
    assert arrive == ["83 use arrive empty[0] -1 #0 =2"]  # the arrive that trapped is stamped, as on the chip
    assert result.cycles == 83  # and with it time ends


def test_a_wait_that_traps_never_returns(toy: Make) -> None:
    p = Protocol("dead")
    storage = p.mbarriers("b", 2)
    p.init(lambda: storage[0].init(1))

    @p.role("only")
    def only(w: Any) -> None:
        storage[1].wait(1)

    result = simulate(p.flatten(), toy())
    assert result.outcome is Ending.FAULT
    assert [f.kind for f in result.faults] == [FaultKind.NOT_INITIALISED]
    assert [result.trace.meta.sites[s].kind.name for s in result.trace.events.site] == ["WAIT_ENTER"]


def test_a_fault_that_does_not_trap_goes_on(ring: Make, toy: Make) -> None:
    """Copies that bring other items than the reader names: the chip would not notice, the model does."""
    program = ring(stages=1, tiles=2)
    code = tuple(
        tuple((*op[:4], op[4] + 7, *op[5:]) if op[0] == Op.TMA_LOAD else op for op in agent) for agent in program.code
    )
    result = simulate(replace(program, code=code), toy())
    assert result.outcome is Ending.FINISHED
    assert [(f.kind, f.found, f.expected) for f in result.faults] == [
        (FaultKind.WRONG_ITEM, 7, 0),
        (FaultKind.WRONG_ITEM, 8, 1),
    ]


def test_the_budget_ends_in_unknown(ring: Make, toy: Make) -> None:
    program = ring(stages=2, tiles=6)
    whole = simulate(program, toy())
    for budget in (1, 10, whole.steps - 1, whole.steps):  # what needs all of its budget is not called finished
        cut = simulate(program, toy(), max_steps=budget)
        assert (cut.outcome, cut.steps, cut.deadlock) == (Ending.UNKNOWN, budget, None)
        assert cut.trace.meta.status == "unknown"
        assert cut.cycles <= whole.cycles
        assert len(cut.trace.events) <= len(whole.trace.events)
    enough = simulate(program, toy(), max_steps=whole.steps + 1)
    assert (enough.outcome, enough.trace) == (Ending.FINISHED, whole.trace)


def test_no_tiles(ring: Make, toy: Make) -> None:
    result = simulate(ring(tiles=0, warps=2), toy())
    assert result.outcome is Ending.FINISHED
    assert len(result.trace.events) == 0
    assert result.ends == (15, 15, 15)  # 4 inits and a fence, then the CTA barrier: the last to arrive waits for it too
    assert {b.done for b in result.state.barriers} == {0}


@pytest.mark.parametrize(("stages", "tiles"), [(1, 1), (1, 5), (5, 1), (5, 3), (3, 3)])
def test_rings_of_one_stage_and_rings_that_are_never_full(ring: Make, toy: Make, stages: int, tiles: int) -> None:
    result = simulate(ring(stages=stages, tiles=tiles), toy())
    assert result.outcome is Ending.FINISHED
    done = [sum(1 for t in range(tiles) if t % stages == s) for s in range(stages)]
    assert [b.done for b in result.state.barriers] == done * 2
    assert len(result.trace.events) == tiles * (4 + 3)
    if tiles <= stages:  # nobody waits for a stage to be handed back
        producer = result.trace.events.cycle[result.trace.events.agent == 0].reshape(-1, 4)
        assert (producer[:, 1] - producer[:, 0]).tolist() == [5] * tiles


def test_a_program_without_agents_ends_at_once(toy: Make) -> None:
    nothing = Program("nothing", {}, (), (), (), (), (), (), ("nowhere:1",))
    result = simulate(nothing, toy())
    assert (result.outcome, result.cycles, result.ends, result.steps) == (Ending.FINISHED, 0, (), 0)
