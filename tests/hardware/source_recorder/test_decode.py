import numpy as np
import pytest

from hwkernels.source_recorder.decode import DecodeContext, decode
from pipesim.errors import TraceFormatError

WAIT, GOT, EXPECT = range(3)  # the producer's sites
TAKE, TOOK, BEGIN = range(4, 7)  # the consumer's


def _decode(encoded, nbytes=(64,), **coding):
    return decode(encoded.headers, encoded.records, encoded.table, DecodeContext(encoded.clock, nbytes, **coding))


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
