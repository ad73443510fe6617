"""What is recorded of every kernel: configurations that can be captured, each into a file of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hwkernels.capture import CaptureRequest
from hwkernels.capture.request import check_request
from hwkernels.capture.twin_subject import recorded_request
from hwkernels.twins import REGISTRY
from pipesim.errors import HardwareError
from pipesim.trace.files import read_trace
from pipesim.trace.library import trace_folder
from pipesim.trace.schema import Trace
from tools import record_traces

USUAL = "h100/producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet"


@pytest.mark.parametrize("name", REGISTRY)
def test_every_configuration_can_be_asked_for(name: str) -> None:
    for recorded in REGISTRY[name].recorded:
        check_request(recorded_request(name, recorded))


def test_each_is_captured_and_stored_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = read_trace(trace_folder() / USUAL)
    asked: list[CaptureRequest] = []

    def capture(request: CaptureRequest) -> Trace:
        asked.append(request)
        if request.fault is not None:
            raise HardwareError("no GPU today")
        meta = replace(
            good.meta, params=dict(request.params), grid=request.ctas, clock=request.clock,
            window=request.window, memory=request.memory,
        )  # fmt: skip
        return Trace(meta, good.events)

    monkeypatch.setattr(record_traces, "capture", capture)
    monkeypatch.setattr(
        record_traces, "write_trace", lambda trace, path, **_: (path.parent.mkdir(exist_ok=True), path.touch())
    )
    monkeypatch.setattr("sys.argv", ["record_traces.py", "--into", str(tmp_path), "--only", "'tile_bytes': 16384"])
    assert record_traces.main() == 1  # what failed is named, and the rest is recorded
    printed = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("FAILED") for line in printed) == sum(r.fault is not None for r in asked) == 1
    assert sum(line.startswith("recorded") for line in printed) == len(list(tmp_path.rglob("*.parquet")))
    assert (tmp_path / USUAL).exists()
    assert {request.params["tile_bytes"] for request in asked} == {16384}
