"""Recordings of format 2 as a launch leaves them: decoded to the events of tagged ones, and refused where damaged."""

import pytest

from hwkernels.records.encodings import Encoding, full_tag
from hwkernels.source_recorder.decode import DecodeContext, decode
from hwkernels.source_recorder.description import streams
from pipesim.errors import TraceFormatError
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.schema import COLUMNS
from tests.support.format2_streams import recode

PARAMS = {"stages": 2, "tiles": 6, "tile_bytes": 64, "consumer_warps": 1, "work": 0, "arrive_lanes": 1}
PROGRAM = find("producer_consumer").build(PARAMS)
BOTH = [Encoding.POSITIONAL, Encoding.FULL]
CONSUMER = 1


@pytest.fixture
def recorded(encoder, table):
    """Makes what a launch of two CTAs leaves, as the model simulates it."""

    def make(encoding):
        kept = encoder(table, ctas=2, capacity=64)
        trace = simulate(PROGRAM, load_profile("h200"), traced=True).trace
        numbers = {site.key: n for n, site in enumerate(table.sites)}
        e, sites = trace.events, trace.meta.sites
        for cta in range(2):
            kept.anchor(0, 1_000_000, cta)
            for row in range(len(e)):
                site = sites[int(e.site[row])]
                value = int(e.value[row]) if site.kind.name == "ARRIVE" else 0
                kept.record(
                    cta, int(e.agent[row]), numbers[site.key], kept.cycle(1_000_100) + int(e.cycle[row]),
                    iteration=int(e.iteration[row]), stage=int(e.stage[row]), parity=max(0, int(e.parity[row])),
                    value=value,
                )  # fmt: skip
            kept.anchor(1, 1_100_000, cta)
        recode(kept, [f"-DPIPESIM_ENCODING={int(encoding)}"])
        return kept

    return make


def decoded(kept, encoding):
    described = () if encoding is Encoding.TAGGED else streams(PROGRAM, kept.table)
    return decode(
        kept.headers, kept.records, kept.table, DecodeContext("clock", (64,), encoding=encoding, streams=described)
    )


def lose(kept, row):
    """A record of the consumer is not there."""
    words = kept.records[0, CONSUMER]
    words[row:-1] = words[row + 1 :].copy()
    kept.headers[0]["counts"][CONSUMER][0] -= 1


def swap(kept, row):
    words = kept.records[0, CONSUMER]
    words[[row, row + 1]] = words[[row + 1, row]]


@pytest.mark.parametrize("encoding", BOTH)
def test_the_events_are_those_of_the_tagged_records(recorded, encoding):
    tagged, found = (decoded(recorded(each), each) for each in (Encoding.TAGGED, encoding))
    for name in COLUMNS:
        assert getattr(found.events, name).tolist() == getattr(tagged.events, name).tolist(), name
    assert found.ctas == tagged.ctas  # the same counts: a hash is no record
    assert found.ctas[0].written == (24, 30)


@pytest.mark.parametrize(
    ("encoding", "damage", "row", "fact"),
    [
        (Encoding.POSITIONAL, lose, 8, "records 5 to 9"),
        (Encoding.POSITIONAL, lose, 0, "records 0 to 4"),
        (Encoding.POSITIONAL, lose, 4, "records 0 to 4"),  # the hash itself
        (Encoding.POSITIONAL, lose, 35, "records 28 to 29"),  # the last clock
        (Encoding.POSITIONAL, swap, 7, "later than the CTA's last anchor"),
        (Encoding.POSITIONAL, swap, 10, "records 5 to 9"),
        (Encoding.FULL, lose, 8, "has the running number 9"),
        (Encoding.FULL, swap, 7, "has the running number 8"),
    ],
)
def test_what_was_lost_or_moved_is_refused(recorded, encoding, damage, row, fact):
    kept = recorded(encoding)
    damage(kept, row)
    with pytest.raises(TraceFormatError, match=fact) as caught:
        decoded(kept, encoding)
    assert caught.value.place.startswith("CTA 0, agent 1")


def test_another_site_in_a_full_record_is_refused(recorded):
    kept = recorded(Encoding.FULL)
    kept.records[0, CONSUMER, 7, 1] = full_tag(7, 0, 7)  # work ends before it begins
    with pytest.raises(TraceFormatError, match="names site 7 where the program has site 6"):
        decoded(kept, Encoding.FULL)
