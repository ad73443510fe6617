"""The benchmark of the proof runs, and says so when a case is not proved. No time is asserted."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from pipesim.model.finding import Verdict

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "bench_prove.py"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_prove", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bench_prove", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "peak_megabytes", lambda *_: (20.0, 28.5))
    return module


def test_it_runs_at_tiny_sizes(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main(["--divide", "512", "--rounds", "1"]) == 0
    out = capsys.readouterr().out
    for case in tool.CASES:
        line = next(line for line in out.splitlines() if line.startswith(f"{case.what:22}"))
        assert line.split(f"{case.target:.1f} s")[1].split()[-1] == "8.5"
    assert "NOT PROVED" not in out
    for said in ("plain (yardstick)", "reduced, in plain searches", "any number", "SPIN"):
        assert said in out


def test_a_case_that_is_not_proved_is_told(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuted(*of: object) -> object:
        return replace(measured(*of), verdict=Verdict.REFUTED)

    measured = tool.verdict
    monkeypatch.setattr(tool, "verdict", refuted)
    monkeypatch.setattr(tool, "CASES", tool.CASES[:1])
    monkeypatch.setattr(tool, "command", lambda *_: 12.5)
    assert not tool.verdicts(4096, 1, judged=True)
    out = capsys.readouterr().out
    assert "NOT PROVED: refuted" in out
    assert "12.500 s" in out


def test_the_exponent_of_a_power(tool: ModuleType) -> None:
    sizes = [10, 20, 40, 80]
    assert tool.exponent(sizes, [3e-4 * size for size in sizes]) == pytest.approx(1)
    assert tool.exponent(sizes, [size**2 for size in sizes]) == pytest.approx(2)


def test_peak_memory_is_that_of_another_process() -> None:
    spec = importlib.util.spec_from_file_location("bench_prove_memory", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_prove_memory"] = module
    spec.loader.exec_module(module)
    del sys.modules["bench_prove_memory"]
    bare, peak = module.peak_megabytes("producer_consumer", {"tiles": 200})
    assert 5 < bare < peak < bare + 100
