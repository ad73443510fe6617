"""``recorder.cuh`` itself, on the CPU: with each encoding an agent leaves what the format says."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from hwkernels.records.encodings import Encoding
from hwkernels.source_recorder.by_position import read_full, read_positional
from hwkernels.source_recorder.description import streams
from hwkernels.twins.hopper.gemm_sm90 import GEMM_SM90
from hwkernels.twins.hopper.producer_consumer import PRODUCER_CONSUMER, defines
from pipesim.errors import TraceFormatError
from pipesim.targets import find
from tests.support.format2_streams import full, positional
from tests.support.recorder_on_cpu import Recorder, Say

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="the recorder is C++")
RING = {"stages": 2, "tiles": 5, "tile_bytes": 64, "consumer_warps": 1, "work": 0, "arrive_lanes": 1}
TABLE = PRODUCER_CONSUMER.table(RING)
CONSUMER = streams(find("producer_consumer").build(RING), TABLE)[0][1]
TAKE, GOT, BEGIN, END, ARRIVE = range(4, 9)
SITES = (TAKE, GOT, BEGIN, END, ARRIVE)


def lap(iteration, sites=SITES, parity=None):
    parity = iteration // 2 % 2 if parity is None else parity
    return [
        (Say.AT, iteration, iteration % 2, parity),
        *((Say.RECORD, site, int(site == ARRIVE)) for site in sites),
    ]


def joined(*scripts):
    return [say for script in scripts for say in script]


LAPS = [lap(iteration) for iteration in range(5)]


@pytest.fixture(scope="module")
def recorders(tmp_path_factory):
    """A recorder of the ring for each encoding."""
    folder = tmp_path_factory.mktemp("recorders")
    table, macros = PRODUCER_CONSUMER.table_file, defines(RING) | {"PIPESIM_ROOM": 6}
    return {e: Recorder(table, macros | {"PIPESIM_ENCODING": int(e)}, folder / e.name) for e in Encoding}


def test_a_ring_with_each_encoding(recorders):
    script = joined(*LAPS)
    tagged = recorders[Encoding.TAGGED].run(script)
    assert tagged[:, 0].tolist() == [10 * n for n in range(1, 26)]
    assert (recorders[Encoding.FULL].run(script) == full(tagged, TABLE)).all()
    words = recorders[Encoding.POSITIONAL].run(script)
    assert words.tolist() == positional(tagged, TABLE).tolist()
    assert len(words) == 25 + 5 + 1  # a clock of each record, a hash of each lap, one of all
    read = read_positional(words, CONSUMER, "here")
    assert read.clocks.tolist() == tagged[:, :1].tolist()
    assert read.columns["stage"].tolist() == [n % 2 for n in range(5) for _ in SITES]
    assert read.columns["iteration"].tolist() == [n for n in range(5) for _ in SITES]
    again = read_full(recorders[Encoding.FULL].run(script), CONSUMER, TABLE, "here")
    assert again.clocks.tolist() == read.clocks.tolist()
    assert {name: column.tolist() for name, column in again.columns.items()} == {
        name: column.tolist() for name, column in read.columns.items()
    }


@pytest.mark.parametrize(
    ("wrong", "records"),
    [
        (lap(2, (TAKE, GOT, END, BEGIN, ARRIVE)), "10 to 14"),  # in another order than its table
        (lap(2, (TAKE, GOT, BEGIN, ARRIVE)), "10 to 14"),  # one is missing
        (lap(2, (*SITES[:-1], END, ARRIVE)), "10 to 14"),  # one too many
        (lap(2, parity=0), "10 to 14"),
        ([(Say.AT, 2, 1, 1), *lap(2)[1:]], "10 to 14"),  # of another stage
    ],
)
def test_a_kernel_that_does_other_things_than_its_program_is_found(recorders, wrong, records):
    script = joined(*LAPS[:2], wrong, *LAPS[3:])
    with pytest.raises(TraceFormatError, match=f"not those of the program in its records {records}") as caught:
        read_positional(recorders[Encoding.POSITIONAL].run(script), CONSUMER, "CTA 0, agent 1")
    assert caught.value.place == "CTA 0, agent 1"
    assert "--encoding tagged" in caught.value.correction


def test_an_agent_that_stops_may_pass_further_records_without_a_branch(recorders):
    short = joined(*LAPS[:2], lap(2)[:2], [(Say.STOP,)])
    on = joined(short, lap(2)[2:], lap(3), lap(4))
    for recorder in recorders.values():
        assert (recorder.run(on) == recorder.run(short)).all()


def test_what_an_agent_records_after_its_end_has_room(recorders):
    """Positional words go on after it, and are no more than those of an agent that does not end before."""
    recorder, script = recorders[Encoding.POSITIONAL], joined(*LAPS)
    recorder.run(script)
    whole, found = recorder.stored, set()
    for at in range(1, len(script)):
        recorder.run([*script[:at], (Say.STOP,), *script[at:]])
        found.add(recorder.stored)
    assert found == {whole}


def test_a_buffer_that_is_too_small_is_noticed(tmp_path):
    macros = defines(RING) | {"PIPESIM_ENCODING": 2, "PIPESIM_ROOM": 6, "PIPESIM_CHECKED": 1}
    recorder = Recorder(PRODUCER_CONSUMER.table_file, macros, tmp_path / "checked")
    assert len(recorder.run(joined(*LAPS), capacity=64)) == 31
    words = recorder.run(joined(*LAPS), capacity=20)
    assert len(words) < 20
    with pytest.raises(TraceFormatError, match="not those of the program"):
        read_positional(words, CONSUMER, "here")


def test_a_kernel_that_looks_ahead_with_full_records(tmp_path):
    """The answer of each try decides whether a wait follows; both are followed through the program."""
    params = find("gemm_sm90").defaults | {"lookahead": 1, "tiles": 1, "k_iters": 3, "stages": 2}
    table = GEMM_SM90.table(params)
    number = {site.name: n for n, site in enumerate(table.sites)}
    try_, wait, got, expect, copy = (
        number[f"producer_{what}"] for what in ("try_empty", "wait_empty", "got_empty", "expect_full", "copy_full")
    )
    script = []
    for k, answer in enumerate((1, 0, 1)):
        stage, parity = k % 2, k // 2
        head = [(Say.AT, k, stage, parity)] if k == 0 else [(Say.SAY, k - 1, stage, parity)]
        script += [*head, (Say.RECORD, try_, 0), (Say.ANSWER, answer), (Say.AT, k, stage, parity)]
        script += [] if answer else [(Say.RECORD, wait, 0), (Say.RECORD, got, 0)]
        script += [(Say.RECORD, expect, 2), (Say.RECORD, copy, 0), (Say.RECORD, copy, 1)]
    macros = dict(GEMM_SM90.defines(params)) | {"PIPESIM_ROOM": GEMM_SM90.room, "PIPESIM_ENCODING": int(Encoding.FULL)}
    words = Recorder(GEMM_SM90.table_file, macros, tmp_path / "full").run(script)
    stream = streams(find("gemm_sm90").build(params), table)[0][0]
    read = read_full(words, stream, table, "here")
    tries = read.columns["site"] == try_
    assert read.columns["value"][tries].tolist() == [1, 0, 1]
    assert read.columns["parity"][tries].tolist() == [0, 0, 1]
    assert read.columns["stage"].tolist() == [0] * 4 + [1] * 6 + [0] * 4
    assert read.columns["site"].tolist() == [
        *(try_, expect, copy, copy),
        *(try_, wait, got, expect, copy, copy),
        *(try_, expect, copy, copy),
    ]
    lost = np.delete(words, 4, axis=0)
    with pytest.raises(TraceFormatError, match="has the running number 5"):
        read_full(lost, stream, table, "here")
