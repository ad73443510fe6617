"""What check says of the launch that a dump holds: the same hang, why what is missing did not come, or no hang."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pipesim.cli.main import main
from tests.coredump.test_hangs import DUMPS

MISSING = str(DUMPS / "missing_arrive.h200.elf.xz")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What an autopsy prints, in one line."""
    assert main(["autopsy", *words]) == 1
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_check_predicts_the_hang_and_says_why_the_arrive_did_not_come(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, MISSING, "--check")
    assert "✓ check predicts this hang: all warps wait for the same" in text
    assert "this branch led it past its arrive (missing_arrive.cu:19), since 96 >= 96, the 5th time" in text


def test_the_launch_is_saved_and_can_be_checked_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "saved"
    assert f"{folder}/_Z14missing_arrivePKfPfi.ptx" in said(capsys, MISSING, "--save-launch", str(folder))
    ptx, launch = sorted(folder.iterdir())[::-1]
    found = json.loads(launch.read_text(encoding="utf-8"))
    assert (found["grid"], found["block"], found["parameters"][2]["value"]) == ([1, 1, 1], [160, 1, 1], 64)
    assert main(["check", "--quick", str(ptx)]) == 1


@pytest.mark.slow
def test_a_corrected_kernel_is_not_said_to_hang(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, MISSING, "--save-launch", str(tmp_path))
    text = next(tmp_path.glob("*.ptx")).read_text(encoding="utf-8")
    corrected = tmp_path / "corrected.ptx"
    corrected.write_text(text.replace("%r33, 96, 128, %p4", "%r33, 128, 128, %p4"), encoding="utf-8")
    report = said(capsys, MISSING, "--check", "--ptx", str(corrected))
    assert "check does not predict this hang: its verdict is proved" in report


@pytest.mark.slow
def test_of_ctas_that_differ_one_that_hangs_is_followed(capsys: pytest.CaptureFixture[str]) -> None:
    report = said(capsys, str(DUMPS / "one_of_64.h200.elf.xz"), "--check")
    assert "this branch ended its way to the arrive (one_of_64.cu:11), since 9 >= 9, the 9th time" in report


def test_without_ptx_it_is_said_why_the_launch_is_not_checked(capsys: pytest.CaptureFixture[str]) -> None:
    report = said(capsys, str(DUMPS / "missing_arrive_bare.h200.elf.xz"), "--check")
    assert "not checked: there is no PTX in the dump: compile with -lineinfo" in report


def test_an_anonymous_autopsy_names_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    main(["autopsy", str(DUMPS / "flag_not_set.h200.elf.xz"), "--anonymous", "--json"])
    text = capsys.readouterr().out
    assert not re.search(r"flag_not_set|\.cu\b|0x[0-9a-f]{8}|holds|tests", text)
    assert len(json.loads(text)["findings"][0]["blocked"]) == 4


@pytest.mark.parametrize("name", ["two_locks.h100", "cluster_peer_gone.h200", "two_kernels_bare.h200"])
@pytest.mark.sampled(1)
def test_a_brief_of_2_kb_and_a_page(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    main(["autopsy", str(DUMPS / f"{name}.elf.xz"), "--json", "--html", str(page)])
    brief = json.loads(capsys.readouterr().out)["report"]["brief"]
    kernel = name.partition(".")[0].removesuffix("_bare")
    assert len(json.dumps(brief)) < 2000
    assert brief["said"].startswith("hangs: ")
    assert brief["claim"].startswith("warp/0")
    text = page.read_text(encoding="utf-8")
    assert text.count("<figure><svg ") == brief["findings"]
    assert kernel in text or kernel == "two_kernels"
