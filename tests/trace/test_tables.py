"""Traces and results as tables: the same events, with names for what the file has as numbers."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pipesim.errors import UsageError
from pipesim.trace.files import read_trace
from pipesim.trace.schema import Trace
from tests.support.paths import ROOT, TRACES

STORED = TRACES / "h200" / "cluster_multicast-c2-cw2-ob8192-sb8192-s4-t3-w600-g2.parquet"


@pytest.mark.slow
def test_writing_a_trace_does_not_import_pandas(tmp_path: Path) -> None:
    text = (
        "import sys; from pipesim.trace.files import read_trace, write_trace\n"
        f"write_trace(read_trace({str(STORED)!r}), {str(tmp_path / 'a.parquet')!r})\n"
        "raise SystemExit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", text], cwd=ROOT, check=False).returncode == 0


def test_without_pandas_arrow_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = read_trace(STORED)
    trace.to_arrow()  # pyarrow looks for pandas once
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pandas is not installed") as error:
        trace.to_pandas()
    assert ".to_arrow()" in error.value.correction


def test_a_notebook_shows_a_trace_with_its_timeline_also_of_an_unknown_protocol() -> None:
    trace = read_trace(STORED)
    unknown = Trace(replace(trace.meta, protocol="<mine>"), trace.events)
    for each, name in ((trace, "cluster_multicast"), (unknown, "&lt;mine&gt;")):
        html = each._repr_html_()
        assert html.startswith("<div><pre")
        assert name in html
        assert html.count("data:image/svg+xml;base64,") == 1
