"""The committed split: it is the rule's, names every recording, keeps a third of each kernel apart, and is captured."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from hwkernels.capture import CaptureRequest
from hwkernels.capture.request import check_request
from hwkernels.twins import REGISTRY
from pipesim.errors import HardwareError
from pipesim.trace.files import read_trace
from pipesim.trace.library import StoredTrace, stored_traces, trace_folder
from pipesim.trace.schema import Trace
from pipesim.trace.split import FILE, Split, SplitPart, read_split
from tools import split_captures, trace_split
from tools.planned_captures import LATER

USUAL = "h100/producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet"


@pytest.fixture(scope="module")
def split() -> Split:
    return read_split(trace_folder() / FILE)


@pytest.fixture(scope="module")
def stored() -> tuple[StoredTrace, ...]:
    return tuple(each for each in stored_traces(trace_folder()) if each.meta.source == "hardware")


def test_the_file_has_the_rule_that_the_tool_writes(split: Split) -> None:
    assert split.rule == trace_split.rule()


def test_every_recording_of_a_kernel_is_listed(split: Split, stored: tuple[StoredTrace, ...]) -> None:
    found = {split.rule.configuration(t.meta.protocol, t.meta.params, t.meta.grid) for t in stored}
    assert found - {configuration for configuration, _ in split.listed} == set()


@pytest.mark.parametrize("kernel", REGISTRY)
def test_a_third_of_each_kernel_is_held_out_and_about_half_of_that_is_sealed(
    kernel: str, split: Split, stored: tuple[StoredTrace, ...]
) -> None:
    mine = {configuration: part for configuration, part in split.listed if configuration.kernel == kernel}
    parts = Counter(part for configuration, part in mine.items() if configuration not in split.drawn)
    held = parts[SplitPart.HELD_OUT] + parts[SplitPart.SEALED]
    assert trace_split.is_share(held, sum(parts.values()))
    assert abs(parts[SplitPart.HELD_OUT] - parts[SplitPart.SEALED]) <= max(2, held // 6)
    for number, (_, wanted) in LATER.items():
        drawn = [part for configuration, part in mine.items() if split.drawn.get(configuration) == number]
        assert Counter(part is SplitPart.FIT for part in drawn) == Counter(wanted)
    already = {
        split.rule.configuration(kernel, t.meta.params, t.meta.grid) for t in stored if t.meta.protocol == kernel
    }
    assert 3 * sum(split.rule.part(each) is not SplitPart.FIT for each in already) >= len(already)


@pytest.mark.parametrize("kernel", REGISTRY)
def test_whole_values_are_held_out_and_occur(kernel: str, split: Split) -> None:
    for name, values in split.rule.values[kernel].items():
        for value in values:
            having = [part for c, part in split.listed if c.kernel == kernel and dict(c.params)[name] == value]
            assert having, (name, value)
            assert SplitPart.FIT not in having


def test_every_configuration_can_be_captured(split: Split) -> None:
    planned = [configuration for configuration, _ in split.listed][::7]
    for request in split_captures.requests_of(planned):
        check_request(request)
        assert split.rule.configuration(request.subject.name, request.params, request.ctas) in planned


def test_what_is_missing_is_captured_and_then_no_longer_missing(
    split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(split_captures.missing(split, tmp_path, "h100")) == len(split.listed)
    some = split_captures.missing(split, trace_folder(), "h100")[:3]
    good = read_trace(trace_folder() / USUAL)

    def capture(request: CaptureRequest) -> Trace:
        if request.params == requests[1].params:
            raise HardwareError("no GPU today")
        meta = replace(good.meta, protocol=request.subject.name, params=dict(request.params), grid=request.ctas)
        return Trace(meta, good.events)

    requests = split_captures.requests_of(some)
    monkeypatch.setattr(split_captures, "capture", capture)
    monkeypatch.setattr(split_captures, "_compiled", id)  # what another process is given must have a name there
    assert split_captures.capture_all(requests, tmp_path, jobs=1) == 1
    assert "no GPU today" in capsys.readouterr().out
    missing = split_captures.missing(split, tmp_path, "h100")
    assert [some[1] in missing, some[0] in missing, some[2] in missing] == [True, False, False]
    assert len(missing) == len(split.listed) - 2
    assert some[0] in split_captures.missing(split, tmp_path, "h200")  # of another device


def test_another_folder_gets_only_what_the_stored_traces_lack(
    split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(split_captures, "capture_all", lambda requests, folder, jobs: asked.append(len(requests)) or 0)
    assert split_captures.main(["--device", "h200", "--into", str(tmp_path)]) == 0
    assert asked == [len(split_captures.missing(split, trace_folder(), "h200"))]


def test_the_list_needs_no_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert split_captures.main(["--list", "--device", "h100", "--only", "attention_sm90_fused"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 20
    assert {line.split("attention")[0].strip() for line in lines} == {"fit", "held out", "sealed"}
