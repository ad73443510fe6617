"""The CTAs of a cluster are replayed as one, on the time line that their clocks have in common."""

from dataclasses import replace

import numpy as np
import pytest

from pipesim.conform.replay.conformance import all_agents, as_clusters, conform
from pipesim.conform.result import DivergenceKind, TraceVerdict
from pipesim.errors import EvidenceError
from pipesim.model.program import Program
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.schema import CtaInfo, Trace

ERROR_PS = 150_000


def program_of(**params: int) -> Program:
    return find("cluster_multicast").build(params)


def recorded(program: Program) -> Trace:
    """A simulation as if two SMs had recorded it: clocks of their own, and a time line with an error."""
    trace = simulate(program, load_profile("h100")).trace
    events = trace.events
    ctas = tuple(CtaInfo(cta, cta, (), (7,) * 3, (0,) * 3) for cta in range(program.ctas))
    extra = {"order_error_cycles": 20}
    device = replace(trace.meta.device, name="a chip")  # as fast as a simulation, and faster than any that was measured
    return Trace(
        replace(trace.meta, source="hardware", device=device, ctas=ctas, extra=extra),
        replace(events, cycle=events.cycle + 12_345 * events.cta, error_ps=np.full(len(events), ERROR_PS)),
    )


@pytest.mark.parametrize(
    "params", [{}, {"cluster": 4, "tiles": 5}, {"cluster": 4, "stages": 1}, {"cluster": 4, "tiles": 1}, {"tiles": 0}]
)
def test_a_cluster_does_what_its_protocol_says(params):
    program = program_of(**params)
    trace = recorded(program)
    found = conform(program, trace)
    assert (found.verdict, found.divergence, found.ctas) == (TraceVerdict.AGREES, None, program.ctas)
    assert found.events == len(trace.events)
    khz = trace.meta.device.sm_khz
    assert found.uncertainty_cycles == 20 + 2 * (ERROR_PS * khz // 10**9 + 1)


def test_clusters_are_merged_once_each_under_the_number_of_their_first_cta():
    program = program_of()
    one = recorded(program)
    both = replace(one.events, cta=one.events.cta + 2)
    columns = (np.concatenate([getattr(e, n) for e in (one.events, both)]) for n in vars(both))
    ctas = (*one.meta.ctas, *(replace(cta, cta=cta.cta + 2) for cta in one.meta.ctas))
    trace = Trace(replace(one.meta, ctas=ctas, grid=4), type(both)(*columns))
    merged = as_clusters(program, trace)
    assert merged.meta.agents == all_agents(program)
    assert [(c.cta, c.written) for c in merged.meta.ctas] == [(0, (7,) * 6), (2, (7,) * 6)]
    assert sorted(set(merged.events.cta)) == [0, 2]
    assert as_clusters(program, merged) is merged
    assert (conform(program, trace).verdict, conform(program, trace).ctas) == (TraceVerdict.AGREES, 4)


def test_a_stage_taken_before_the_peer_gave_it_back_is_seen():
    program = program_of()
    trace = recorded(program)
    late = (trace.events.cta == 0) & (trace.events.agent > 0)  # the consumers of CTA 0: 10 us behind the rest
    for shift_ps, verdict in ((50_000, TraceVerdict.AGREES), (10_000_000, TraceVerdict.DIFFERS)):
        moved = replace(trace.events, time_ps=trace.events.time_ps + shift_ps * late)
        found = conform(program, Trace(trace.meta, moved))
        assert found.verdict is verdict
    assert found.divergence is not None
    assert found.divergence.kind is DivergenceKind.TOO_EARLY
    assert "wait for" in found.divergence.claim


def test_half_of_a_cluster_is_no_evidence():
    program = program_of()
    trace = recorded(program)
    half = Trace(replace(trace.meta, ctas=trace.meta.ctas[:1]), trace.events.select(trace.events.cta == 0))
    with pytest.raises(EvidenceError, match="CTA 1 was not recorded, but others of its cluster of 2 were"):
        conform(program, half)
