"""``pipesim calibrate``: a profile that can be read again; what is held out stays unread; what cannot be fitted."""

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pipesim.answers import calibrate as answers
from pipesim.answers.calibrate import FitWorkers
from pipesim.answers.calibrate_inputs import choose_inputs
from pipesim.answers.views.calibrate import CalibrationReport, ResidualRow
from pipesim.conform.fit.observation import Vector
from pipesim.errors import EvidenceError
from pipesim.process.limits import Limit, LimitReachedError
from pipesim.report.pages.protocols.calibrate import calibration_lines
from pipesim.timed.profile import Profile, load_profile
from pipesim.trace.files import read_meta, read_trace, write_trace
from pipesim.trace.library import trace_folder
from pipesim.trace.schema import INTERPRETED
from pipesim.trace.split import FILE, SplitPart, read_split
from tests.support.fixture_types import Call

RING = "producer_consumer-al1-cw1-s1-tb4096-t64-w0-g1.parquet"
DEEP = "producer_consumer-al1-cw1-s4-tb4096-t64-w0-g1.parquet"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    for name in (RING, DEEP):
        shutil.copy(trace_folder() / "h200" / name, tmp_path / "mine" / name)
    return tmp_path / "mine"


@pytest.mark.slow
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
    assert answer.out.index("error of") < answer.out.index("arrive.issue") < answer.out.index("assumed")
    assert len(answer.out.splitlines()) < 30
    assert call("run", "producer_consumer", "-p", "tiles=4", "--profile", out).code == 0
    assert call("calibrate", mine, "--out", out).code == 2  # it exists


@pytest.mark.slow
def test_scipy_is_needed_to_fit_a_profile_and_for_nothing_else(
    call: Call, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("scipy", "scipy.optimize", "scipy.stats"):
        monkeypatch.setitem(sys.modules, module, None)
    answer = call("calibrate", mine)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        "pipesim: a latency profile is fitted with the package scipy, which is not installed\n"
        f"  at: {sys.prefix}\n"
        "  probable cause: it is an extra, which `pipesim calibrate` alone needs\n"
        "  try: pip install 'pipesim[calibrate]'\n"
    )
    kernel = trace_folder() / "h200" / "ptx" / "triton-gemm_tma_fp8"
    for words in (
        ("run", "producer_consumer", "-p", "tiles=4"),
        ("check", "producer_consumer", "-p", "tiles=4"),
        ("diff", mine / RING),
        ("calibrate", kernel.with_suffix(".parquet"), "--kernel", kernel.with_suffix(".ptx")),
    ):
        assert call(*words).code == 0, words


def test_recordings_that_are_held_out_are_not_read(mine: Path) -> None:
    shutil.copy(trace_folder() / FILE, mine / FILE)
    split = read_split(mine / FILE)
    fit = [p.name for p in sorted(mine.glob("*.parquet")) if split.part_of_trace(read_meta(p)) is SplitPart.FIT]
    inputs = choose_inputs([mine])
    assert [each.path.name for each in inputs.files] == fit
    assert inputs.left_out == 2 - len(fit)
    assert len(choose_inputs([mine], split=False).files) == 2


class EndedWorkers(FitWorkers):
    """The time limit is reached after some batches of simulations."""

    batches = 4

    def __call__(self, asked: Sequence[tuple[int, Profile]]) -> list[Vector]:
        self.batches -= 1
        if self.batches < 0:
            raise LimitReachedError(Limit.TIME, 5)
        return super().__call__(asked)


@pytest.mark.slow
def test_at_the_time_limit_the_best_so_far_is_the_answer(
    call: Call, mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "FitWorkers", EndedWorkers)
    out = tmp_path / "ended.json"
    answer = call("calibrate", mine, "--values", "arrive.issue,copy.issue", "--out", out)
    assert answer.code == 0
    said = " ".join(answer.out.split())
    assert "the time limit of 5 s was reached: the values are the best so far" in said
    assert "error of" in said
    assert load_profile(str(out)).device == "NVIDIA H200"
    answer = call("calibrate", mine, "--values", "arrive.issue,copy.issue", "--propose")
    assert "captures that would determine more: unknown" in " ".join(answer.out.split())
    monkeypatch.setattr(EndedWorkers, "batches", 0)
    answer = call("calibrate", mine, "--values", "arrive.issue")
    assert (answer.code, "unknown: the time limit of 5 s was reached" in answer.err) == (3, True)


def test_larger_errors_than_before_are_a_warning() -> None:
    rows = (ResidualRow("steady period", 3, 10, 20, 11, 12), ResidualRow("wait", 3, 10, 20, 9, 30))
    report = CalibrationReport("mine", "NVIDIA H200", "h200", ("a",), 0, (), rows)
    said = " ".join(" ".join(calibration_lines(report, 100)).split())
    assert "warning: larger errors than before, steady period." in said
    better = replace(report, residuals=rows[1:])
    assert "warning" not in " ".join(calibration_lines(better, 100))


def test_only_recordings_of_one_device_are_fitted(call: Call, mine: Path) -> None:
    other = read_trace(mine / DEEP)
    device = replace(other.meta.device, name="NVIDIA B200")
    write_trace(replace(other, meta=replace(other.meta, device=device)), mine / DEEP, force=True)
    answer = call("calibrate", mine)
    assert answer.code == 3
    assert "of several" in " ".join(answer.error)


@pytest.mark.slow
def test_what_is_no_recording_is_an_error(call: Call, mine: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(EvidenceError, match="no recording"):
        choose_inputs([tmp_path / "empty"])
    whole = read_trace(mine / RING)
    write_trace(replace(whole, meta=replace(whole.meta, source="simulation")), tmp_path / "sim.parquet")
    assert call("calibrate", tmp_path / "sim.parquet").code == 3
    interpreted = replace(whole.meta, extra={**whole.meta.extra, INTERPRETED: True})
    write_trace(replace(whole, meta=interpreted), tmp_path / "interpreted.parquet")
    assert "it is simulated or interpreted" in call("calibrate", tmp_path / "interpreted.parquet").err
    assert call("calibrate").code == 2
    answer = call("calibrate", mine, "--values", "work.isue")
    assert (answer.code, "no value work.isue" in " ".join(answer.error)) == (2, True)
