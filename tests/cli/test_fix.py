"""`check --fix`: the correction as a diff of one source line, and written where the file is the user's."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipesim.prove.repair.correction import Correction
from pipesim.prove.repair.kinds import Repair, RepairKind
from pipesim.report.text.source_fix import source_fix

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
RING = """from pipesim import Protocol, Warp


def ring() -> Protocol:
    p = Protocol("ring")
    full = p.mbarriers("full", 1, count=3)  # of 1 producer

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].arrive()

    @p.role("consumer")
    def consumer(_: Warp) -> None:
        full[0].wait(0)

    return p
"""


Call = Callable[..., Any]


def test_a_number_of_one_line_is_shown_and_written(call: Call) -> None:
    Path("ring.py").write_text(RING)
    answer = call("check", "ring.py", "--fix")
    assert answer.code == 1
    said = answer.out
    assert (
        '-    full = p.mbarriers("full", 1, count=3)  # of 1 producer\n+    full = p.mbarriers("full", 1, count=1)'
        in said
    )
    assert Path("ring.py").read_text() == RING
    assert call("check", "ring.py", "--fix", "--write").code == 1
    assert Path("ring.py").read_text() == RING.replace("count=3", "count=1")
    assert call("check", "ring.py", "--quick").code == 0


def test_a_file_elsewhere_is_shown_and_not_written(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "library").mkdir()
    file = tmp_path / "library" / "ring.py"
    file.write_text(RING)
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    assert "is not written" in call("check", str(file), "--fix", "--write").err
    assert file.read_text() == RING


@pytest.mark.slow
def test_a_line_of_a_kernel_that_leads_past_an_arrive_is_deleted(call: Call, tmp_path: Path) -> None:
    for end in ("cu", "ptx", "json"):
        shutil.copy(EXAMPLES / f"row_max.{end}", tmp_path)
    call("check", "row_max.ptx", "--fix", "--write")
    assert Path("row_max.cu").read_text() == (EXAMPLES / "row_max_fixed.cu").read_text()


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("init(s.full[i], 1), init(s.empty[i], 3);", "init(s.full[i], 1), init(s.empty[i], 2);"),
        ("init(s.full[i], 3), init(s.empty[i], 3);", None),
        ("init(s.empty[i], kReaders);  // 3", None),
        ("init(s.empty3[i], 3u);", None),
    ],
)
def test_only_a_number_that_is_written_once_is_replaced(text: str, after: str | None, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(f"{text}\n")
    count = Correction(Repair(RepairKind.COUNT, "", "empty", 2, 3), "", "", f"{tmp_path / 'k.cu'}:1")
    fix = source_fix(count)
    assert (fix.after if fix is not None else None) == after


def test_write_needs_fix_and_fix_prints_text(call: Call) -> None:
    assert call("check", "producer_consumer", "--write").err.startswith("pipesim: --write without --fix")
    assert call("check", "producer_consumer", "--fix", "--json").out.count("--fix prints text") == 1
