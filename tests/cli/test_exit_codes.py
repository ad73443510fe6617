"""The five exit codes, each shown by every command that can end with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hwkernels.capture
from hwkernels.device import launch
from pipesim.trace.files import write_trace
from pipesim.trace.schema import Trace

Call = Callable[..., Any]
PC = "producer_consumer"


@pytest.mark.parametrize(
    ("code", "argv"),
    [
        (0, ["list"]),
        (2, ["list", "--nonsense"]),
        (0, ["show", PC]),
        (0, ["show", "ring.py:ring", "--json"]),
        (2, ["show", "nobody"]),
        (2, ["show", PC, "--rank", "1"]),
        (0, ["run", PC]),
        (0, ["run", "ring.py:ring"]),
        (1, ["run", "ring.py:ring", "-p", "arrivals=2"]),
        (2, ["run", "nobody"]),
        (3, ["run", PC, "--max-steps", "100"]),
        (0, ["verify", PC]),
        (0, ["verify", PC, "--no-hardware"]),
        (1, ["verify", PC, "--traces", "edited"]),
        (1, ["verify", "ring.py:ring", "-p", "arrivals=2", "--no-hardware"]),
        (1, ["verify", "ring.py:ring", "-p", "arrivals=2"]),
        (2, ["verify", PC, "-p", "stages=0"]),
        (3, ["verify", PC, "-p", "stages=5"]),
        (4, ["verify", PC, "--tolerance", "0"]),
        (1, ["diff", "edited/h100/producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet"]),
        (2, ["diff", "nothing.parquet"]),
        (3, ["diff", "ring.py"]),
        (3, ["capture", PC]),
        (2, ["capture", "ring.py:ring"]),
        (2, []),
        (2, ["prove", PC]),
        (0, ["--help"]),
        (0, ["--version"]),
    ],
)
def test_exit_code(call: Call, ring: str, refuted: Path, code: int, argv: list[str]) -> None:
    answer = call(*argv)
    assert (answer.code, answer.err if code == 0 else "") == (code, "")
    if code == 2:
        assert answer.out == ""
        assert answer.err.strip()


@pytest.mark.slow
def test_diff_agrees_and_capture_agrees_or_refutes(
    call: Call, recorded: Path, refuted: Path, good: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("diff", recorded).code == 0
    monkeypatch.setattr(launch, "require_gpu", lambda ordinal=0: None)
    for trace, code in ((good, 0), (Trace(replace(good.meta, wrong_tiles=1), good.events), 1)):
        monkeypatch.setattr(hwkernels.capture, "capture", lambda request, trace=trace: trace)
        assert call("capture", PC, "-o", f"{code}.parquet").code == code


class TestTolerance:
    """Only ``--tolerance`` makes a period decide anything."""

    def test_a_period_that_is_far_off_is_no_matter_without_it(self, call: Call, slow: Path) -> None:
        answer = call("diff", slow)
        assert answer.code == 0
        assert answer.verdict == (
            "✓ the recorded trace conforms to the protocol (NVIDIA H100 80GB HBM3); "
            "times: off by −49.4 % (period 1,099 simulated, 2,171 measured)"
        )

    def test_and_decides_with_it(self, call: Call, slow: Path) -> None:
        answer = call("diff", slow, "--tolerance", "40")
        assert answer.code == 4
        assert answer.verdict.startswith("✗ the simulated period is −")
        assert answer.verdict.endswith(" % off, outside 40 %")
        assert call("diff", slow, "--tolerance", "60%").code == 0

    def test_verify_names_the_device(self, call: Call, slow: Path) -> None:
        answer = call("verify", PC, "--traces", slow.parent, "--tolerance", "40")
        assert answer.code == 4
        assert answer.verdict.startswith("✗ NVIDIA H100 80GB HBM3: the simulated period is −")

    def test_the_bound_is_exact_and_not_rounded(self, call: Call, slow: Path) -> None:
        answer = call("diff", slow, "--json")
        (period,) = (f for f in answer.json["report"]["hardware"][0]["timing"]["figures"] if f["name"] == "period")
        off = 100 * abs(period["simulated"] - period["measured"]) / period["measured"]
        assert call("diff", slow, "--tolerance", repr(off)).code == 0
        assert call("diff", slow, "--tolerance", repr(off - 1e-9)).code == 4

    def test_without_a_measured_period_nothing_is_within_it(self, call: Call, good: Trace) -> None:
        write_trace(Trace(replace(good.meta, runs=()), good.events), "no_runs.parquet")
        assert call("diff", "no_runs.parquet").code == 0
        answer = call("diff", "no_runs.parquet", "--tolerance", "50")
        assert answer.code == 3
        assert answer.verdict == "? no period was measured, so the tolerance cannot be applied"

    @pytest.mark.slow
    def test_without_an_event_neither(self, call: Call) -> None:
        assert call("verify", PC, "-p", "tiles=0").code == 3
        assert call("verify", PC, "-p", "tiles=0", "--tolerance", "50").code == 3
        assert call("verify", PC, "-p", "tiles=0", "--no-hardware").code == 0

    def test_a_divergence_comes_first(self, call: Call, refuted: Path) -> None:
        answer = call("verify", PC, "--traces", refuted, "--tolerance", "0")
        assert answer.code == 1

    @pytest.mark.parametrize("text", ["x", "-1", "nan", "inf", ""])
    def test_what_is_no_percentage_is_refused(self, call: Call, recorded: Path, text: str) -> None:
        answer = call("diff", recorded, f"--tolerance={text}")
        assert answer.code == 2
        assert f"--tolerance: {text!r}: expected a percentage of 0 or more" in answer.err

    @pytest.fixture
    def slow(self, good: Trace, tmp_path: Path) -> Path:
        """The good recording of a chip whose every period was twice as long; the events are as they were."""
        runs = tuple(replace(r, period_millicycles=tuple(2 * p for p in r.period_millicycles)) for r in good.meta.runs)
        path = tmp_path / "slow" / "slow.parquet"
        write_trace(Trace(replace(good.meta, runs=runs), good.events), path)
        return path
