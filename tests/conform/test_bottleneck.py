"""What limits a run, by one rule on events: the same role for a ring however it was recorded, another for its twin."""

from dataclasses import replace

import numpy as np
import pytest

from pipesim.conform.result import Bottleneck, LimitKind
from pipesim.conform.steady import bottleneck
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.schema import Trace
from tests.support.present import present

H200 = load_profile("h200")


def ring(**params: int) -> Trace:
    return simulate(find("producer_consumer").build({"tiles": 64} | params), H200).trace


def test_slow_consumers_limit_a_ring() -> None:
    assert bottleneck(ring(stages=4, work=2000)) == Bottleneck(LimitKind.ROLE, "consumer", 0)


def test_loads_limit_it_where_there_is_one_stage() -> None:
    found = present(bottleneck(ring(stages=1, work=0)))
    assert found.name == (LimitKind.LOADS, "full")
    assert found.waits_permille > 300


@pytest.mark.slow
def test_signals_limit_a_ring_whose_every_role_waits_for_another() -> None:
    trace = simulate(find("epilogue_residual").build({"accumulators": 1, "tiles": 8, "k_iters": 3}), H200).trace
    assert present(bottleneck(trace)).name == (LimitKind.SIGNALS, "output.empty")


def test_nothing_limits_a_run_of_which_the_trace_has_no_agents() -> None:
    """As that of a program whose first CTA has none."""
    trace = ring(tiles=1)
    meta = replace(trace.meta, agents=())
    assert bottleneck(replace(trace, meta=meta, events=trace.events.select(np.array([0])))) is None
