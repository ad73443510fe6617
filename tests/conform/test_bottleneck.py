"""What limits a run, by one rule on events: the same role for a ring however it was recorded, another for its twin."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipesim.conform.steady import Bottleneck, LimitKind, bottleneck
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.files import read_trace
from pipesim.trace.library import trace_folder
from pipesim.trace.schema import Trace
from pipesim.trace.window import cut

H200 = load_profile("h200")


def ring(**params: int) -> Trace:
    return simulate(find("producer_consumer").build({"tiles": 64} | params), H200).trace


def test_slow_consumers_limit_a_ring() -> None:
    assert bottleneck(ring(stages=4, work=2000)) == Bottleneck(LimitKind.ROLE, "consumer", 0)


def test_loads_limit_it_where_there_is_one_stage() -> None:
    found = bottleneck(ring(stages=1, work=0))
    assert found is not None
    assert found.name == (LimitKind.LOADS, "full")
    assert found.waits_permille > 300


def test_a_slow_producer_limits_it() -> None:
    """Tiny tiles, no work, and copies that take long to issue: everybody waits for the one that issues them."""
    slow = replace(H200, values=H200.values | {"copy.issue": 500})
    program = find("producer_consumer").build({"stages": 8, "work": 0, "tile_bytes": 16, "consumer_warps": 1})
    found = bottleneck(simulate(program, slow).trace)
    assert found is not None
    assert found.name == (LimitKind.ROLE, "producer")


def test_signals_limit_a_ring_whose_every_role_waits_for_another() -> None:
    trace = simulate(find("epilogue_residual").build({"accumulators": 1, "tiles": 8, "k_iters": 3}), H200).trace
    found = bottleneck(trace)
    assert found is not None
    assert found.limit in (LimitKind.SIGNALS, LimitKind.ROLE)


@pytest.mark.parametrize("window", [(16, 48), (8, 24)])
def test_a_window_of_the_run_has_the_same(window: tuple[int, int]) -> None:
    for params in ({"stages": 4, "work": 2000}, {"stages": 1, "work": 0}):
        trace = ring(**params)
        whole, part = bottleneck(trace), bottleneck(cut(trace, *window))
        assert whole is not None
        assert part is not None
        assert part.name == whole.name


def test_a_recorded_run_has_the_same_as_its_simulation() -> None:
    name = "producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet"
    measured = bottleneck(read_trace(trace_folder() / "h200" / name))
    simulated = bottleneck(ring())
    assert measured is not None
    assert simulated is not None
    assert (measured.name, simulated.name) == ((LimitKind.ROLE, "consumer"),) * 2


def test_of_nothing_nothing_is_said() -> None:
    trace = ring()
    assert bottleneck(Trace(trace.meta, trace.events.select(trace.events.agent < 0))) is None
    alone = trace.events.select(trace.events.agent == 0)
    assert bottleneck(Trace(replace(trace.meta), alone)) is None
