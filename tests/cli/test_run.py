"""``pipesim run``: what it finds, what it saves, and the three ways to name a protocol."""

from pathlib import Path

import pytest

from pipesim.timed import engine
from pipesim.trace.files import read_trace
from tests.support.fixture_types import Call

PC = "producer_consumer"


class TestSavedProgram:
    """A program that was saved is the protocol, whatever is done with it."""

    @pytest.fixture
    def saved(self, call: Call) -> Path:
        assert call("run", PC, "-p", "tiles=16", "--save-program", "p.json").code == 0
        return Path("p.json")

    @pytest.mark.slow
    def test_a_trace_can_be_held_against_it(self, call: Call, recorded: Path, saved: Path) -> None:
        call("run", PC, "--save-program", "usual.json")
        answer = call("diff", recorded, "--protocol", "usual.json")
        assert answer == call("diff", recorded)
        assert answer.code == 0
        assert call("diff", recorded, "--protocol", saved).code == 1  # that of 16 tiles: the kernel did more


class TestSavedTrace:
    """A trace of the simulation is a trace: diff holds it against the protocol."""

    @pytest.mark.slow
    def test_that_of_a_deadlock_does_not_end(self, call: Call, ring: str) -> None:
        call("run", ring, "-p", "arrivals=2", "--save-trace", "t.parquet")
        assert read_trace("t.parquet").meta.status == "deadlock"
        answer = call("diff", "t.parquet", "--protocol", ring)
        assert answer.code == 0  # the model hangs in the same state
        assert "✓ the simulated run hung, and the model hangs in the same state" in answer.out
        found = call("diff", "t.parquet", "--protocol", ring, "--json").json["report"]
        assert (found["ok"], found["hardware"][0]["agreement"]) == (True, "hangs_too")
        assert found["hardware"][0]["conformance"]["verdict"] == "differs"  # its records have no end
        right = call("diff", "t.parquet", "--protocol", ring, "-p", "arrivals=6")
        assert right.code == 1  # the twin: this one goes on


@pytest.mark.parametrize("option", ["--save-trace", "--save-program"])
def test_nothing_is_overwritten_and_nothing_done_before_that_is_known(
    call: Call, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    Path("kept").write_text("precious", encoding="utf-8")

    def work(*_: object, **__: object) -> None:
        raise AssertionError("work was done")

    with monkeypatch.context() as patch:
        patch.setattr(engine, "simulate", work)
        patch.setattr("pipesim.targets.find", work)
        answer = call("run", PC, option, "kept")
    assert answer.code == 2
    assert answer.err == "pipesim: kept exists already\n  try: choose another name, or add --force to overwrite\n"
    assert Path("kept").read_text(encoding="utf-8") == "precious"
    assert call("run", PC, "-p", "tiles=4", option, "kept", "--force").code == 0
    assert Path("kept").read_bytes() != b"precious"
    assert sorted(path.name for path in Path().iterdir()) == ["kept"]  # no temporary file stays
