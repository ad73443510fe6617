"""What check says of the launch that a dump holds: the same hang, why what is missing did not come, or no hang."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pipesim.answers.autopsy.autopsy import autopsy_of
from pipesim.answers.autopsy.predicted import DumpedProgram
from pipesim.cli.main import main
from pipesim.coredump.dump import open_dump
from pipesim.launches.files.of_dump import launch_of_dump
from pipesim.model.finding import Deadlock
from pipesim.ptx.launch.values import Number, TensorMap
from pipesim.targets import find
from tests.coredump.test_hangs import DUMPS
from tests.support.lanes import slow_but
from tests.support.present import present

MISSING = str(DUMPS / "missing_arrive.h200.elf.xz")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What an autopsy prints, in one line."""
    assert main(["autopsy", *words]) == 1
    return " ".join(capsys.readouterr().out.split())


#: What is said of a dump that is checked.
CHECKED = {
    "missing_arrive": (
        "✓ check predicts this hang: all warps wait for the same",
        "compute_2/2 (warp 3) did not arrive on missing_arrive.cu:7[4]: this branch led it past its arrive",
        "(missing_arrive.cu:19), since 96 >= 96, the 5th time",
    ),
    "flag_not_set": (
        "its PTX reaches this hang: while a warp waits for global memory, all others wait for the same",
        "check assumes that the loop at flag_not_set.cu:8 (_Z12flag_not_setPKfPfPVjPKj.ptx:51)",
    ),
    "one_of_64": (  # of CTAs that differ one that hangs is followed
        "this branch ended its way to the arrive (one_of_64.cu:11), since 9 >= 9, the 9th time",
    ),
    "missing_arrive_bare": ("not checked: there is no PTX in the dump: compile with -lineinfo",),
}


@pytest.mark.parametrize("name", slow_but(["missing_arrive_bare"], CHECKED))
def test_what_check_says_of_the_launch(capsys: pytest.CaptureFixture[str], name: str) -> None:
    text = said(capsys, str(DUMPS / f"{name}.h200.elf.xz"), "--check")
    assert [each for each in CHECKED[name] if each not in text] == []
    assert name != "missing_arrive" or re.search(r"0x1020 missing_arrive.cu:7\[4\] +1 +3 of 4", text)


def program_of(name: str, folder: Path) -> DumpedProgram:
    """The program of a dump's kernel, beside the CTAs that hang."""
    dump = open_dump(DUMPS / name)
    (launch,) = autopsy_of(dump, name).launches
    cta = launch.hung.numbers[0] if len(launch.hung.numbers) < launch.ctas else None
    made = present(launch_of_dump(dump, dump.grids[0], cta=cta).compiled)
    ptx, file = made.save(folder)
    return DumpedProgram(launch.hung, find(str(ptx), launch=str(file)), f"{folder}/")


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("copy_not_issued.h200", "2,048 >= 2,048"),
        pytest.param("cluster_peer_gone.h100", "4 >= 4", marks=pytest.mark.long),  # check finds another schedule
        pytest.param("lapped.h100", "", marks=pytest.mark.long),  # one warp looks too late: the others go on
        ("remote_arrive_missing.h200", ""),
        ("edge_box.h100", ""),
    ],
)
def test_the_program_comes_to_the_state_of_the_dump(name: str, cause: str, tmp_path: Path) -> None:
    found = program_of(f"{name}.elf.xz", tmp_path).replayed()
    assert found.replayed
    assert found.same == found.of > 0
    assert found.shown is not None
    assert isinstance(found.shown.finding, Deadlock)
    assert [each.because for each in found.shown.finding.led_past[:1]] == ([cause] if cause else [])
    if name == "lapped.h100":
        assert found.shown.finding.blocked[0].missed >= 0


def test_parameters_that_are_aligned_are_where_the_machine_code_has_them(tmp_path: Path) -> None:
    """A tensor map is aligned to 64 bytes, and the first parameter then is not at the first byte of all."""
    kernel = present(program_of("edge_box.h100.elf.xz", tmp_path).target.kernel)
    tensor_map, _, columns, rows = kernel.kernel.launch.parameters
    assert isinstance(tensor_map.content, TensorMap)
    assert (tensor_map.content.box, tensor_map.content.dims) == ((64, 32), (176, 128))
    assert [each.content.value for each in (columns, rows) if isinstance(each.content, Number)] == [176, 128]


@pytest.mark.slow
@pytest.mark.parametrize("other", ["pending", "warp"])
def test_another_state_is_not_that_of_the_dump(other: str, tmp_path: Path) -> None:
    whole = program_of("copy_not_issued.h200.elf.xz", tmp_path)
    deadlock, more = whole.group.deadlock, {"arrivals_missing": 1} if other == "pending" else {"agent": "warp/2"}
    blocked = tuple(replace(each, **more) if each.agent == "warp/0" else each for each in deadlock.blocked)
    group = replace(whole.group, deadlock=replace(deadlock, blocked=blocked))
    assert DumpedProgram(group, whole.target, f"{tmp_path}/").replayed().replayed is False


@pytest.mark.slow
def test_the_launch_is_saved_and_can_be_checked_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "saved"
    assert f"{folder}/_Z14missing_arrivePKfPfi.ptx" in said(capsys, MISSING, "--save-launch", str(folder))
    ptx, launch = sorted(folder.iterdir())[::-1]
    found = json.loads(launch.read_text(encoding="utf-8"))
    assert (found["grid"], found["block"], found["parameters"][2]["value"]) == ([1, 1, 1], [160, 1, 1], 64)
    assert main(["check", "--quick", str(ptx)]) == 1


@pytest.mark.slow
def test_a_corrected_kernel_is_not_said_to_hang(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipesim.answers.autopsy.predicted._MOST_MOVES", 10_000)  # no schedule leads to the hang
    said(capsys, MISSING, "--save-launch", str(tmp_path))
    text = next(tmp_path.glob("*.ptx")).read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    corrected = Path("corrected.ptx")  # a long path may take more than a line
    corrected.write_text(text.replace("%r33, 96, 128, %p4", "%r33, 128, 128, %p4"), encoding="utf-8")
    report = said(capsys, MISSING, "--check", "--ptx", str(corrected))
    assert f"check assumes that {corrected} is the PTX of this machine code: only the" in report
    assert "check does not predict this hang: its verdict is proved" in report


def test_ptx_from_a_folder_such_as_a_cache_has_the_parameters_of_the_machine_code(tmp_path: Path) -> None:
    dump = open_dump(DUMPS / "missing_arrive_bare.h200.elf.xz")
    whole = open_dump(DUMPS / "missing_arrive.h200.elf.xz")
    (tmp_path / "AB12").mkdir()
    made = present(launch_of_dump(whole, whole.grids[0]).compiled)
    (tmp_path / "AB12" / "kernel.ptx").write_text(made.ptx, encoding="utf-8")
    (tmp_path / "wider.ptx").write_text(made.ptx.replace(".param .u32", ".param .u64"), encoding="utf-8")
    found = launch_of_dump(dump, dump.grids[0], tmp_path)
    assert found.compiled == made
    (tmp_path / "again.ptx").write_text(made.ptx.replace("96, 128, %p4", "128, 128, %p4"), encoding="utf-8")
    assert "has 2 different ones of this kernel with the" in launch_of_dump(dump, dump.grids[0], tmp_path).reason
    assert "none of the 1 with this" in launch_of_dump(dump, dump.grids[0], tmp_path / "wider.ptx").reason


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
