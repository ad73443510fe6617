"""A core dump of an H200 (driver 580): a ring whose consumer 1 did not give stage 2 back at tile 17."""

import gzip
import lzma
from pathlib import Path

import pytest

from pipesim.answers.autopsy.autopsy import autopsy, autopsy_of
from pipesim.answers.views.autopsy import UNKNOWN_LANES
from pipesim.answers.views.conclusion import Conclusion
from pipesim.cli.main import main
from pipesim.coredump.dump import CoreDump, open_dump
from pipesim.coredump.elf import parse_elf
from pipesim.errors import CoreDumpError
from pipesim.report.pages.programs.autopsy import autopsy_lines
from tests.coredump.mutations import damaged, outcome

RING = Path(__file__).parent / "dumps" / "ring.elf.xz"
DATA = lzma.decompress(RING.read_bytes())


def test_what_the_tables_say() -> None:
    dump = open_dump(RING)
    (device,), (grid,), (cta,) = dump.devices, dump.grids, dump.ctas
    assert (device.arch, device.sms) == ("sm_90", 132)
    assert (grid.grid, grid.block, grid.registers, len(grid.parameters)) == ((1, 1, 1), (160, 1, 1), 28, 24)
    assert [len(warp.lanes) for warp in cta.warps] == [32, 32, 32, 32, 1]
    assert dump.registers(cta.warps[4], cta.warps[4].lanes[0])[7] == 0x1028  # the address that the producer waits at
    assert dump.memory(grid.banks[0][0], 4) == (160).to_bytes(4, "little")  # constant bank 0 begins with the block


def test_the_barrier_that_lacks_an_arrival_and_who_gave_one_less() -> None:
    (launch,) = autopsy(RING).launches
    (group,) = launch.groups
    words = {each.name: (each.pending, each.count, each.phase) for each in group.barriers}
    assert words["0x1010 ring at 0x1000 [2 of 3]"] == (1, 1, 0)
    assert words["0x1028 ring at 0x1018 [2 of 3]"] == (1, 4, 1)
    found = group.deadlock
    assert [(each.agent, each.barrier, each.parity, each.phase_now) for each in found.blocked] == [
        *((f"warp/{n}", "ring at 0x1000 [2 of 3]", 0, 6) for n in range(4)),
        ("warp/4", "ring at 0x1018 [2 of 3]", 1, 5),
    ]
    assert found.blocked[4].suppliers[0].agent == "warp/1"
    assert found.one_sided[0].tallies == ((6, ("warp/0", "warp/2", "warp/3")), (5, ("warp/1",)))
    assert found.cycle == ("warp/0", "warp/4")


@pytest.mark.slow
def test_a_packed_dump_is_read_as_it_is(tmp_path: Path) -> None:
    plain, packed = tmp_path / "core", tmp_path / "core.gz"
    plain.write_bytes(DATA)
    packed.write_bytes(gzip.compress(DATA, 1))
    assert autopsy(plain).launches == autopsy(packed).launches == autopsy(RING).launches


def test_a_dump_that_was_cut_off_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(CoreDumpError, match=r"nothing can be read.*\n.*\n.*before the table of its sections"):
        CoreDump(parse_elf(DATA[: len(DATA) // 2]), "core")
    cut = tmp_path / "core.xz"
    cut.write_bytes(RING.read_bytes()[:-5_000])
    with pytest.raises(CoreDumpError, match=r"it cannot be unpacked to its end|before the table"):
        autopsy(cut)


def test_of_a_dump_whose_last_headers_are_missing_the_others_are_used() -> None:
    (start,) = (int.from_bytes(DATA[40:48], "little"),)
    report = autopsy_of(CoreDump(parse_elf(DATA[: start + 64 * 690]), "core"), "core")  # warp 4 has lost its lanes
    (group,) = report.launches[0].groups
    assert [each.agent for each in group.deadlock.blocked] == ["warp/0", "warp/1", "warp/2", "warp/3"]
    assert {(each.phase_now, each.given) for each in group.deadlock.blocked} == {(-1, -1)}
    assert (group.deadlock.finished, group.hangs) == ((), False), "the warp that is missing need not have ended"
    assert [(each.warps, each.does) for each in group.others] == [(("warp/4",), UNKNOWN_LANES)]
    assert "where a warp waits is not known" in " ".join(" ".join(autopsy_lines(report, 80)).split())
    assert report.notes == ("16 of its 706 sections are not in the file, from number 690 on",)


@pytest.mark.parametrize("data", [b"", b"\x7fELF", DATA[:64], b"\0" * 4096, DATA[:16] + b"\x02" + DATA[17:]])
def test_what_is_no_dump_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "core").write_bytes(data)
    with pytest.raises(CoreDumpError):
        autopsy(tmp_path / "core")


@pytest.mark.slow
@pytest.mark.parametrize("count", [10, pytest.param(200, marks=pytest.mark.long)])
def test_damage_ends_in_no_traceback(count: int) -> None:
    found = [outcome(damaged(DATA, seed)) for seed in range(count)]
    assert found.count("findings") > 0.3 * count
    assert found.count("refused") > 0.1 * count


@pytest.mark.slow
def test_where_a_warp_runs_no_hang_is_claimed() -> None:
    """Consumer 0 is put behind its last wait: it runs, and may bring what the others wait for."""
    dump = open_dump(RING)
    (cta,) = dump.ctas
    table, row = cta.warps[0].section, dump.elf.sections[cta.warps[0].section].row
    made = bytearray(DATA)
    for lane in range(32):
        at = dump.elf.sections[table].offset + row * lane
        pc = int.from_bytes(made[at : at + 8], "little") - 0x1950 + 0x660  # among its loads and additions
        made[at : at + 8] = pc.to_bytes(8, "little")
    report = autopsy_of(CoreDump(parse_elf(bytes(made)), "core"), "core")
    (group,) = report.launches[0].groups
    assert [(each.warps, each.does) for each in group.others] == [(("warp/0",), "nothing: it runs")]
    assert (report.findings, report.conclusion) == ((), Conclusion.UNKNOWN)
    assert "not known to hang: a warp runs" in " ".join(" ".join(autopsy_lines(report, 80)).split())


@pytest.mark.slow
def test_the_folder_of_one_dump_is_that_dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "core.host.7").write_bytes(DATA)
    assert main(["autopsy", str(tmp_path)]) == main(["autopsy", str(tmp_path / "core.host.7")])
    first, second = capsys.readouterr().out.split("✗ hangs: ring\n")[:2]
    assert first == second
    (tmp_path / "core.host.8").write_bytes(DATA)
    main(["autopsy", str(tmp_path)])
    said = capsys.readouterr().err
    assert "is a folder with 2 core dumps" in said
    assert "core.host.7" in said
