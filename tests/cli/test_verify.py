"""``pipesim verify``: which evidence it takes, and what it says with it, against it and without it."""

import shutil
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hwkernels.capture import CaptureRequest, TwinSubject
from pipesim.answers.progress import Stage
from pipesim.answers.views.check import CheckStep
from pipesim.cli.output import TerminalProgress
from pipesim.trace.library import trace_folder
from tests.support.fixture_types import Call

PC = "producer_consumer"
H100 = "NVIDIA H100 80GB HBM3"
SIMULATED = "proved for every schedule; the simulation finishes without a finding"
ORDER = f"✓ {SIMULATED}; the order of events agrees with the hardware"
WITHIN = "; times: within the profile's stated error (+1.2 %: period 1,099 simulated, 1,086 measured)"


class TestInterrupt:
    """Ctrl-C after the verdict ends the work, and what is known is printed."""

    def at(self, monkeypatch: pytest.MonkeyPatch, last: object) -> None:
        def step(self: TerminalProgress, protocol: str, step: CheckStep) -> AbstractContextManager[Any]:
            if step is last:
                raise KeyboardInterrupt
            return nullcontext(lambda done, of: None)

        def doing(self: TerminalProgress, stage: Stage, *names: str) -> AbstractContextManager[None]:
            if stage is last:
                raise KeyboardInterrupt
            return nullcontext()

        monkeypatch.setattr(TerminalProgress, "check_step", step)
        monkeypatch.setattr(TerminalProgress, "stage", doing)

    def test_after_the_verdict(self, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at(monkeypatch, CheckStep.SIZES)
        answer = call("verify", PC)
        assert (answer.code, answer.err) == (3, "")
        assert "✓ proved for every schedule" in answer.out
        assert "left out     other sizes: interrupted" in answer.out
        proved = SIMULATED.partition("; the simulation")[0]
        assert answer.verdict == f"? {proved}; interrupted before the simulation"

    def test_what_is_wrong_stays_wrong(self, call: Call, ring: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at(monkeypatch, CheckStep.SCHEDULE)
        answer = call("verify", ring, "-p", "arrivals=3", "--no-hardware")
        assert answer.code == 1
        assert answer.verdict == "✗ the protocol fails in the schedule above"

    def test_before_the_verdict_nothing_is_known(self, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at(monkeypatch, CheckStep.VERDICT)
        answer = call("verify", PC)
        assert (answer.code, answer.out, answer.err) == (130, "", "pipesim: interrupted\n")


class TestNothingToCompareWith:
    """The simulation is reported all the same; the verdict is unknown, never that all is well."""

    @pytest.mark.slow
    def test_no_recording_of_these_parameters(self, call: Call) -> None:
        answer = call("verify", PC, "-p", "stages=5")
        assert answer.code == 3
        assert "simulation   profile h100" in answer.out
        assert answer.verdict == f"? {SIMULATED}, but there is nothing to compare it with"
        lines = answer.error
        assert lines[0].startswith("pipesim: no recorded trace of producer_consumer with arrive_lanes=1 ")
        assert "stages=5" in lines[0]
        assert "stages 4 instead of 5" in lines[2]  # the nearest
        assert lines[3].startswith("  try: record it on a GPU: pipesim capture producer_consumer -p arrive_lanes=1 ")

    @pytest.mark.slow
    def test_a_protocol_without_a_kernel_is_not_told_to_capture(self, call: Call, ring: str) -> None:
        answer = call("verify", ring)
        assert answer.code == 3
        assert answer.verdict == f"? {SIMULATED}, but there is nothing to compare it with"
        assert "pipesim capture" not in answer.err
        cause = (
            "only these protocols were recorded: attention_sm90, attention_sm90_fused, cluster_multicast, "
            "epilogue_residual, gemm_sm90, persistent_scheduler, producer_consumer; there is no CUDA kernel of ring"
        )
        assert answer.error[2:] == [
            f"  probable cause: {cause}",
            "  try: name a folder with its traces (--traces FOLDER), or do not compare with hardware (--no-hardware)",
        ]

    @pytest.mark.slow
    def test_parquet_files_of_other_programs_are_left_out_and_named(self, call: Call, recorded: Path) -> None:
        Path("mine/deep/er").mkdir(parents=True)
        shutil.copy(recorded, "mine/deep")
        alone = call("verify", PC, "--traces", "mine")
        assert (alone.code, alone.err) == (0, "")
        strange = pq.read_table(recorded).replace_schema_metadata(None)
        pq.write_table(strange, "mine/deep/er/sales.parquet")
        answer = call("verify", PC, "--traces", "mine")
        assert (answer.code, answer.out) == (0, alone.out)
        assert answer.err == (
            "pipesim: note: left out, a Parquet file that is not a trace: mine/deep/er/sales.parquet\n"
        )
        for name in "abcd":
            pq.write_table(strange, f"mine/{name}.parquet")
        assert call("verify", PC, "--traces", "mine").err == (
            "pipesim: note: left out, Parquet files that are not traces: "
            "mine/a.parquet, mine/b.parquet, mine/c.parquet and 2 more\n"
        )

    @pytest.mark.slow
    def test_a_damaged_recording_is_not_passed_over(self, call: Call, recorded: Path) -> None:
        Path("mine").mkdir()
        shutil.copy(recorded, "mine")
        assert call("verify", PC, "--traces", "mine").code == 0
        Path("mine/other.parquet").write_bytes(recorded.read_bytes()[:-100])
        answer = call("verify", PC, "--traces", "mine")
        assert answer.code == 3
        assert answer.verdict == f"? {SIMULATED}, but the recorded evidence cannot be used"
        assert answer.err.startswith("pipesim: the trace file is truncated")
        assert "  at: mine/other.parquet\n" in answer.err


class TestFreshTrace:
    """With a GPU (here: one that gives back a recording) the fresh trace is the evidence, unless told otherwise."""

    @pytest.mark.slow
    def test_it_is_used_and_says_so(self, call: Call, gpu: list[CaptureRequest]) -> None:
        answer = call("verify", PC)
        assert answer.code == 0
        assert "captured now" in answer.out
        assert answer.verdict == f"{ORDER} ({H100}){WITHIN}"
        params = {"stages": 4, "tiles": 64, "tile_bytes": 16384, "consumer_warps": 2, "work": 600, "arrive_lanes": 1}
        assert gpu == [CaptureRequest(TwinSubject("producer_consumer"), params)]

    @pytest.mark.sampled(0, 1)
    @pytest.mark.parametrize("words", [("--recorded",), ("--traces", str(trace_folder())), ("--no-hardware",)])
    def test_not_if_told_otherwise(self, call: Call, gpu: list[CaptureRequest], words: tuple[str, ...]) -> None:
        answer = call("verify", PC, *words)
        assert answer.code == 0
        assert "captured now" not in answer.out
        assert gpu == []
