"""``pipesim check --redundant``: the report, the JSON, the exit codes, the limits."""

import json
from typing import Any

import pytest

from pipesim.answers.redundant import redundant
from pipesim.cli.main import main
from pipesim.model.finding import Verdict
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
def test_a_kernel_is_read_and_answered(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, str(KERNELS / "scale_ws_s3-sm_90a.ptx"))
    assert found["exit_code"] in (0, 3)
    assert found["redundant"]["operations"] > 0


def test_a_refuted_protocol_has_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert document(capsys, f"{EXAMPLES / 'ring_two.py'}:ring", "-p", "tiles=4")["exit_code"] == 1


@pytest.mark.long
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
