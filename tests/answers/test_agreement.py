"""One agreement of a recorded hang in every command, and of its twin, which the model does not follow."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from hwkernels.device import launch
from pipesim.answers import verify as verify_parts
from pipesim.answers.check import check
from pipesim.answers.checking.stepped import SteppedCheck
from pipesim.cli.main import main
from pipesim.errors import HardwareError
from pipesim.model.ending import Ending
from pipesim.trace.files import read_trace, write_trace
from pipesim.trace.library import trace_folder
from pipesim.trace.schema import Trace

PC = "producer_consumer"
GOOD = "h100/producer_consumer-al1-cw2-s4-tb16384-t5-w600-g1.parquet"
HUNG = [
    path.relative_to(trace_folder()).as_posix()
    for path in sorted(trace_folder().glob("*/epilogue_residual-*-fto0-*.parquet"))
    if read_trace(path).meta.status == "deadline"
]
IDLE = """
from pipesim import Protocol


def idle():
    p = Protocol("idle")

    @p.role("only")
    def only(w):
        w.work(1)

    return p
"""
SAID = "the recorded run hung, and the model hangs in the same state"


@dataclass(frozen=True)
class Said:
    """What a command ended with."""

    code: int
    out: str

    @property
    def flat(self) -> str:
        return " ".join(self.out.split())


Call = Callable[..., Said]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """A command line in a folder of its own, on a machine without a GPU."""

    def nothing(ordinal: int = 0) -> None:
        raise HardwareError("there is no GPU")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    Path("idle.py").write_text(IDLE)  # beside another protocol one is verified as one of several
    monkeypatch.setattr(launch, "require_gpu", nothing)

    def call(*words: object) -> Said:
        code = main([str(word) for word in words])
        return Said(code, capsys.readouterr().out)

    return call


def parameters(trace: Trace) -> list[str]:
    return [word for name, value in trace.meta.params.items() for word in ("-p", f"{name}={value}")]


def agreement_of_one(answer: Said) -> str:
    (block,) = json.loads(answer.out)["report"]["hardware"]
    return str(block["agreement"])


def agreement_of_several(answer: Said, name: str) -> str:
    (line,) = json.loads(answer.out)["protocols"][name]["report"]["traces"]
    return str(line["agreement"])


@pytest.mark.sampled(0, 2)
@pytest.mark.parametrize("name", HUNG)
def test_diff_of_a_hang_that_the_model_follows(call: Call, name: str) -> None:
    answer = call("diff", trace_folder() / name)
    assert answer.code == 0
    assert answer.flat.endswith(f"✓ {SAID} ({read_trace(trace_folder() / name).meta.device.name})")
    assert "conform up to the hang, and the model hangs in the same state" in answer.flat
    assert "the kernel did not finish" in answer.flat
    assert "✓ the kernel did not finish" not in answer.flat
    assert "✗" not in answer.out


@pytest.mark.slow
def test_a_hang_agrees_in_every_command(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own parameters are refuted, so ``verify`` of them says so; the hardware agrees with that all the same."""
    trace = read_trace(trace_folder() / HUNG[0])
    Path("mine").mkdir()
    shutil.copy(trace_folder() / HUNG[0], "mine")
    words = ("epilogue_residual", *parameters(trace), "--traces", "mine")
    monkeypatch.setattr(SteppedCheck, "details", lambda _: None)  # what explains the refutation takes its time
    alone, diff = call("verify", *words, "--json"), call("diff", trace_folder() / HUNG[0], "--json")
    monkeypatch.setattr(verify_parts, "check", partial(check, most_ranges=0))  # of no trip count: it takes its time
    several = call("verify", "epilogue_residual", "idle.py:idle", "--traces", "mine", "--jobs", "1", "--json")
    assert {agreement_of_one(alone), agreement_of_one(diff)} == {"hangs_too"}
    assert agreement_of_several(several, "epilogue_residual") == "hangs_too"
    assert (alone.code, diff.code) == (1, 0)
    report = json.loads(alone.out)["report"]
    assert report["proof"]["verdict"] == "refuted"
    assert report["verdict"] == f"the simulation ends in a deadlock; {SAID} ({trace.meta.device.name})"
    assert json.loads(several.out)["protocols"]["epilogue_residual"]["exit_code"] == 0


@pytest.mark.slow
def test_two_hangs_do_what_the_protocol_says(call: Call) -> None:
    answer = call("diff", trace_folder() / HUNG[0], trace_folder() / HUNG[0])
    assert answer.code == 0
    assert answer.flat.endswith("✓ same behaviour; both hung")


@pytest.fixture
def stopped() -> Path:
    """The twin: a kernel whose producer stopped, although the model goes on with these records."""
    whole = read_trace(trace_folder() / GOOD)
    events = whole.events
    kept = ~((events.agent == 0) & (np.cumsum(events.agent == 0) > 6))
    (header,) = whole.meta.ctas
    meta = replace(
        whole.meta, status=Ending.DEADLINE, runs=(), ctas=(replace(header, written=(), passes=(), barrier_words=()),)
    )
    write_trace(Trace(meta, events.select(kept)), "mine/stopped.parquet")
    return Path("mine/stopped.parquet")


@pytest.mark.slow
def test_its_twin_differs_in_every_command(call: Call, stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = read_trace(stopped)
    alone = call("verify", PC, *parameters(trace), "--traces", "mine", "--json")
    several = call("verify", PC, "idle.py:idle", "--traces", "mine", "--jobs", "1", "--json")
    diff = call("diff", stopped, "--json")
    assert {agreement_of_one(alone), agreement_of_one(diff)} == {"differs"}
    assert agreement_of_several(several, PC) == "differs"
    assert (alone.code, several.code, diff.code) == (1, 1, 1)
    assert SAID not in call("diff", stopped).flat
