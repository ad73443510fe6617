"""``pipesim calibrate``: a profile that can be read again; what is held out stays unread; what cannot be fitted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from pipesim.answers import calibrate as answers
from pipesim.answers.calibrate import candidates, choose_inputs
from pipesim.errors import EvidenceError
from pipesim.timed.profile import load_profile
from pipesim.trace.files import read_meta, read_trace, write_trace
from pipesim.trace.library import trace_folder
from pipesim.trace.split import FILE, SplitPart, read_split

Call = Callable[..., Any]
RING = "producer_consumer-al1-cw1-s1-tb4096-t64-w0-g1.parquet"
DEEP = "producer_consumer-al1-cw1-s4-tb4096-t64-w0-g1.parquet"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    for name in (RING, DEEP):
        shutil.copy(trace_folder() / "h200" / name, tmp_path / "mine" / name)
    return tmp_path / "mine"


def test_a_profile_is_written_and_can_be_used(call: Call, mine: Path, tmp_path: Path) -> None:
    out = tmp_path / "ring.json"
    answer = call("calibrate", mine, "--values", "arrive.issue,copy.latency_loaded", "--out", out)
    assert answer.code == 0
    profile = load_profile(str(out))
    assert (profile.name, profile.device) == ("ring", "NVIDIA H200")
    assert abs(profile["arrive.issue"] - 106) < 25
    assert "arrive.issue" not in profile.assumed
    assert {"copy.latency_loaded", "copy.latency"} <= set(profile.assumed)
    assert json.loads(out.read_text(encoding="utf-8"))["inputs"] == [f"mine/{RING}", f"mine/{DEEP}"]
    assert "arrive.issue" in " ".join(answer.out.split())
    assert "assumed, nothing that was recorded depends on: " in " ".join(answer.out.split())
    assert call("run", "producer_consumer", "-p", "tiles=4", "--profile", out).code == 0
    assert call("calibrate", mine, "--out", out).code == 2  # it exists


def test_recordings_that_are_held_out_are_not_read(mine: Path) -> None:
    shutil.copy(trace_folder() / FILE, mine / FILE)
    split = read_split(mine / FILE)
    fit = [p.name for p in sorted(mine.glob("*.parquet")) if split.of_trace(read_meta(p)) is SplitPart.FIT]
    inputs = choose_inputs([mine])
    assert [path.name for _, path in inputs.files] == fit
    assert inputs.left_out == 2 - len(fit)
    assert len(choose_inputs([mine], split=False).files) == 2


def test_the_stored_traces_are_split_without_being_asked() -> None:
    split = read_split(trace_folder() / FILE)
    inputs = choose_inputs([trace_folder() / "h200"])
    assert inputs.left_out > 40
    assert {split.of_trace(read_meta(path)) for _, path in inputs.files} == {SplitPart.FIT}


def test_only_recordings_of_one_device_are_fitted(call: Call, mine: Path) -> None:
    other = read_trace(mine / DEEP)
    device = replace(other.meta.device, name="NVIDIA B200")
    write_trace(replace(other, meta=replace(other.meta, device=device)), mine / DEEP, force=True)
    answer = call("calibrate", mine)
    assert answer.code == 3
    assert "of several" in " ".join(answer.error)


def test_what_is_no_recording_is_an_error(call: Call, mine: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(EvidenceError, match="no recording"):
        choose_inputs([tmp_path / "empty"])
    whole = read_trace(mine / RING)
    write_trace(replace(whole, meta=replace(whole.meta, source="simulation")), tmp_path / "sim.parquet")
    assert call("calibrate", tmp_path / "sim.parquet").code == 3
    assert call("calibrate").code == 2
    answer = call("calibrate", mine, "--values", "work.isue")
    assert (answer.code, "no value work.isue" in " ".join(answer.error)) == (2, True)


def test_a_device_needs_a_gpu_and_no_recordings(call: Call, mine: Path) -> None:
    answer = call("calibrate", "--device")
    assert (answer.code, "no usable GPU" in answer.err) == (3, True)
    assert call("calibrate", mine, "--device").code == 2


def test_captures_are_proposed(call: Call, mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = list(takewhile(lambda each: each[0].startswith("pipesim capture producer_consumer"), candidates()))
    assert len(some) > 10
    wanted = [each for each in some if each[0].endswith(("tile_bytes=32768", "-p tiles=32"))]
    assert len(wanted) == 2
    monkeypatch.setattr(answers, "candidates", lambda: iter(wanted))
    answer = call("calibrate", mine / RING, "--values", "arrive.issue", "--propose", "--json")
    assert answer.code == 0
    report = answer.json["report"]
    assert report["proposals"]
    assert {each["label"] for each in report["proposals"]} <= {label for label, _ in wanted}
    assert "transfer.latency" in report["never"]
