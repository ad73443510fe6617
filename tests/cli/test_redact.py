"""``check --redact``: a report without source lines, parameters, values and folders, in every form."""

import re
import shutil
from pathlib import Path

import pytest

from pipesim.cli.main import main
from tests.support.paths import EXAMPLES

PTX = str(EXAMPLES / "row_max.ptx")
#: Of the source, of the PTX, of a folder, of a value of a parameter and of what it decided.
TOLD = re.compile(r"wait\(s\.|first >= left|@%p|/row_max|/docs|/home|/root|/tmp|512 >= 256|536,?870")


@pytest.mark.sampled(2, 3)
@pytest.mark.parametrize("form", ["text", "json", "brief", "github", "junit", "sarif"])
def test_nothing_of_these_is_told(capsys: pytest.CaptureFixture[str], form: str) -> None:
    said, quick = {}, () if form in ("text", "json") else ("--quick",)
    for words in ((), ("--redact",)):
        assert main(["check", PTX, "--format", form, *quick, *words]) == 1
        said[words] = capsys.readouterr().out
    assert TOLD.search(said[()])
    found = TOLD.search(said[("--redact",)])
    assert found is None, said[("--redact",)][found.start() - 200 : found.end() + 100]
    assert "row_max.cu:49" in said[("--redact",)], "the places stay"
    if form == "json":
        iterations = [re.findall(r'"last_iteration": *(-?\d+)', each) for each in said.values()]
        assert iterations[0] == iterations[1] != [], "as do iterations, which the schedule shows in any case"


@pytest.mark.slow
def test_parameters_of_a_protocol(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["check", "producer_consumer", "-p", "stages=3", "--quick"]
    assert main([*line, "--redact"]) == main(line) == 0
    redacted, whole = capsys.readouterr().out.split("producer_consumer   ")[1:]
    assert whole.startswith("stages 3 · ")
    assert redacted.startswith("grid 1 CTA · ")


def test_a_correction_is_not_shown_as_a_diff(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", PTX, "--redact", "--fix"]) == 2
    assert "--fix shows source lines" in capsys.readouterr().err


@pytest.mark.slow
def test_a_waiver_at_a_line_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict and the exit code are the same."""
    for suffix in ("cu", "ptx", "json"):
        shutil.copy(EXAMPLES / f"row_max.{suffix}", tmp_path)
    source = tmp_path / "row_max.cu"
    lines = source.read_text().splitlines()
    lines[48] += "  // pipesim: ignore[deadlock] known"
    source.write_text("\n".join(lines))
    line = ["check", str(tmp_path / "row_max.ptx"), "--quick"]
    assert main(line) == main([*line, "--redact"]) == 0
    assert "known" in capsys.readouterr().out
