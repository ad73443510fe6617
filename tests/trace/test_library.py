"""Finding recordings: by exact configuration, with the nearest ones named where there is none."""

import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipesim.errors import EvidenceError, NoTraceError, TraceFormatError
from pipesim.trace import library
from pipesim.trace.files import write_trace
from pipesim.trace.library import (
    abbreviations,
    find_traces,
    foreign_files,
    stored_traces,
    trace_folder,
    trace_name,
)
from pipesim.trace.schema import Device
from tests.trace.conftest import ring_trace

H100, H200 = Device("NVIDIA H100 80GB HBM3"), Device("NVIDIA H200")


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """Three configurations on the H200, one of them on the H100 too, another protocol, and a simulation."""
    params = {"stages": 2, "tiles": 6, "tile_bytes": 16384}
    metas: list[dict[str, Any]] = [
        {"device": H200, "params": params},
        {"device": H100, "params": params},
        {"device": H200, "params": {**params, "stages": 4}},
        {"device": H200, "params": {**params, "stages": 8, "tiles": 64}},
        {"device": H200, "params": params, "protocol": "gemm"},
        {"device": H100, "params": {**params, "stages": 3}, "source": "simulation"},
    ]
    for changes in metas:
        trace = ring_trace(**changes)
        write_trace(trace, tmp_path / trace_name(trace.meta))
    (tmp_path / "README.md").write_text("not a trace")
    (tmp_path / "h200" / "notes.txt").write_text("not a trace either")
    return tmp_path


def names(paths: list[Path], folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in paths]


def test_every_way_to_differ_is_said(shelf: Path) -> None:
    with pytest.raises(NoTraceError) as caught:
        find_traces("ring", {"stages": 8, "tiles": 60, "lanes": 32}, 1, shelf)
    assert caught.value.fact == "no recorded trace of ring with lanes=32 stages=8 tiles=60 grid=1"
    assert (
        "h200/ring-s8-tb16384-t64-g4.parquet (no parameter lanes, tile_bytes 16384, which was not given, "
        "tiles 64 instead of 60, grid 4 instead of 1)"
    ) in caught.value.cause
    assert "pipesim capture ring -p lanes=32 -p stages=8 -p tiles=60; or name another" in caught.value.correction


def test_a_protocol_that_was_never_recorded(shelf: Path, tmp_path: Path) -> None:
    (empty := tmp_path / "empty").mkdir()
    causes = (shelf, "only these protocols were recorded: gemm, ring"), (empty, "the folder holds no recording")
    for folder, cause in causes:
        with pytest.raises(NoTraceError) as caught:
            find_traces("attention", {}, 1, folder)
        assert caught.value.cause == cause
        assert caught.value.correction.startswith("record it on a GPU: pipesim capture attention")


def test_a_run_with_a_fault_is_no_evidence_and_a_window_only_where_there_is_nothing_else(
    shelf: Path, tmp_path: Path
) -> None:
    params = {"stages": 2, "tiles": 6, "tile_bytes": 16384}
    changes: list[dict[str, Any]] = [{"fault": "no_acquire@3"}, {"window": (1, 3)}]
    for change in changes:
        trace = ring_trace(device=H200, params=params, **change)
        for folder in (shelf, tmp_path / "alone"):
            write_trace(trace, folder / trace_name(trace.meta))
    found = names(find_traces("ring", params, 4, shelf), shelf)
    assert [name for name in found if name.startswith("h200")] == ["h200/ring-s2-tb16384-t6-g4.parquet"]
    alone = tmp_path / "alone"
    assert names(find_traces("ring", params, 4, alone), alone) == ["h200/ring-s2-tb16384-t6-g4-window1..3.parquet"]
    assert names([trace.path for trace in stored_traces(alone)], alone) == [
        "h200/ring-s2-tb16384-t6-g4-no_acquire-at-3.parquet", "h200/ring-s2-tb16384-t6-g4-window1..3.parquet"
    ]  # fmt: skip


def test_a_parquet_file_of_another_program_is_named_apart(shelf: Path) -> None:
    stored = stored_traces(shelf)
    assert foreign_files(shelf) == ()
    strange = shelf / "h200" / "sales.parquet"
    pq.write_table(pq.read_table(stored[0].path).replace_schema_metadata(None), strange)
    assert stored_traces(shelf) == stored
    assert foreign_files(shelf) == (strange,)
    strange.write_bytes(strange.read_bytes()[:-100])  # a damaged one may have been a trace
    for search in (stored_traces, foreign_files):
        with pytest.raises(TraceFormatError):
            search(shelf)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="no such folder of traces"):
        find_traces("ring", {}, 1, tmp_path / "nowhere")


def test_the_folder_is_the_installed_one_else_the_checkouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "pipesim"
    package.mkdir()
    monkeypatch.setattr(library, "__file__", str(package / "trace" / "library.py"))
    with pytest.raises(EvidenceError, match="no recorded traces"):
        trace_folder()
    (tmp_path / "traces").mkdir()  # a stranger's, beside an installed package
    with pytest.raises(EvidenceError, match="no recorded traces"):
        trace_folder()
    (tmp_path / "pyproject.toml").touch()
    assert trace_folder() == tmp_path / "traces"
    (package / "trace" / "recorded").mkdir(parents=True)
    assert trace_folder() == package / "trace" / "recorded"


@pytest.mark.slow
@given(names=st.lists(st.from_regex(r"[a-g_]{1,5}", fullmatch=True), unique=True, max_size=12), seed=st.integers(0, 99))
def test_abbreviations_are_distinct_and_depend_on_the_names_alone(names: list[str], seed: int) -> None:
    short = abbreviations(names)
    assert set(short) == set(names)
    assert len({*short.values(), "g"}) == len(names) + ("g" not in names)
    random.Random(seed).shuffle(names)
    assert abbreviations(names) == short
