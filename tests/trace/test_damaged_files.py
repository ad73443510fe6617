"""Every broken file gives one clear TraceFormatError or reads equal: no exception of pyarrow, no other trace."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipesim.trace.files import METADATA_KEY, _encode, read_meta, read_trace
from pipesim.trace.metadata import _seal
from pipesim.trace.schema import COLUMNS, Trace
from tests.trace.conftest import refused


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        (b"", "the trace file is empty"),
        (b"cta,agent,cycle\n0,1,55\n", "this is not a trace: a trace is a Parquet file"),
        (b"\x89PNG\r\n\x1a\n" + bytes(64), "this is not a trace: a trace is a Parquet file"),
        (b"PAR1", "the trace file is truncated: it ends after 4 bytes"),
        (b"PAR1" + bytes(40), "the trace file is truncated: it ends after 44 bytes"),
        (b"PAR1\xff\xff\xff\x7fPAR1", "the trace file is damaged"),
    ],
)
def test_what_is_no_parquet_file(content: bytes, fact: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.parquet"
    path.write_bytes(content)
    assert refused(path).fact == fact
    assert refused(path, read_meta).fact == fact


def test_a_file_truncated_anywhere(ring: Trace, tmp_path: Path) -> None:
    data, path = _encode(ring, "x"), tmp_path / "cut.parquet"
    path.write_bytes(data)
    assert read_trace(path) == ring  # the twin: the whole file is fine
    for length in (*range(1, 40), *range(40, len(data) - 40, 23), *range(len(data) - 40, len(data))):
        path.write_bytes(data[:length])
        assert refused(path).fact == f"the trace file is truncated: it ends after {length} bytes"


@pytest.mark.slow
def test_changed_column_data_with_right_pages_is_caught_by_the_columns_checksum(rewritten: Callable[..., Path]) -> None:
    def faster(table: Any) -> Any:
        cycles = pa.array(table["cycle"].to_numpy() // 2)
        return table.set_column(COLUMNS.index("cycle"), pa.field("cycle", cycles.type), cycles)

    assert refused(rewritten(faster)).fact == "the trace's events do not match their checksum"


def test_a_newer_schema_asks_for_a_newer_pipesim(rewritten: Callable[..., Path]) -> None:
    def of_the_future(table: Any) -> Any:
        document = json.loads(table.schema.metadata[METADATA_KEY])
        document = {"schema": 7, "everything": "else", "differs": document["grid"]}
        return table.replace_schema_metadata({METADATA_KEY: json.dumps(document)})

    path = rewritten(of_the_future)
    for read in (read_trace, read_meta):
        error = refused(path, read)
        assert error.fact == "the trace has schema version 7; this pipesim reads up to version 5"
        assert error.correction == "pip install --upgrade pipesim"


@pytest.mark.parametrize("name", ["cta", "globaltimer_ns"])
def test_a_missing_column(name: str, rewritten: Callable[..., Path]) -> None:
    assert refused(rewritten(lambda table: table.drop_columns([name]))).fact == f"the trace has no column {name}"


@pytest.mark.parametrize("name", ["temperature", "cycle"])
def test_a_column_too_many(name: str, rewritten: Callable[..., Path]) -> None:
    fact = refused(rewritten(lambda table: table.append_column(name, table["cta"]))).fact
    assert fact == f"the trace has a column {name} that its schema version does not have, or has it twice"


def test_a_file_cut_short_says_how_many_records_are_missing(rewritten: Callable[..., Path]) -> None:
    fact = refused(rewritten(lambda table: table.slice(0, 75))).fact
    assert fact == "21 of 96 records are missing (CTA 3, agent mma/0: 18 written, 15 in the file)"


def test_rows_missing_where_no_header_counts_them(ring: Trace, tmp_path: Path) -> None:
    path = tmp_path / "short.parquet"
    path.write_bytes(_encode(Trace(replace(ring.meta, source="simulation", ctas=()), ring.events), "x"))
    pq.write_table(pq.read_table(path).slice(0, 90), path)
    assert refused(path).fact == "the trace says that it has 96 records, the file holds 90"


def test_edited_metadata_is_caught_by_its_seal(rewritten: Callable[..., Path], ring: Trace) -> None:
    def renamed(table: Any, *, seal: bool) -> Any:
        document = json.loads(table.schema.metadata[METADATA_KEY])
        document["device"]["name"] = "NVIDIA H200"
        if seal:
            document["sha256"] = _seal(document)
        return table.replace_schema_metadata({METADATA_KEY: json.dumps(document)})

    path = rewritten(lambda table: renamed(table, seal=False))
    assert refused(path).fact == "the trace's metadata does not match its own checksum"
    assert refused(path, read_meta).fact == "the trace's metadata does not match its own checksum"
    # The twin: sealed anew, the same document is a trace of another device.
    path = rewritten(lambda table: renamed(table, seal=True))
    assert read_trace(path).meta.device == replace(ring.meta.device, name="NVIDIA H200")
