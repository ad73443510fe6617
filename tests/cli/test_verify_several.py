"""``pipesim verify`` on several protocols: one table, what is not right, and the exit code of the worst."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipesim.answers import verify as verify_parts
from pipesim.protocols.catalog import BUILT_IN
from pipesim.trace.library import trace_folder
from tests.support.fixture_types import Call

PC = "producer_consumer"
FAULT = "producer_consumer-al1-cw2-s3-tb4096-t24-w200-g1-no_acquire-at-7.parquet"
HUNG = "epilogue_residual-a2-at700-cs2-es2-e150-fto0-ki1-od0-r1-sb2048-s4-st4-t8-g1.parquet"


@pytest.fixture
def several(call: Call) -> Call:
    """The command on several protocols, in this process."""
    return lambda *words: call("verify", *words, "--jobs", "1")


@pytest.fixture
def shelf(recorded: Path) -> Path:
    """A folder with a recording of both devices, one of a fault and one of a hang."""
    for device, name in (("h100", recorded.name), ("h200", recorded.name), ("h100", FAULT), ("h100", HUNG)):
        Path("mine", device).mkdir(parents=True, exist_ok=True)
        shutil.copy(trace_folder() / device / name, Path("mine", device))
    return Path("mine")


def row(answer: Any, name: str) -> list[str]:
    """The cells of a protocol in the table."""
    (line,) = [line for line in answer.out.splitlines() if line.startswith(f"  {name} ")]
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def said(answer: Any) -> str:
    """The whole report in one line."""
    return " ".join(answer.out.split())


def agreements(answer: Any, name: str) -> dict[str, str]:
    traces = answer.json["protocols"][name]["report"]["traces"]
    return {trace["source"]: trace["agreement"] for trace in traces}


class TestTable:
    @pytest.mark.slow
    def test_every_recording_is_held_against_the_program_of_its_own_parameters(
        self, several: Call, shelf: Path, ring: str
    ) -> None:
        answer = several(PC, ring, "--traces", shelf)
        assert (answer.code, answer.err) == (0, "")
        assert row(answer, PC) == [PC, "✓ any tiles", "✓ 71,571", "✓ 2/2", "✓ 1/1"]
        assert row(answer, ring)[-2:] == ["no kernel", "–"]
        assert "3 of 3 recorded traces agree in the order of events" in answer.out
        assert "times producer_consumer: 2 within the profile's stated error, 1 not compared" in said(answer)
        assert "1 with an injected fault, which is named" in answer.out
        assert answer.verdict == "✓ 2 of 2 protocols passed"
        found = agreements(several(PC, ring, "--traces", shelf, "--json"), PC)
        usual = next(name for name in found if "h200" in name).partition("/")[2]
        assert found == {f"h100/{FAULT}": "fault_named", f"h100/{usual}": "conforms", f"h200/{usual}": "conforms"}

    @pytest.mark.long
    def test_a_recording_without_an_event_is_not_counted(self, several: Call, recorded: Path, ring: str) -> None:
        Path("mine", "h100").mkdir(parents=True)
        shutil.copy(recorded.with_name(recorded.name.replace("-t64-", "-t0-")), Path("mine", "h100"))
        alone = several(PC, ring, "--traces", "mine")
        assert alone.code == 3  # it is the only one, so that nothing was compared
        assert row(alone, PC)[-1] == "? 0/1"
        assert alone.verdict == "? 1 of 2 protocols passed; unknown: producer_consumer"
        assert "the trace has no event to compare with the protocol" in said(alone)
        shutil.copy(recorded, Path("mine", "h100"))
        beside = several(PC, ring, "--traces", "mine")
        assert (beside.code, row(beside, PC)[-1]) == (0, "✓ 1/1")
        assert "1 of 1 recorded trace agrees in the order of events" in said(beside)
        assert "1 more trace without an event: nothing to compare" in said(beside)


class TestWhatIsNotRight:
    def test_what_raises_loses_nothing_of_the_others(
        self, several: Call, ring: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        right = verify_parts.check  # type: ignore[attr-defined]  # replaced in place

        def check(target: Any, *more: Any, **named: Any) -> Any:
            if target.name == PC:
                raise KeyError("empty")
            return right(target, *more, **named)

        monkeypatch.setattr(verify_parts, "check", check)
        answer = several(PC, ring, "--no-hardware")
        assert answer.code == 70
        assert row(answer, PC)[1:3] == ["? failed", "✓ 71,571"]
        assert row(answer, ring)[1] == "✓ these parameters"
        assert "the proof failed: an internal error of pipesim: KeyError: 'empty' (" in said(answer)
        assert answer.verdict == f"? 1 of 2 protocols passed; unknown: {PC} (hardware left out)"

    @pytest.mark.slow
    def test_a_protocol_that_cannot_be_flattened(self, several: Call, ring: str, user: Callable[[str], None]) -> None:
        user("from pipesim import Protocol\n\ndef broken():\n    raise RuntimeError('no')\n")
        answer = several(ring, "mine.py:broken", "--no-hardware")
        assert answer.code == 3
        assert "flattening failed: mine.py:broken raised RuntimeError: no (mine.py:4)" in said(answer)


class TestOptions:
    @pytest.fixture(autouse=True)
    def few(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in set(BUILT_IN) - {PC, "cluster_multicast"}:  # the others take their time
            monkeypatch.delitem(BUILT_IN, name)

    @pytest.mark.slow
    def test_a_name_that_does_not_exist_does_not_stop_the_others(self, several: Call, ring: str) -> None:
        answer = several("no_such_protocol", ring, "--no-hardware")
        assert answer.code == 2
        assert answer.err.startswith("pipesim: there is no protocol 'no_such_protocol'")
        assert row(answer, ring)[1] == "✓ these parameters"
        assert answer.verdict == "? 1 of 2 protocols passed; not found: no_such_protocol (hardware left out)"
        found = several("no_such_protocol", ring, "--no-hardware", "--json").json
        assert (found["exit_code"], list(found["protocols"])) == (2, [ring, "no_such_protocol"])
        assert found["protocols"]["no_such_protocol"]["error"]["fact"] == "there is no protocol 'no_such_protocol'"
        assert several(ring, PC, "--no-hardware").code == 0  # the twin

    @pytest.mark.slow
    def test_what_is_over_when_it_is_interrupted_is_reported(
        self, several: Call, ring: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        done = verify_parts.SimulationPart.compute

        def interrupted(part: verify_parts.SimulationPart) -> verify_parts.SimulatedPart:
            if part.subject.name == ring:
                raise KeyboardInterrupt
            return done(part)

        monkeypatch.setattr(verify_parts.SimulationPart, "compute", interrupted)
        answer = several(PC, ring, "--no-hardware")
        assert answer.code == 3
        assert row(answer, PC)[1:3] == ["✓ any tiles", "✓ 71,571"]
        assert row(answer, ring)[1:3] == ["✓ these parameters", "? interrupted"]
        assert "interrupted before the end of the simulation" in said(answer)
        assert answer.verdict == f"? 1 of 2 protocols passed; unknown: {ring} (hardware left out)"
