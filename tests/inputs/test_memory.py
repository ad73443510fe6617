"""A file below 1 MB takes at most 500 MB, whatever it says: each of these took more."""

import json
import lzma
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipesim.answers.views.conclusion import heading
from pipesim.coredump.dump import CoreDump, DumpSection
from pipesim.coredump.elf import parse_elf
from pipesim.model.program_json import dumps, loads
from pipesim.ptx.launch.file import MOST_VALUES
from tests.support.paths import ROOT, with_root
from tests.support.random_programs import FAMILIES
from tests.support.small_ptx import SET_UP, text_of

RING = ROOT / "tests/coredump/dumps/ring.elf.xz"
SHAPE = {"entry": "kernel", "grid": [1, 1, 1], "block": [64, 1, 1]}
MOST_MB = 500
MEASURED = """
import re, sys
from pipesim.cli.main import main
code = main(sys.argv[1:])
print(code, re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1], file=sys.stderr)
"""


def launch(body: str, signature: str = "", **more: object) -> None:
    Path("k.ptx").write_text(text_of(SET_UP.format(first=1, count=1) + body, signature))
    Path("k.json").write_text(json.dumps({"format": "pipesim-launch", "version": 1} | SHAPE | more))


def many_values() -> None:
    free = {"kind": "array", "type": "u8", "count": MOST_VALUES, "free": {"low": 0, "high": 100}}
    arrays = [free | {"offset": n << 24} for n in range(200)]
    launch(" mov.u32 %r10, 1;\n", ".param .u64 a", parameters=[{"kind": "pointer", "contents": arrays}])


def long_vector() -> None:
    launch(f" mov.b64 {{{', '.join(['%r0'] * 100_000)}}}, %rd1;\n")


def packed_zeros() -> None:
    Path("core").write_bytes(lzma.compress(lzma.decompress(RING.read_bytes()) + bytes(300 << 20), preset=0))


def many_rows() -> None:
    table = pq.read_table(ROOT / "traces/h200/producer_consumer-al1-cw2-s2-tb32768-t128-w200-g7.parquet")
    pq.write_table(pa.concat_tables([table.slice(0, 1)] * (1 << 20)).combine_chunks(), "t.parquet")


def many_tiles() -> None:
    for suffix in (".ptx", ".json"):
        shutil.copy(ROOT / f"tests/ptx/kernels/gemm_clc-sm_100a{suffix}", f"k{suffix}")
    right = json.loads(Path("k.json").read_text())
    Path("k.json").write_text(json.dumps(right | {"policies": {"launch_control": 10**9}}))


def many_ctas() -> None:
    body = " ld.param.u64 %rd4, [a];\nhere: atom.global.add.u32 %r10, [%rd4], 1;\n setp.ne.u32 %p9, %r10, 5;\n"
    given = {"parameters": [{"kind": "pointer"}], "grid": [(1 << 31) - 1]}
    launch(f"{body} @%p9 bra here;\n", ".param .u64 a", **given)


def many_barriers() -> None:
    code = [[0, "INIT", n, 1] for n in range(5_000)] + [[0, "ARRIVE", n, 1, 0, -1, 0] for n in range(5_000)]
    own = {"agents": [[0, 0, 1, "r", 0]], "barriers": [[0, "b", n] for n in range(5_000)], "code": [code]}
    empty: dict[str, list[object]] = {name: [] for name in ("named_barriers", "tiles", "loops", "notes", "accesses")}
    Path("p.json").write_text(json.dumps(json.loads(dumps(FAMILIES["rings"](4))) | empty | own))


#: The file that is made, the command, its exit code, and what it says.
SMALL: list[tuple[Callable[[], None], str, int, str]] = [
    (many_values, "check k.ptx --quick", 2, "the counts of its arrays are 209,715,200 together"),
    (long_vector, "check k.ptx --quick", 2, "100,000 operands are in one pair of brackets"),
    (packed_zeros, "autopsy core", 2, "unpacked it has more than 134,217,728 bytes"),
    (many_tiles, "check k.ptx --quick", 2, "launch_control: expected a whole number from 0 to 1,048,576"),
    (many_ctas, "check k.ptx --quick", 3, "more CTAs than are compared"),
    (many_barriers, "check p.json --quick", 3, "more agents and barriers than are followed together"),
    (many_rows, "diff t.parquet t.parquet", 3, "the trace has 1,048,576 records; at most 262,144 are read"),
]


@pytest.mark.sampled(0, 2)
@pytest.mark.parametrize(("make", "words", "code", "said"), SMALL, ids=lambda each: getattr(each, "__name__", None))
def test_it_is_said_in_a_sentence(
    make: Callable[[], None], words: str, code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make()
    assert max(path.stat().st_size for path in tmp_path.iterdir()) < 1 << 20
    ended = subprocess.run(
        [sys.executable, "-c", MEASURED, *words.split()], check=True, capture_output=True, text=True,
        cwd=tmp_path, env=with_root(os.environ),
    )  # fmt: skip
    *words_said, last = ended.stderr.strip().split("\n")
    ended_with, kilobytes = map(int, last.split())
    assert (ended_with, said in ended.stdout + " ".join(words_said)) == (code, True), ended.stderr
    assert kilobytes < MOST_MB << 10


def test_sections_of_a_dump_that_are_all_in_one_place_are_not_all_read() -> None:
    data = bytearray(lzma.decompress(RING.read_bytes()))
    (start,) = struct.unpack_from("<Q", data, 40)
    number, memory = next(parse_elf(bytes(data)).of_kind(DumpSection.SHARED_MEMORY))
    row = struct.pack("<IIQQQQIIQQ", 0, memory.kind, 0, 0, 0, start, memory.link, memory.info, 0, 0)
    for n in range(number, number + 40):
        data[start + 64 * n : start + 64 * (n + 1)] = row
    elf = parse_elf(bytes(data))
    assert sum(each.size for each in elf.sections.values()) <= 2 * len(data)
    assert len(elf.missing) > 30
    assert "sections are not in the file" in " ".join(CoreDump(elf, "core").notes)


def test_a_heading_of_a_program_whose_first_cta_has_no_warps() -> None:
    document = json.loads(dumps(FAMILIES["rings"](4)))
    one = document | {"ctas": 2, "agents": [[1, 0, 0xFFFFFFFF, "r", 0]], "code": [[[0, "COMMIT", 2, -1]]]}
    assert heading(loads(json.dumps(one))).warps == ()
