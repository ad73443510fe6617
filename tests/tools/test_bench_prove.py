"""The benchmark of the proof runs, and says so when a case is not proved. No time is asserted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipesim.model.finding import Verdict
from tools import bench_prove as tool


@pytest.fixture
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The peak memory of another process is made up."""
    monkeypatch.setattr(tool, "peak_megabytes", lambda *_: (20.0, 28.5))


@pytest.mark.slow
@pytest.mark.usefixtures("no_process")
def test_it_runs_at_tiny_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main(["--divide", "512", "--rounds", "1"]) == 0
    out = capsys.readouterr().out
    for case in tool.CASES:
        line = next(line for line in out.splitlines() if line.startswith(f"{case.what:22}"))
        assert line.split(f"{case.target:.1f} s")[1].split()[-1] == "8.5"
    assert "NOT PROVED" not in out
    for said in ("plain (yardstick)", "nine warps empty_count=9", "reduced, in plain searches"):
        assert said in out


@pytest.mark.usefixtures("no_process")
def test_a_case_that_is_not_proved_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuted(*of: Any) -> object:
        return replace(measured(*of), verdict=Verdict.REFUTED)

    measured = tool.verdict
    monkeypatch.setattr(tool, "verdict", refuted)
    monkeypatch.setattr(tool, "CASES", tool.CASES[:1])
    assert not tool.verdicts(4096, 1)
    out = capsys.readouterr().out
    assert "NOT PROVED: refuted" in out


def test_the_exponent_of_a_power() -> None:
    sizes = [10, 20, 40, 80]
    assert tool.exponent(sizes, [3e-4 * size for size in sizes]) == pytest.approx(1)
    assert tool.exponent(sizes, [size**2 for size in sizes]) == pytest.approx(2)


@pytest.mark.slow
def test_peak_memory_is_that_of_another_process() -> None:
    bare, peak = tool.peak_megabytes("producer_consumer", {"tiles": 200})
    assert 5 < bare < peak < bare + 100
