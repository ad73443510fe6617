"""Traces and results as tables: the same events, with names for what the file has as numbers."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import pipesim
from pipesim.errors import UsageError
from pipesim.trace.files import read_trace
from pipesim.trace.schema import Trace
from tests.support.paths import EXAMPLES, ROOT, TRACES

STORED = TRACES / "h200" / "cluster_multicast-c2-cw2-ob8192-sb8192-s4-t3-w600-g2.parquet"
FORGETS = str(EXAMPLES / "ring_forgets.py") + ":ring"


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


@pytest.mark.slow
def test_results_list_what_they_found() -> None:
    found = pipesim.check(FORGETS, stages=2)
    (finding,) = found.to_arrow().to_pylist()
    assert (finding["kind"], finding["line"]) == ("deadlock", found.findings[0].line)
    assert finding["replay"] == found.findings[0].counterexample.replay
    assert found.findings[0].to_arrow().to_pylist() == [finding]
    steps = found.findings[0].counterexample.to_arrow().to_pylist()
    assert [step["number"] for step in steps] == [step.number for step in found.findings[0].counterexample.steps]
    right = pipesim.check("producer_consumer", tiles=3)
    assert right.to_arrow().to_pylist() == []
    assert right.to_arrow().column_names == found.to_arrow().column_names
    assert pipesim.show("producer_consumer").to_arrow().column_names == ["text"]


@pytest.mark.slow
def test_runs_list_their_events_and_a_verification_its_traces() -> None:
    simulated = pipesim.simulate("producer_consumer", tiles=3)
    assert simulated.to_arrow() == simulated.trace.to_arrow()
    compared = pipesim.compare(str(STORED))
    assert compared.to_arrow() == compared.trace.to_arrow()
    verified = pipesim.verify("producer_consumer", hardware="recorded", tiles=5)
    rows = verified.to_arrow().to_pylist()
    assert [row["device"] for row in rows] == [each.device for each in verified.hardware]


def test_a_notebook_shows_a_trace_with_its_timeline_also_of_an_unknown_protocol() -> None:
    trace = read_trace(STORED)
    unknown = Trace(replace(trace.meta, protocol="<mine>"), trace.events)
    for each, name in ((trace, "cluster_multicast"), (unknown, "&lt;mine&gt;")):
        html = each._repr_html_()
        assert html.startswith("<div><pre")
        assert name in html
        assert html.count("data:image/svg+xml;base64,") == 1
