"""Records of named barriers, cp.async arrivals, commits and groups: from a kernel's words to events that conform."""

from dataclasses import replace

import pytest

from hwkernels.source_recorder.decode import DecodeContext, decode
from hwkernels.source_recorder.table import read_table
from pipesim.conform.replay.conformance import conform
from pipesim.conform.result import TraceVerdict
from pipesim.errors import UsageError
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.consistency import check_trace
from pipesim.trace.schema import ON_NAMED_BARRIER, EventKind, Trace
from pipesim.trace.sites import optional_sites
from tests.support.paths import EXAMPLES

IN_RECORD = {EventKind.ARRIVE, EventKind.CP_ASYNC_ARRIVE, EventKind.GROUP_ENTER, EventKind.GROUP_RETURN}


def said(kind: EventKind, value: int) -> int:
    """What a kernel writes into the value of a record (recorder.cuh)."""
    if kind in ON_NAMED_BARRIER:
        return value // 32
    return value if kind in IN_RECORD else 0


def test_what_a_kernel_records_is_what_its_protocol_says(encoder):
    program = find(f"{EXAMPLES / 'relay.py'}:relay").build({"tiles": 9})
    simulated = simulate(program, load_profile("h200"), traced=True, also=optional_sites(program)).trace
    table = read_table(EXAMPLES / "relay.table.h", {"STAGES": 3})
    numbers = {site.key: n for n, site in enumerate(table.sites)}
    kept = encoder(table, capacity=256)
    kept.anchor(0, 1_000_000)
    events, sites = simulated.events, simulated.meta.sites
    for row in range(len(events)):
        site = sites[int(events.site[row])]
        kept.record(
            0, int(events.agent[row]), numbers[site.key], kept.cycle(1_000_100) + int(events.cycle[row]),
            iteration=int(events.iteration[row]), stage=max(int(events.stage[row]), 0),
            parity=max(int(events.parity[row]), 0), value=said(site.kind, int(events.value[row])),
        )  # fmt: skip
    kept.anchor(1, 1_100_000)
    found = decode(kept.headers, kept.records, table, DecodeContext("clock", (), counted=False))
    for name in ("agent", "stage", "parity", "iteration", "value"):
        assert getattr(found.events, name).tolist() == getattr(events, name).tolist(), name
    meta = replace(
        simulated.meta, source="hardware", agents=table.agents, barriers=table.barriers, sites=table.sites,
        ctas=found.ctas, memory="device",
    )  # fmt: skip
    trace = Trace(meta, found.events)
    check_trace(trace, "here")
    assert conform(program, trace).verdict is TraceVerdict.AGREES


@pytest.mark.parametrize(
    ("line", "fact", "correction"),
    [
        ("PIPESIM_SITE(s, a, BAR_ARRIVE, full)", "BAR_ARRIVE is on a named barrier, not full", "0, 1, 2"),
        ("PIPESIM_SITE(s, a, BAR_ARRIVE, 16)", "BAR_ARRIVE is on a named barrier, not 16", "14, 15"),
        ("PIPESIM_SITE(s, a, GROUP_COMMIT, none)", "GROUP_COMMIT is on an engine, not none", "bulk, cp_async"),
        ("PIPESIM_SITE(s, a, BAR_ENTER, 1)", "a has no BAR_RETURN of 1", "PIPESIM_SITE(NAME, a, BAR_RETURN, 1)"),
        ("PIPESIM_SITE(s, a, GROUP_RETURN, bulk)", "a has no GROUP_ENTER of bulk", "GROUP_ENTER, bulk"),
    ],
)
def test_a_site_that_cannot_be(tmp_path, line, fact, correction):
    (tmp_path / "k.table.h").write_text(f"PIPESIM_ROLE(a, 1)\nPIPESIM_BARRIER(full, 1, 1)\n{line}\n")
    with pytest.raises(UsageError) as caught:
        read_table(tmp_path / "k.table.h", {})
    assert fact in str(caught.value)
    assert correction in caught.value.correction
