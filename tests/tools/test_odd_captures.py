"""Captures at odd parameters: what is drawn is legal, new and repeatable, and one that does not conform is said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hwkernels.capture import CaptureRequest
from hwkernels.capture.pipeline import compile_builds
from hwkernels.capture.plan import plan
from hwkernels.capture.request import check_request
from hwkernels.capture.twin_subject import recorded_request
from hwkernels.twins import REGISTRY
from hwkernels.twins.twin import Recorded
from pipesim.errors import ConfigurationError, HardwareError
from pipesim.targets import find
from pipesim.trace.files import read_trace
from pipesim.trace.library import trace_folder
from pipesim.trace.schema import Trace
from tools import odd_captures

USUAL = "h100/producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet"
COUNT = 2 * len(REGISTRY)


@pytest.fixture(scope="module")
def drawn() -> list[CaptureRequest]:
    return odd_captures.draw(COUNT, seed=12)


def test_every_kernel_is_drawn_in_turn(drawn: list[CaptureRequest]) -> None:
    assert [request.subject.name for request in drawn] == 2 * list(REGISTRY)


def test_what_is_drawn_is_legal_for_kernel_and_protocol(drawn: list[CaptureRequest]) -> None:
    for request in drawn:
        check_request(request)
        plan(request)
        program = find(request.subject.name).build(dict(request.params), grid=request.ctas)
        assert 0 < odd_captures.copied(program) <= odd_captures.MOST_BYTES
        assert sum(map(len, program.code)) <= odd_captures.MOST_OPERATIONS


def test_nothing_is_drawn_that_is_stored_or_twice(drawn: list[CaptureRequest]) -> None:
    configurations = [odd_captures.configuration(request) for request in drawn]
    assert len(set(configurations)) == COUNT
    assert not odd_captures.stored() & set(configurations)


def test_what_is_stored_is_known_from_the_traces_and_from_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    meta = read_trace(trace_folder() / USUAL).meta
    usual = (meta.protocol, tuple(sorted(meta.params.items())), meta.grid)
    assert usual in odd_captures.stored()
    monkeypatch.setattr(odd_captures, "stored_traces", lambda folder: ())
    assert usual in odd_captures.stored()
    monkeypatch.setattr(odd_captures, "REGISTRY", {})
    assert odd_captures.stored() == set()


def test_a_draw_can_be_repeated(drawn: list[CaptureRequest]) -> None:
    assert odd_captures.draw(3, seed=12) == drawn[:3]
    assert odd_captures.draw(3, seed=13) != drawn[:3]


def test_a_stored_configuration_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two guesses the first is stored: it is never drawn, and without a second there is an error."""
    known, other = find("gemm_sm90").defaults, find("gemm_sm90").defaults | {"tiles": 5}
    guesses = iter([dict(known), dict(other)])
    monkeypatch.setattr(odd_captures, "GRIDS", (1,))
    monkeypatch.setattr(odd_captures, "_guess", lambda name, rng: next(guesses, dict(known)))
    monkeypatch.setattr(odd_captures, "_TRIES", 3)
    assert odd_captures.draw(1, 0, ["gemm_sm90"])[0].params == other
    with pytest.raises(ConfigurationError, match="no configuration of gemm_sm90"):
        odd_captures.draw(1, 0, ["gemm_sm90"])


@pytest.mark.slow
@pytest.mark.parametrize("number", range(COUNT // 2))
def test_what_is_drawn_compiles(drawn: list[CaptureRequest], number: int) -> None:
    assert all(build.log == "" for build in compile_builds(drawn[number]).values())


def _run(monkeypatch: pytest.MonkeyPatch, folder: Path, captured: Trace | Exception) -> tuple[int, dict[str, object]]:
    """The exit code and the row of one capture, in place of which there is this."""

    def capture(request: CaptureRequest) -> Trace:
        if isinstance(captured, Exception):
            raise captured
        return captured

    usual = recorded_request("producer_consumer", Recorded())
    monkeypatch.setattr(odd_captures, "draw", lambda count, seed, kernels: [usual])
    monkeypatch.setattr(odd_captures, "compile_all", lambda requests, jobs: None)
    monkeypatch.setattr(odd_captures, "capture", capture)
    code = odd_captures.main(["--seed", "5", "--json", str(folder / "rows.json")])
    document = json.loads((folder / "rows.json").read_text())
    assert document["seed"] == 5
    return code, document["rows"][0]


def test_a_capture_that_conforms_is_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, row = _run(monkeypatch, tmp_path, read_trace(trace_folder() / USUAL))
    assert (code, row["agreement"], row["wrong"], row["events"]) == (0, "conforms", 0, 896)
    said = capsys.readouterr().out
    assert said.startswith("seed 5: 1 configurations")
    assert said.endswith("1 of 1 conform, 896 events\n")


def test_one_that_does_not_conform_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = read_trace(trace_folder() / USUAL)
    stage = good.events.stage.copy()
    stage[100] = (stage[100] + 1) % 4
    other = Trace(good.meta, replace(good.events, stage=stage))
    code, row = _run(monkeypatch, tmp_path, other)
    assert (code, row["agreement"]) == (1, "differs")
    assert row["reason"]
    code, row = _run(monkeypatch, tmp_path, Trace(replace(good.meta, wrong_tiles=3), good.events))
    assert (code, row["agreement"], row["wrong"]) == (1, "differs", 3)
    code, row = _run(monkeypatch, tmp_path, HardwareError("no usable GPU was found"))
    assert (code, row["agreement"], row["events"]) == (1, "failed", 0)
    assert "no usable GPU" in capsys.readouterr().out


def test_a_list_needs_no_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert odd_captures.main(["--seed", "3", "--count", "1", "--only", "gemm_sm90", "--list"]) == 0
    assert "gemm_sm90" in capsys.readouterr().out.splitlines()[1]
