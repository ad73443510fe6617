"""Upstream's own test of the pipeline, rebuilt: one producer, one consumer, 8,192 items, 1, 2, 4 and 8 stages."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pipesim.explain.phases import run_canonically
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.barrier import LIVE, BarrierState
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.pipelines import ProducerConsumerPipeline
from tests.support.lanes import slow_but

ITEMS = 8192


def upstream(stages: int, items: int, *, signalled: bool = True) -> Program:
    """The producer stores a number into each slot, the consumer checks that it gets the numbers in order."""
    p = Protocol("upstream")
    slots = p.smem("slot", slots=stages, nbytes=4)
    storage = p.mbarriers("pipe", ProducerConsumerPipeline.smem_bytes(stages) // 8)

    @p.init
    def init() -> None:
        ProducerConsumerPipeline(storage, stages).init_mbars(1, 1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():
            for i in range(items):
                with pipe.produce() as stage:
                    w.write(slots[stage.index()], i)
                    if signalled:
                        stage.mbar().arrive()

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():
            for i in range(items):
                with pipe.consume() as stage:
                    w.read(slots[stage.index()], i)

    return p.flatten()


@pytest.mark.slow
@pytest.mark.parametrize("stages", slow_but([2], [1, 2, 4, 8]))
def test_every_item_arrives_in_order(stages: int) -> None:
    program = upstream(stages, ITEMS)
    counts = Counter(Op(op[0]).name for code in program.code for op in code)
    assert counts == {
        "INIT": 2 * stages, "FENCE": 1, "BAR_SYNC": 2, "WAIT": 2 * ITEMS, "ARRIVE": 2 * ITEMS, "WRITE": ITEMS,
        "READ": ITEMS,
    }  # fmt: skip
    end = run_canonically(program)
    assert (end.finished, end.exhausted, end.faults, end.state.flights) == (True, False, (), ())
    assert end.state.barriers == (BarrierState(1, 1, 0, ITEMS // stages, LIVE),) * (2 * stages)
    assert end.state.cells == tuple(range(ITEMS - stages, ITEMS)), "the last lap is what stays in the slots"
    laps = ITEMS // stages
    assert [len(phases) for phases in end.phases] == [laps + 1] * (2 * stages), "and one open phase each"
    assert all(p.complete and len(p.contributions) == 1 for phases in end.phases for p in phases[:-1])
    # every full phase is seen by the consumer; the producer never waits for the last lap to be read
    seen = [sum(len(p.observers) for p in phases) for phases in end.phases]
    assert seen == [laps] * stages + [laps - 1] * stages


@pytest.mark.parametrize("stages", [1, 2, 4, 8])
def test_any_schedule_of_a_short_run_does_the_same(stages: int, outcomes: Any) -> None:
    assert outcomes(upstream(stages, 3 * stages + 1), schedules=30) == {"finished"}


def test_a_producer_that_never_signals_hangs_the_consumer(outcomes: Any) -> None:
    assert outcomes(upstream(2, 5, signalled=False), schedules=10) == {"stuck"}
    end = run_canonically(upstream(2, 5, signalled=False))
    assert (end.finished, end.exhausted) == (False, False)
    assert [b.done for b in end.state.barriers] == [0, 0, 0, 0]
