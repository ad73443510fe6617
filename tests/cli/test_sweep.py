"""``pipesim sweep``: values on the command line, the files that it writes, exit codes, and lines that contradict."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipesim.cli.sweep import values_of
from pipesim.errors import ParameterError

Call = Callable[..., Any]
PC = ("sweep", "producer_consumer", "-p", "tiles=8", "--jobs", "1")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("n=4", (4,)), ("n=2..5", (2, 3, 4, 5)), ("n=3..3", (3,)), ("n=16..64:16", (16, 32, 48, 64)),
        ("n=16..63:16", (16, 32, 48)), ("n=64,128,256", (64, 128, 256)), ("n=1,4..6", (1, 4, 5, 6)),
        ("n=-2..0", (-2, -1, 0)),
    ],
)  # fmt: skip
def test_values(text: str, values: tuple[int, ...]) -> None:
    assert values_of([text]) == {"n": values}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["n"], "expected NAME=VALUES"), (["=4"], "expected NAME=VALUES"), (["n=1", "n=2"], "given more than once"),
        (["n="], "takes whole numbers and ranges, not ''"), (["n=1,,2"], "takes whole numbers"),
        (["n=2-8"], "takes whole numbers"), (["n=1_0"], "takes whole numbers"), (["n=٣"], "takes whole numbers"),
        (["n=8..2"], "has no value"), (["n=1..2:0"], "has no value"), (["n=0..99999999"], "more than 100,000 values"),
    ],
)  # fmt: skip
def test_what_is_not_a_value(given: list[str], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        values_of(given)


def test_the_report_and_its_files(call: Call, tmp_path: Path) -> None:
    line = (*PC, "-p", "stages=1,2,20", "--by", "run", "--csv", "x.csv", "--svg", "x.svg", "--results", "x.jsonl")
    answer = call(*line)
    assert answer.code == 0
    assert "stages=20: producer_consumer needs 328,000 bytes of shared memory; a CTA has 232,448" in " ".join(
        answer.out.split()
    )
    rows = list(csv.DictReader(io.StringIO(Path("x.csv").read_text(encoding="utf-8"))))
    assert [(row["stages"], row["state"], row["rank"]) for row in rows] == [
        ("1", "usable", "2"), ("2", "usable", "1"), ("20", "refused", ""),
    ]  # fmt: skip
    picture = ET.fromstring(Path("x.svg").read_text(encoding="utf-8"))
    circles = [each.get("class") for each in picture.iter() if each.tag.endswith("circle")]
    assert circles == [None, None, "best"]
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["x.csv", "x.jsonl", "x.svg"]
    again = call(*line, "--force")
    assert again.out == answer.out, "the results file was started again"
    reused = call(*PC, "-p", "stages=1,2,20", "--by", "run", "--results", "x.jsonl")
    assert "results      3 read from the results file" in reused.out.splitlines()[5]


def test_a_results_file_is_of_one_question(call: Call, ring: str) -> None:
    line = ("sweep", ring, "-p", "stages=1,2", "--jobs", "1", "--results", "x.jsonl")
    assert call(*line).code == 0
    for more, said in (
        (("--strict-proxies",), "the optional rules: none in the file, --strict-proxies here"),
        (("--ctas", "2"), "the CTAs of the launch (--ctas): none in the file, 2 here"),
        (("-p", "tiles=5"), "the parameters with one value: none in the file, tiles=5 here"),
        (("-p", "tiles=5,6"), "the swept parameters: stages in the file, stages tiles here"),
    ):
        answer = call(*line, *more)
        assert (answer.code, answer.error[0]) == (2, "pipesim: the results file x.jsonl cannot be continued")
        assert said in answer.error[1]


def test_a_configuration_that_was_edited_is_computed_again(call: Call, ring: str) -> None:
    line = ("sweep", ring, "-p", "stages=1,2,3", "--jobs", "1", "--results", "x.jsonl")
    before = call(*line)
    path = Path(ring.partition(":")[0])
    path.write_text(path.read_text().replace("if i < arrivals:", "if i < (arrivals if stages < 3 else 2):"))
    after = call(*line)
    assert (before.code, after.code) == (0, 1)
    said = " ".join(after.out.split())
    assert "results 2 read from the results file 1 computed again: the program is another one than when" in said
    assert "stages=3: not correct: deadlock" in said


def test_json_has_what_the_report_says(call: Call) -> None:
    answer = call(*PC, "-p", "stages=2,3", "--json")
    assert (answer.code, answer.json["exit_code"]) == (0, 0)
    report = answer.json["report"]
    assert (report["metric"], report["chosen"], report["unit"]) == ("period", True, "bytes")
    assert [each["configuration"]["params"] for each in report["ranked"]] == [{"stages": 2}, {"stages": 3}]
    assert report["ok"] is True


@pytest.mark.parametrize(
    ("more", "code"),
    [(("-p", "stages=20,40"), 3), (("-p", "stages=2,3", "--max-steps", "5"), 3), (("-p", "stages=2,3"), 0)],
)
def test_exit_codes(call: Call, more: tuple[str, ...], code: int) -> None:
    assert call(*PC, *more).code == code


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), "no parameter is swept"),
        (("-p", "stage=2,3"), "has no parameter 'stage'"),
        (("-p", "stages=2,3", "--jobs", "0"), "--jobs 0"),
        (("-p", "stages=2,3", "--dask", "tcp://127.0.0.1:1"), "--jobs and --dask cannot be combined"),
        (("-p", "stages=2,3", "--no-proof", "--max-states", "5"), "--no-proof leaves it out"),
        (("-p", "stages=2,3", "--csv", "x", "--svg", "x"), "name the same file"),
        (("-p", "stages=2,3", "--csv", "no/x.csv"), "there is no folder no"),
        (("-p", "stages=2,3", "--results", "."), "is a folder"),
        (("-p", "stages=2,3", "--profile", "h3000"), "there is no latency profile 'h3000'"),
    ],
)
def test_lines_that_are_refused(call: Call, tmp_path: Path, more: tuple[str, ...], said: str) -> None:
    answer = call(*PC, *more)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_ones_own(call: Call, ring: str) -> None:
    answer = call("sweep", ring, "-p", "arrivals=1,6", "-p", "stages=2", "--jobs", "1")
    assert answer.code == 1
    assert "    arrivals=1: not correct: deadlock\n" in answer.out
    assert answer.verdict.startswith("✗ 1 of 2 configurations is not correct; best of the usable: arrivals=6, ")
