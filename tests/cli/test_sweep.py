"""``pipesim sweep``: values on the command line, the files that it writes, exit codes, and lines that contradict."""

import csv
import io
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from pipesim.cli.protocols.sweep import values_of
from tests.support.fixture_types import Call

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
    kept = Path("x.jsonl").read_bytes()
    Path("x.csv").write_text("another")
    assert call(*line).code == 2, "another table is there"
    reused = call(*line, "--force")
    assert (reused.code, Path("x.jsonl").read_bytes()) == (0, kept), "--force is for the table and the plot alone"
    assert "results      3 read from the results file" in reused.out.splitlines()[5]
