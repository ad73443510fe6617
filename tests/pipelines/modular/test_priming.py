"""The two priming conventions of upstream, and what becomes of mixing them."""

import pytest

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.program import Program
from pipesim.pipelines import ProducerConsumerPipeline
from tests.support.random_schedules import outcomes


def primed_ring(phase: int, *, primed: bool, stages: int = 2, items: int = 5, consumers: int = 1) -> Program:
    """A ring whose producer starts at ``phase``; with ``primed`` every consumer first arrives on every ``empty``."""
    p = Protocol("primed")
    slots = p.smem("slot", slots=stages, nbytes=4)
    storage = p.mbarriers("pipe", 2 * stages)
    p.init(lambda: ProducerConsumerPipeline(storage, stages).init_mbars(1, consumers))

    @p.role("producer")
    def producer(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        pipe.producer_phase = phase
        with w.elect_one():
            for i in range(items):
                with pipe.produce() as stage:
                    w.write(slots[stage.index()], i)
                    stage.mbar().arrive()

    @p.role("consumer", warps=consumers)
    def consumer(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():
            if primed:
                for number in range(stages):
                    pipe.consumer_mbar(number).arrive()
            for i in range(items):
                with pipe.consume() as stage:
                    w.read(slots[stage.index()], i)

    return p.flatten()


@pytest.mark.parametrize("consumers", [1, 3])
@pytest.mark.parametrize(("phase", "primed"), [(1, False), (0, True)])
def test_each_convention_works_in_every_schedule_tried(phase: int, primed: bool, consumers: int) -> None:
    for stages in (1, 2, 3):
        for items in (0, 1, stages, stages + 1, 3 * stages + 1):
            program = primed_ring(phase, primed=primed, stages=stages, items=items, consumers=consumers)
            assert outcomes(program, schedules=12) == {"finished"}, (stages, items)


def test_phase_1_with_priming_depends_on_the_schedule() -> None:
    """Priming first: the producer blocks for ever. Producer first: its second lap overwrites slots nobody has read."""
    assert outcomes(primed_ring(1, primed=True), schedules=200) == {"WRONG_ITEM", "stuck"}
