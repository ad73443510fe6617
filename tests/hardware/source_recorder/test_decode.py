from __future__ import annotations

import numpy as np
import pytest

from hwkernels.records.clocks import DRIFT_PERMILLE
from hwkernels.source_recorder.decode import DecodeContext, decode, sm_khz, timer_step_ns
from pipesim.errors import TraceFormatError
from pipesim.trace.schema import COLUMNS, Anchor, CtaInfo

WAIT, GOT, EXPECT, COPY = range(4)  # the producer's sites
TAKE, TOOK, BEGIN, END, ARRIVE = range(4, 9)  # the consumer's


def _decode(encoded, nbytes=(64,), **coding):
    return decode(encoded.headers, encoded.records, encoded.table, DecodeContext(encoded.clock, nbytes, **coding))


def _columns(events):
    return {name: getattr(events, name).tolist() for name in COLUMNS}


def test_one_iteration_of_both_roles(encoder, table):
    e = encoder(table)
    e.anchor(0, 2_000_000)
    e.record(0, 0, WAIT, e.cycle(2_000_100), iteration=0, parity=1)
    e.record(0, 0, GOT, e.cycle(2_000_101), iteration=0, parity=1)
    e.record(0, 0, EXPECT, e.cycle(2_000_102), iteration=0, parity=1)
    e.record(0, 0, COPY, e.cycle(2_000_103), iteration=0, parity=1)
    e.record(0, 0, WAIT, e.cycle(2_000_104), iteration=1, parity=1, stage=1)
    e.record(0, 1, TAKE, e.cycle(2_000_100), iteration=0)
    e.record(0, 1, TOOK, e.cycle(2_000_700), iteration=0)
    e.record(0, 1, BEGIN, e.cycle(2_000_720), iteration=0)
    e.record(0, 1, END, e.cycle(2_000_800), iteration=0)
    e.record(0, 1, ARRIVE, e.cycle(2_000_801), iteration=0, value=32)
    e.anchor(1, 2_004_000)
    decoded = _decode(e)
    # An edge is placed at the middle of -20..+12 cycles: 4 before the truth, within a bound of 16.
    assert decoded.ctas == (
        CtaInfo(0, 7, (Anchor(0, 0, 8000), Anchor(4000, 8000, 8000)), (5, 5), (0, 0)),
    )  # fmt: skip
    since = [100, 101, 102, 103, 104, 100, 700, 720, 800, 801]
    assert _columns(decoded.events) == {
        "cta": [0] * 10,
        "agent": [0] * 5 + [1] * 5,
        "site": [WAIT, GOT, EXPECT, COPY, WAIT, TAKE, TOOK, BEGIN, END, ARRIVE],
        "stage": [0, 0, 0, 0, 1, 0, 0, 0, 0, 0],
        "parity": [1, 1, -1, -1, 1, 0, 0, -1, -1, -1],
        "iteration": [0, 0, 0, 0, 1, 0, 0, 0, 0, 0],
        "value": [0, 0, 64, 64, 0, 0, 0, 0, 0, 32],
        "cycle": [2 * ns + 4 for ns in since],
        "time_ps": [ns * 1000 + 2000 for ns in since],
        "error_ps": [8502 + DRIFT_PERMILLE * (ns + 2) for ns in since],  # the first anchor is the nearer
        "globaltimer_ns": [-1] * 10,
    }
    assert sm_khz(e.headers) == 2_000_000
    assert timer_step_ns(e.headers) == 32


def test_the_bound_holds_for_every_placement_of_the_edges(encoder, table):
    truth = [2_000_050, 2_000_500, 2_000_999]
    worst = 0
    for early, late in ((1, 40), (40, 1), (20, 20), (3, 4)):
        e = encoder(table)
        e.anchor(0, 2_000_000, before=early, after=late)
        e.anchor(1, 2_001_024, before=late, after=early)
        for site, ns in zip((TAKE, TOOK, BEGIN), truth, strict=True):
            e.record(0, 1, site, e.cycle(ns), iteration=0)
        events = _decode(e).events
        off = np.abs(events.time_ps - (np.array(truth) - 2_000_000) * 1000)
        assert (off <= events.error_ps).all()
        worst = max(worst, int(off.max()))
    assert worst > 8000  # so the bound is not idle


@pytest.mark.parametrize("offset", [0, (1 << 32) - 300, (1 << 32) - 150, (5 << 32) - 2000, 1 << 40])
def test_stamps_wrap_around(encoder, table, offset):
    e = encoder(table, offset=offset)
    times = [1_000_100, 1_000_101, 1_000_900]
    e.anchor(0, 1_000_032)
    for site, ns in zip((WAIT, GOT, EXPECT), times, strict=True):
        e.record(0, 0, site, e.cycle(ns), iteration=0)
    e.anchor(1, 1_001_056)
    events = _decode(e).events
    assert events.cycle.tolist() == [2 * (ns - 1_000_032) + 4 for ns in times]


def test_a_clock_that_runs_backwards_is_refused(encoder, table):
    e = encoder(table)
    e.anchor(0, 1_000_032)
    e.record(0, 0, WAIT, e.cycle(1_000_100), iteration=0)
    e.record(0, 0, GOT, e.cycle(1_000_099), iteration=0)
    e.anchor(1, 1_001_056)
    with pytest.raises(TraceFormatError, match="later than the CTA's last anchor") as caught:
        _decode(e)
    assert caught.value.place == "CTA 0, agent 0, record 1"


@pytest.mark.parametrize("site", [TAKE, 9, 63])
def test_a_site_of_another_role_is_seen(encoder, table, site):
    e = encoder(table)
    e.anchor(0, 1_000_000)
    e.record(0, 0, site, e.cycle(1_000_100), iteration=0)
    e.anchor(1, 1_032_000)
    with pytest.raises(TraceFormatError, match=f"names site {site}, which does not belong to its role"):
        _decode(e)


def test_more_records_than_the_buffer_holds(encoder, table):
    e = encoder(table, capacity=3)
    e.anchor(0, 1_000_000)
    e.anchor(1, 1_032_000)
    e.headers[0]["counts"][0, 0] = 4
    with pytest.raises(TraceFormatError, match="4 records in a buffer of 3"):
        _decode(e)


def test_stamps_of_the_globaltimer(encoder, table):
    e = encoder(table, clock="globaltimer")
    base = (9 << 32) - 96  # its low half wraps between the records
    e.anchor(0, base)
    e.record(0, 0, WAIT, 0, ns=base + 64, iteration=0, parity=1)
    e.record(0, 0, GOT, 0, ns=base + 160, iteration=0, parity=1)
    e.anchor(1, base + 1024)
    events = _decode(e).events
    assert events.globaltimer_ns.tolist() == [64, 160]
    assert events.time_ps.tolist() == [64_000, 160_000]
    assert events.error_ps.tolist() == [64_000, 64_000]
    assert events.cycle.tolist() == [128, 320]
