"""What cuda-gdb printed of a hang, read in place of a core dump: its tables, instructions, registers and memory.

The texts are of cuda-gdb 13.0 attached to kernels of ``tests/hang/kernels`` on an H100, shortened.
"""

import contextlib
import random
import re
from pathlib import Path

import pytest

from pipesim.answers.autopsy.autopsy import autopsy_of
from pipesim.cli.main import main
from pipesim.coredump.dump import open_dump
from pipesim.coredump.gdb_text import GdbDump
from pipesim.errors import CoreDumpError
from pipesim.report.pages.programs.autopsy import autopsy_lines
from tests.coredump.test_hangs import DUMPS

TEXTS = Path(__file__).with_name("gdb")
MISSING, FLAG = ((TEXTS / f"{name}.txt").read_text(encoding="utf-8") for name in ("missing_arrive", "flag_bare"))


def said(text: str) -> str:
    return " ".join(" ".join(autopsy_lines(autopsy_of(GdbDump(text, "x"), "x"), 80)).split())


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (MISSING, ["missing_arrive grid 1 CTA · block 160 threads · sm_90",
                   "warp/0, warp/2 and warp/3 wait for an mbarrier (hang.cuh:19)",  # of which there are no registers
                   "warp/1 waits for mbarrier 0x1008 to complete its phase of parity 0: it has 0 of 1 arrivals",
                   "warp/4 waits for mbarrier 0x1020 to complete its phase of parity 1: it has 3 of 4 arrivals",
                   "✗ hangs: missing_arrive"]),
        (FLAG, ["3 CTAs of it are not in the dump", "CTAs 4 to 7 of 8, all in the same state",
                "warp/1 to warp/3 wait for named barrier 0: 96 of 128 threads arrived",
                "the word at 0x7f0c47f00000 in global memory, which is 2"]),
    ],
)  # fmt: skip
def test_a_text_says_what_a_dump_says(text: str, sentences: list[str]) -> None:
    for each in sentences:
        assert each in said(text)


def test_what_is_not_in_the_text_is_not_known() -> None:
    """Without its instructions a place is not one where a warp runs, nor one that nobody can help."""
    report = said("\n".join(line for line in MISSING.splitlines() if "<_Z" not in line))
    assert "unknown: its code is not in the dump (hang.cuh:19)" in report
    assert "✗" not in report
    assert "no operation" not in said(MISSING)
    assert "mbarrier 0x1020 1 3 of 4" not in said(
        "\n".join(line for line in MISSING.splitlines() if "0x1020:" not in line)
    )
    without = said("\n".join(line for line in MISSING.splitlines() if not line.startswith("R5  ")))  # of the address
    assert "warp/4 waits for an mbarrier" in without
    assert "mbarrier 0x1020" not in without.partition("deadlock")[2]
    unread = said("\n".join(line for line in MISSING.splitlines() if not re.match("R[59] ", line)))  # of no address
    assert "✗" not in unread
    assert "warp/0 to warp/4: it waits for what its registers do not say any more" in unread
    of_an_sm = said("\n".join(line for line in FLAG.splitlines() if not line.startswith("   (")))
    assert "CTAs of it are not in the dump" in of_an_sm
    assert "paste `info cuda threads`" in said(re.sub(r"(?m)^.*\(127,0,0\).*\n|^.*\(128,0,0\)     \(.*\n", "", MISSING))
    with pytest.raises(CoreDumpError, match="no thread of a GPU"):
        GdbDump("(cuda-gdb) bt", "x")
    with pytest.raises(CoreDumpError, match="pipesim diff TRACE"):
        GdbDump("PAR1", "a.parquet")


def test_with_the_machine_code_beside_it() -> None:
    """All waits are known then, without the instructions in the text."""
    dump = open_dump(DUMPS / "missing_arrive.h100.elf.xz")
    (cubin,) = (each for each in dump.images() if b"missing_arrive" in each)
    text = re.sub(r"(?m)^.*<_Z14.*>:.*\n", "", MISSING) + "$1 = (void (*)()) 0x7f9e737ac940 <missing_arrive(int)+1856>"
    report = autopsy_of(GdbDump(text, "x", cubin), "x")
    assert report.launches[0].groups[0].hangs
    assert len(report.launches[0].groups[0].deadlock.blocked) == 5


def test_the_command_takes_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gdb.txt"
    file.write_text("(cuda-gdb) " + MISSING, encoding="utf-8")
    assert main(["autopsy", str(file)]) == 1
    assert "mbarrier 0x1020" in capsys.readouterr().out


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.sampled(2)
def test_damaged_texts(seed: int) -> None:
    choice, made = random.Random(seed), list((MISSING, FLAG)[seed % 2])
    for _ in range(choice.choice((1, 8, 64))):
        at = choice.randrange(len(made))
        made[at : at + choice.randrange(3)] = choice.choice(["", "0", "f", ",", "(", "\n", "9" * 9, "0x", "R"])
    with contextlib.suppress(CoreDumpError):
        said("".join(made))
