"""Rules on trial: the kernels compile for each GPU that has them, and what a GPU answers becomes a file."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hwkernels.device.compile import compile_ptx
from hwkernels.device.launch import DeviceInfo
from hwkernels.trials import run
from hwkernels.trials.run import Trial, compile_trial, trials_of
from pipesim.answers.check import check
from pipesim.model.coverage import Assumption
from pipesim.model.finding import Verdict
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.values import Launch, Number, Parameter, Pointer
from pipesim.ptx.text.read import read_module
from pipesim.targets import target_of

INFO = DeviceInfo(0, "NVIDIA B200", 148, "10.0", "580.1", 232448, 233472)


def test_each_gpu_has_its_trials() -> None:
    hopper, blackwell = trials_of("9.0"), trials_of("10.0")
    assert Trial.WGMMA_FENCE in hopper
    assert {Trial.TENSOR_FENCES, Trial.TENSOR_LOADS, Trial.COMMITS, Trial.TENSOR_LANES} == set(blackwell) - set(hopper)
    assert Trial.EXIT_CHECK not in {*hopper, *blackwell}


@pytest.mark.sampled(1, 3)
@pytest.mark.parametrize("trial", list(Trial))
def test_the_kernels_compile(trial: Trial) -> None:
    archs = [arch for arch, has in (("sm_90a", trials_of("9.0")), ("sm_100a", trials_of("10.0"))) if trial in has]
    for arch in archs or ["sm_90a", "sm_100a"]:
        right, wrong = (compile_trial(trial, control=control, arch=arch) for control in (False, True))
        assert right.cubin != wrong.cubin or trial is Trial.EXIT_CHECK


@pytest.mark.sampled(1, 4)
@pytest.mark.parametrize(
    ("trial", "assumed"),
    [
        (Trial.PROXIES, Assumption.PROXIES),
        (Trial.EXIT, Assumption.EXIT),
        (Trial.EXITED_THREADS, Assumption.EXITED_THREADS),
        (Trial.TENSOR_FENCES, Assumption.TENSOR_FENCES),
        (Trial.TENSOR_LOADS, Assumption.TENSOR_LOADS),
        (Trial.TENSOR_LANES, Assumption.TENSOR_LANES),
    ],
)
def test_each_is_proved_with_the_assumption_that_is_on_trial(trial: Trial, assumed: Assumption) -> None:
    arch = "sm_90a" if trial in trials_of("9.0") else "sm_100a"
    threads = 256 if trial in (Trial.TENSOR_FENCES, Trial.TENSOR_LANES) else 128
    given = (Parameter("", Number("u32", 3)), Parameter("", Pointer()), Parameter("", Pointer()))
    launch = Launch("trial", (2, 1, 1), (threads, 1, 1), parameters=given)
    right, wrong = (
        check(target_of(extract(read_module(text, "trial.ptx"), launch).program), {}, quick=True)
        for text in (compile_ptx(run.SOURCE, {"TRIAL": int(trial), "CONTROL": n}, arch) for n in (0, 1))
    )
    assert (right.verdict, wrong.verdict) == (Verdict.PROVED, Verdict.REFUTED)
    others = {Assumption.TIME_OUTS, Assumption.BUFFERS}
    assert {each.kind for each in right.scope.assuming} - others == {assumed}


def test_what_was_tried_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def ran(line: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        name = line[line.index("--only") + 1]
        if name == "EXIT":
            return subprocess.CompletedProcess(line, 3, "", "the kernel trapped\n")
        if name == "LANES":
            raise subprocess.TimeoutExpired(line, 1)
        said = {"trial": name.lower(), "rule": {"tries": 9, "seen": 0}}
        return subprocess.CompletedProcess(line, 0, json.dumps(said), "")

    monkeypatch.setattr(run, "require_gpu", lambda **_: INFO)
    monkeypatch.setattr(subprocess, "run", ran)
    assert run.main(["--json", str(tmp_path / "sent.json")]) == 0
    found = {each["trial"]: each for each in json.loads((tmp_path / "sent.json").read_text())["trials"]}
    assert found["exit"]["error"].startswith("the kernel trapped")
    assert "timed out" in found["lanes"]["error"]
    assert found["tensor_fences"]["rule"] == {"tries": 9, "seen": 0}
    assert json.loads(capsys.readouterr().out)["format"] == "pipesim-trials"
