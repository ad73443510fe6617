"""Barriers of a dump by the names of the source, where the files are at hand that were compiled."""

from pathlib import Path

import pytest

from pipesim.answers.autopsy.autopsy import autopsy, autopsy_of
from pipesim.coredump.dump import open_dump
from tests.coredump.test_hangs import DUMPS

ROOT = Path(__file__).parents[2]
KERNELS, HEADERS = ROOT / "tests" / "hang" / "kernels", ROOT / "hwkernels" / "ptx_headers"
#: What the source calls the barriers that lack something, in the order of addresses.
NAMES = {
    "missing_arrive.h200": ["0x1008 ring.full[1]", "0x1020 ring.empty[1]"],
    "wrong_count.h200": ["0x1000 ring.full[0]", *(f"{0x1018 + 8 * n:#x} ring.empty[{n}]" for n in range(3))],
    "copies_not_committed.h200": ["0xc00 ring.full[0]"],
    "setmaxnreg_light.h200": ["0xc80 started[0]"],
    "gluon_turn.h100": ["0x420 full[0]"],
}


def beside_sources(name: str, folder: Path) -> Path:
    """A dump in a folder with the sources of all kernels, and the header as it was when the dumps were made."""
    old = Path(__file__).parent / "sources" / "hang.cuh"
    for path in (*filter(Path.is_file, KERNELS.iterdir()), *HEADERS.glob("*.cuh"), old, DUMPS / f"{name}.elf.xz"):
        (folder / path.name).write_bytes(path.read_bytes())
    return folder / f"{name}.elf.xz"


@pytest.mark.sampled(2, 3)
@pytest.mark.parametrize("name", NAMES)
def test_barriers_have_the_names_of_the_source(name: str, tmp_path: Path) -> None:
    group = autopsy(beside_sources(name, tmp_path)).launches[0].hung
    lacking = [each for each in group.barriers if each.waiting or each.pending != each.count]
    assert [each.name for each in lacking] == NAMES[name]
    waits = {each.barrier for each in group.deadlock.blocked}
    assert {each.name.partition(" ")[2] for each in lacking if each.waiting} <= waits


@pytest.mark.sampled(1, 1)
@pytest.mark.parametrize("changed", ["missing_arrive.cu", "hang.cuh", "mbarrier.cuh"])
def test_a_file_that_has_another_size_says_no_name(changed: str, tmp_path: Path) -> None:
    dump = beside_sources("missing_arrive.h200", tmp_path)
    (tmp_path / changed).write_text("\n" + (tmp_path / changed).read_text(encoding="utf-8"), encoding="utf-8")
    report = autopsy(dump)
    assert {each.name for each in report.launches[0].hung.barriers if each.waiting} == {
        "0x1008 ring at 0x1000 [1 of 3]", "0x1020 ring at 0x1018 [1 of 3]"
    }  # fmt: skip


def test_an_anonymous_autopsy_reads_no_source(tmp_path: Path) -> None:
    dump = beside_sources("missing_arrive.h200", tmp_path)
    report = autopsy_of(open_dump(dump), str(dump), anonymous=True)
    assert all(" ring at 0x10" in each.name for each in report.launches[0].hung.barriers)
