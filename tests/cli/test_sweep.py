"""``pipesim sweep``: values on the command line, the files that it writes, exit codes, and lines that contradict."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pipesim
from pipesim.cli.sweep import values_of

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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_columns_of_a_table_have_names_of_their_own(call: Call) -> None:
    """Also where a parameter is called as one of them is."""
    taken = ("work", "state", "cycles", "rank", "registers", "unit", "work_amount", "iterations")
    Path("mine.py").write_text(
        "from pipesim import Protocol\n"
        f"def mine({', '.join(f'{name}: int = 1' for name in taken)}):\n"
        "    p = Protocol('mine')\n"
        "    @p.role('solo')\n"
        "    def solo(w):\n"
        "        w.work(cycles=work)\n"
        "    return p\n"
    )
    line = [word for name in taken for word in ("-p", f"{name}=1,2")]
    assert call("sweep", "mine.py", *line, "--jobs", "1", "--no-proof", "--csv", "x.csv").code == 0
    rows = list(csv.reader(io.StringIO(Path("x.csv").read_text(encoding="utf-8"))))
    assert tuple(rows[0][: len(taken)]) == taken
    assert {len(row) for row in rows} == {len(rows[0])} == {len(set(rows[0]))}
    first = dict(zip(rows[0], rows[1], strict=True))
    assert [first[name] for name in taken] == ["1"] * len(taken)
    assert (first["sweep.state"], first["work_unit"], first["sweep.work_amount"]) == ("usable", "bytes", "0")
    table = pipesim.sweep("mine.py", cycles=[1, 2], state=[1, 2], prove=False).to_arrow()
    assert table.column_names[:4] == ["cycles", "state", "sweep.state", "why"]
    assert table.column("cycles").to_pylist() == [1, 1, 2, 2]
    assert min(table.column("sweep.cycles").to_pylist()) > 2
