"""A command that was interrupted does its work when it is repeated as it was: no file of it is in its way."""

import signal
from pathlib import Path
from typing import Any

import pytest

from pipesim.answers.spread import spread
from pipesim.answers.sweep.configuration import evaluate
from tests.support.fixture_types import Call
from tests.support.paths import ROOT

PC = ("producer_consumer", "-p", "tiles=2")
ROW_MAX = str(ROOT / "docs/examples/row_max.ptx")
WRITE = "os.fsync"  #: where a file is written
SPREAD = "pipesim.answers.sweep.sweep.spread"  #: over processes, which take a while to start
ANSWER = "evaluate"  #: where the second configuration of a sweep is computed
SWEEP = ("sweep", "producer_consumer", "-p", "tiles=2", "-p", "stages=1..3", "--jobs", "1")


@pytest.mark.sampled(4, 6)
@pytest.mark.parametrize(
    ("line", "where", "files", "code"),
    [
        ((*SWEEP, "--results", "r", "--csv", "c", "--svg", "s"), "keep", {"r", "c", "s"}, 3),
        ((*SWEEP[:-1], "2", "--results", "r", "--csv", "c", "--svg", "s"), "keep", {"r", "c", "s"}, 3),
        ((*SWEEP, "--csv", "c", "--svg", "s"), ANSWER, {"c", "s"}, 3),
        ((*SWEEP, "--csv", "c"), WRITE, {"c"}, 130),
        (("check", *PC, "--sarif", "s"), "details", {"s"}, 130),
        (("check", *PC, "--sarif", "s"), WRITE, {"s"}, 130),
        (("check", ROW_MAX, "--quick", "--baseline", "b", "--update-baseline"), WRITE, {"b"}, 130),
        (("run", *PC, "--save-trace", "t.parquet", "--save-program", "p.json"), WRITE, {"t.parquet", "p.json"}, 130),
        (("export", *PC, "--to", "promela", "-o", "o"), WRITE, {"o"}, 130),
        (("show", *PC, "--svg", "s.svg"), WRITE, {"s.svg"}, 130),
        (("table", *PC, "-o", "t.h"), WRITE, {"t.h"}, 130),
        (("new", "k.py"), WRITE, {"k.py"}, 130),
    ],
)
def test_the_same_line(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: tuple[str, ...], where: str, files: set[str],
    code: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(SPREAD, _in_one)
    with monkeypatch.context() as once:
        _interrupt_at(once, where)
        answer = call(*line)
    assert answer.code == code, answer.err
    assert code != 3 or answer.err.startswith("pipesim: not written: ")
    left = {path.name for path in tmp_path.iterdir()}
    assert left <= {"r"}, "what the command continues from"
    rows = Path("r").read_bytes() if left else b""
    answer = call(*line)
    assert answer.code == 0, answer.err
    assert {path.name for path in tmp_path.iterdir()} == files
    if left:
        assert Path("r").read_bytes().startswith(rows)
        assert rows.count(b"\n") == 2, "the question, and the answer that was known"
        assert "1 read from the results file" in answer.out


def test_after_its_last_answer_a_sweep_is_complete(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SPREAD, _interrupted_at_its_end)
    answer = call(*SWEEP[:-1], "2", "--results", "r", "--csv", "c")
    assert (answer.code, answer.err) == (0, "")
    assert Path("c").read_bytes().count(b"\n") == 4, "the names of its columns, and all rows"


@pytest.mark.parametrize(
    ("where", "left"), [("formats.documents.sweep_csv", "rs"), ("cli.protocols.sweep.show_report", "crs")]
)
def test_outputs_that_are_there_stay(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str, left: str
) -> None:
    """A sweep that ends between or after its outputs; one of another sweep is not replaced."""
    line = (*SWEEP, "--results", "r", "--csv", "c", "--svg", "s")
    with monkeypatch.context() as once:
        once.setattr(f"pipesim.{where}", lambda *_: signal.raise_signal(signal.SIGINT))
        assert call(*line).code == 130
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert before.keys() == set(left)
    assert (answer := call(*line)).code == 0, answer.err
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert after == after | before
    assert after.keys() == set("crs")
    Path("c").write_text("mine")
    assert (call(*line).code, Path("c").read_text()) == (2, "mine")


def _in_one(parts: Any, do: Any, failed: Any, done: Any, _: int, keep: Any) -> None:
    spread(parts, do, failed, done, 1, keep)


def _interrupted_at_its_end(*given: Any) -> None:
    _in_one(*given)
    signal.raise_signal(signal.SIGINT)


def _interrupt_at(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    if where == WRITE:
        monkeypatch.setattr(WRITE, lambda *_: signal.raise_signal(signal.SIGINT))
        return
    if where == ANSWER:
        begun = iter(range(9))

        def evaluated(*given: Any) -> Any:
            if next(begun) == 1:
                signal.raise_signal(signal.SIGINT)
            return evaluate(*given)

        monkeypatch.setattr("pipesim.answers.sweep.sweep.evaluate", evaluated)
        return
    if where == "keep":
        from pipesim.answers.sweep.results_file import ResultsFile as Interrupted
    else:
        from pipesim.answers.checking.stepped import SteppedCheck as Interrupted  # type: ignore[assignment]
    usual = getattr(Interrupted, where)

    def interrupted(*given: Any) -> None:
        usual(*given)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Interrupted, where, interrupted)
