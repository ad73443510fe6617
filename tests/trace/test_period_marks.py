"""An untraced launch takes its period between the same two waits as it is read from a trace."""

import numpy as np
import pytest

from hwkernels.capture.twin_subject import TwinSubject
from hwkernels.twins import REGISTRY
from pipesim.conform.steady import one_cta, read
from pipesim.model.steady import period_marks, waits_per_trip
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.files import read_meta
from pipesim.trace.schema import EventKind, Trace
from tests.support.paths import TRACES

#: Iterations enough for a steady state.
ENOUGH = {
    "attention_sm90": {},
    "cluster_multicast": {},
    "epilogue_residual": {"tiles": 24},
    "gemm_sm90": {"tiles": 16},
    "persistent_scheduler": {"tiles": 16},
    "producer_consumer": {},
    "attention_sm100": {"kv_blocks": 24},
    "conv_epilogue": {"tiles": 24},
    "cutlass_sm100": {"tiles": 24},
    "gemm_sm100": {"tiles": 24},
    "gemm_sm100_blockwise": {"tiles": 24},
}


def returns(trace: Trace, agent: int) -> list[int]:
    """When the waits of an agent returned; a try that passes is one."""
    events = one_cta(trace)
    kinds = np.array([int(site.kind) for site in trace.meta.sites])[events.site]
    passed = (kinds == EventKind.WAIT_RETURN) | ((kinds == EventKind.TRY) & (events.value == 1))
    found: list[int] = events.cycle[(events.agent == agent) & passed].tolist()
    return found


@pytest.mark.sampled(2, 3)
@pytest.mark.parametrize("name", ENOUGH)
def test_the_marks_are_where_a_trace_has_its_period(name: str) -> None:
    program = find(name).build(ENOUGH[name])
    trace = simulate(program, load_profile("h100")).trace
    reading, marks = read(trace, waits_per_trip(program)), period_marks(program)
    assert reading is not None
    assert marks is not None
    times = returns(trace, marks.agent)
    period = round(1000 * (times[marks.last] - times[marks.first]) / marks.iterations)
    assert period == reading.period_millicycles


@pytest.mark.sampled(1, 3)
@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_twin_that_is_recorded_has_configurations_with_a_period(name: str) -> None:
    with_both = [read_meta(each) for each in TRACES.glob(f"h200/{name}-*-both*.parquet")]
    marks = [TwinSubject(name).marks(each.params) for each in with_both]
    timed = [each for each, (first, last) in zip(with_both, marks, strict=True) if last > first]
    assert any(each.grid == 1 for each in timed)
    assert any(each.grid >= 8 for each in timed)
