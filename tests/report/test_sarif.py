"""SARIF: what ``pipesim check`` writes is valid by the standard's schema, and says what the report says."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator

from pipesim.cli.main import main
from pipesim.errors import UsageError
from pipesim.report.pages.checks.sarif import sarif_text
from tests.support.mistakes import BROKEN_FILE
from tests.support.paths import ROOT

SCHEMA = Draft4Validator(
    json.loads((Path(__file__).parent / "schema" / "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8"))
)
RING = "docs/examples/ring_two.py"


def run_of(text: str) -> Any:
    """The one run of a document, which is valid."""
    assert text.isascii()
    document = json.loads(text)
    assert [error.message for error in SCHEMA.iter_errors(document)] == []
    (run,) = document["runs"]
    return run


def lines_of(locations: list[Any]) -> list[tuple[str, int, str]]:
    """File, line and message of each location."""
    return [
        (
            each["physicalLocation"]["artifactLocation"]["uri"],
            each["physicalLocation"]["region"]["startLine"],
            each.get("message", {}).get("text", ""),
        )
        for each in locations
    ]


@pytest.fixture
def at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.slow
@pytest.mark.usefixtures("at_root")
def test_a_finding_its_correction_and_its_schedule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", f"{RING}:ring", "producer_consumer", "--format", "sarif", "-p", "tiles=3"]) == 1
    run = run_of(capsys.readouterr().out)
    assert run["tool"]["driver"]["rules"] == [
        {"id": "deadlock", "shortDescription": {"text": "a schedule in which agents wait indefinitely"}}
    ]
    assert run["invocations"] == [{"executionSuccessful": True}]
    (result,) = run["results"]
    assert (result["ruleId"], result["ruleIndex"], result["level"]) == ("deadlock", 0, "error")
    assert result["message"]["text"].startswith(f"{RING}:ring: deadlock: 2 of 2 agents wait indefinitely\n\n")
    assert "likely correction: initialise empty with a count of 1 instead of 2" in result["message"]["text"]
    assert lines_of(result["locations"]) == [(RING, 20, "")]
    assert lines_of(result["relatedLocations"]) == [
        (RING, 13, "likely correction: initialise empty with a count of 1 instead of 2; proved with this change"),
        (RING, 20, "load waits for empty[0]"),
        (RING, 29, "mma would send the arrival next"),
        (RING, 29, "mma waits for full[0]"),
        (RING, 21, "load would send the arrival next"),
    ]
    (flow,) = result["codeFlows"]
    load, mma = flow["threadFlows"]
    assert (load["id"], mma["id"]) == ("load", "mma")
    orders = [step["executionOrder"] for thread in (load, mma) for step in thread["locations"]]
    assert sorted(set(orders)) == sorted(orders)
    assert lines_of([step["location"] for step in mma["locations"]])[-3:] == [
        (RING, 30, "mma: read tile[1] (item 1) begins"),
        (RING, 30, "mma: read tile[1] (item 1)"),
        (RING, 29, "mma: arrive empty[1] · 1 of 2"),
    ]


@pytest.mark.slow
def test_beside_another_format_and_for_what_cannot_be_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b.py").write_text("def made(n: int = 2):\n    return 1 // 0\n", encoding="utf-8")
    words = ["check", "a b.py", "producer_consumer", "--quick", "--format", "junit", "--sarif", "found.sarif"]
    assert main(words) == 2
    assert capsys.readouterr().out.startswith("<?xml")
    run = run_of((tmp_path / "found.sarif").read_text(encoding="ascii"))
    assert run["invocations"] == [{"executionSuccessful": False}]
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("not-built", "error")
    assert lines_of(result["locations"]) == [("a%20b.py", 2, "")]
    assert main(words) == 2, "the file exists"
    assert "found.sarif exists already" in capsys.readouterr().err
    assert main([*words, "--force"]) == 2


@pytest.mark.slow
def test_what_is_unknown_is_a_warning_and_what_is_proved_is_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(BROKEN_FILE, "utf-8")
    names = ["check", "mine.py:two_of_three", "-p", "stages=3", "-p", "tiles=3", "--quick"]
    assert main([*names, "--max-states", "5", "--format", "sarif"]) == 3
    (result,) = run_of(capsys.readouterr().out)["results"]
    assert (result["ruleId"], result["level"]) == ("unknown", "warning")
    assert result["message"]["text"] == (
        "mine.py:two_of_three: unknown\n\n"
        "unknown: neither proved nor refuted when the search reached its limit, for every CTA, at these parameters; "
        "assuming that lanes of a warp that parted are together again (--strict-lanes, 1); not judged: what "
        "the description leaves out, such as global memory"
    )
    assert main(["check", "producer_consumer", "--quick", "--format", "sarif"]) == 0
    run = run_of(capsys.readouterr().out)
    assert (run["results"], run["tool"]["driver"]["rules"]) == ([], [])


def test_hostile_names_stay_inert_and_valid() -> None:
    name = "\x1b[1m::error::\ud800 a.py"
    run = run_of(sarif_text({}, {name: UsageError(name, place=f"{name}:3", cause=name)}, "1"))
    (result,) = run["results"]
    assert "\x1b" not in result["message"]["text"]
    assert "\n::" not in f"\n{result['message']['text']}"
    assert lines_of(result["locations"])[0][0].isascii()


def test_a_document_that_breaks_the_standard_is_seen() -> None:
    document = json.loads(sarif_text({}, {"a.py": UsageError("no")}, "1"))
    document["runs"][0]["results"][0]["level"] = "fatal"
    assert [error.message for error in SCHEMA.iter_errors(document)] != []
