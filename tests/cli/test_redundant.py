"""``pipesim check --redundant``: the report, the JSON, the exit codes, the limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipesim.answers.redundant import redundant
from pipesim.cli.main import main
from pipesim.model.finding import Verdict
from pipesim.model.program_json import dumps
from pipesim.prove.check import check
from pipesim.prove.redundant.removal import without
from pipesim.targets import find
from tests.support.paths import EXAMPLES, ROOT

RING = f"{EXAMPLES / 'ring_more.py'}:ring"
KERNELS = ROOT / "tests" / "ptx" / "kernels"


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    code = main(["check", "--redundant", "--json", *arguments])
    found = json.loads(capsys.readouterr().out)
    assert found["exit_code"] == code
    return found


@pytest.mark.slow
def test_what_is_printed_is_sorted_by_how_often_it_is_executed(capsys: pytest.CaptureFixture[str]) -> None:
    report = document(capsys, RING)["redundant"]
    times = [each["removal"]["times"] for each in report["alone"]]
    assert times == sorted(times, reverse=True)
    assert times[-1] == 1 < times[0]
    assert report["said"] == "ring stays proved with any one of 5 of the 10 removals tried"
    assert report["together"] == [0, 2, 4]


@pytest.mark.slow
def test_a_program_file_has_the_same_removals(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "ring.json"
    file.write_text(dumps(find(RING).build()), encoding="utf-8")
    mine, theirs = (document(capsys, name)["redundant"] for name in (str(file), RING))
    assert [each["said"] for each in mine["alone"]] == [each["said"] for each in theirs["alone"]]
    assert mine["sizes"] == []


@pytest.mark.slow
def test_a_kernel_is_read_and_answered(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, str(KERNELS / "scale_ws_s3-sm_90a.ptx"))
    assert found["exit_code"] in (0, 3)
    assert found["redundant"]["operations"] > 0


def test_a_refuted_protocol_has_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert document(capsys, f"{EXAMPLES / 'ring_two.py'}:ring", "-p", "tiles=4")["exit_code"] == 1


@pytest.mark.slow
def test_a_step_that_takes_too_long_is_left_out_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    report = document(capsys, "gemm_sm100", "--time-limit", "0.3")
    assert report["exit_code"] == 3
    assert [each["why"] for each in report["redundant"]["left_out"]] == ["time"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [RING, pytest.param("persistent_scheduler", marks=[pytest.mark.slow, pytest.mark.long])]
)
def test_every_removal_is_proved_by_itself(name: str) -> None:
    """By the whole check of the edited program, which knows nothing of removals; and the page has just these."""
    target = find(name)
    program, report = target.build(), redundant(target, {})
    assert report.alone
    for each in report.alone:
        edited = without(program, each.removal)
        assert edited is not None
        assert check(edited).verdict is Verdict.PROVED
    page = (ROOT / "docs" / "redundant.md").read_text(encoding="utf-8")
    named = [row.split(" | ")[1] for row in page.splitlines() if row.startswith(f"| `{name}` ")]
    assert named == ([] if name == RING else [each.said for each in report.alone])
