"""A long trace keeps its columns as narrow as they are stored, and reads as any other."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipesim.conform.compare import compare
from pipesim.errors import TraceFormatError
from pipesim.targets import find
from pipesim.trace import consistency, files
from pipesim.trace.consistency import check_trace
from pipesim.trace.files import read_trace, write_trace
from pipesim.trace.schema import COLUMNS, PackedEvents, Trace
from tests.support.paths import TRACES

RECORDED = TRACES / "h200" / "attention_sm90-bn64-d128-f0-kb16-nc1-p1-qs1-s900-st4-g7.parquet"


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> tuple[Trace, Trace]:
    plain = read_trace(RECORDED)
    monkeypatch.setattr(files, "_MANY", 1_000)
    monkeypatch.setattr(consistency, "_AT_ONCE", 100)
    return plain, read_trace(RECORDED)


@pytest.mark.slow
def test_it_reads_as_any_other(both: tuple[Trace, Trace], tmp_path: Path) -> None:
    plain, packed = both
    assert isinstance(packed.events, PackedEvents)
    assert not isinstance(plain.events, PackedEvents)
    assert max(packed.events.packed[name].itemsize for name in ("cta", "agent", "site", "stage", "parity")) == 1
    assert packed.events == plain.events
    assert all(getattr(packed.events, name).dtype == np.int64 for name in COLUMNS)
    assert packed.events.select(slice(5, 9)) == plain.events.select(np.arange(5, 9))
    assert replace(packed.events, cycle=plain.events.cycle) == plain.events
    program = find(plain.meta.protocol).build(plain.meta.params)
    assert compare(program, packed) == compare(program, plain)
    for name, trace in (("plain", plain), ("packed", packed)):
        write_trace(trace, tmp_path / name)
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "packed").read_bytes()


def test_what_is_wrong_far_below_is_said_with_its_row(both: tuple[Trace, Trace]) -> None:
    plain, packed = both
    wrong = plain.events.site.copy()
    wrong[1_234] = 99
    for trace in (plain, packed):
        with pytest.raises(TraceFormatError, match="row 1234: site 99 is outside the table"):
            check_trace(Trace(trace.meta, replace(trace.events, site=wrong)), "k.parquet")
    fewer = np.delete(np.arange(len(plain.events)), 1_000)
    with pytest.raises(TraceFormatError, match="1 of 1300 records are missing"):
        check_trace(Trace(plain.meta, plain.events.select(fewer)), "k.parquet")
