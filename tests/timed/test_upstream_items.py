"""Upstream's own test of the pipeline, timed: 8,192 items, one producer, one consumer, rings of several depths.

Upstream's uses no copies: the producer signals ``full`` by an arrive of its own (``producer_signal_and_step``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipesim.lang.protocol import Protocol
from pipesim.model.ending import Ending
from pipesim.pipelines import ProducerConsumerPipeline
from pipesim.timed.engine import simulate

ITEMS = 8192


def upstream(stages: int) -> Protocol:
    p = Protocol("upstream")
    storage = p.mbarriers("pipe", 2 * stages)
    p.init(lambda: ProducerConsumerPipeline(storage, stages).init_mbars(1, 1))

    @p.role("producer")
    def producer(w: Any) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():
            for _ in w.loop(ITEMS, "items"):
                pipe.producer_signal_and_step()

    @p.role("consumer")
    def consumer(w: Any) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():
            for _ in w.loop(ITEMS, "items"):
                pipe.consumer_signal_and_step()

    return p


@pytest.mark.slow
@pytest.mark.parametrize("stages", [1, 2, 4, 8])
def test_every_phase_completes(toy: Callable[..., Any], stages: int) -> None:
    result = simulate(upstream(stages).flatten(), toy())
    assert result.outcome is Ending.FINISHED
    assert result.faults == ()
    assert [(b.done, b.pending, b.tx) for b in result.state.barriers] == [(ITEMS // stages, 1, 0)] * (2 * stages)
    assert len(result.trace.events) == 2 * 3 * ITEMS
    last = [int(result.trace.events.iteration[result.trace.events.agent == a].max()) for a in (0, 1)]
    assert last == [ITEMS - 1] * 2
