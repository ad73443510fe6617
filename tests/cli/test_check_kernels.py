"""``pipesim check PATH``: the kernels of folders, programs and compilers' caches, in a line each."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pipesim.cli.checks import check_kernels
from pipesim.launches.images.fat_binary import EntryKind, entries_at, entry_bytes
from tests.support.fat_binaries import BASE, ZSTD, container, memory
from tests.support.fixture_types import Call
from tests.support.paths import ROOT
from tests.support.small_ptx import SET_UP, text_of

GLUON = ROOT / "tests" / "ptx" / "kernels" / "scale_ws_s3-sm_90a.ptx"
TAIL = ROOT / "tests" / "ptx" / "cta_kinds" / "scale_tail.ptx"
BOX = {"swizzle": 3, "elem_size": 4, "elem_type": 7, "block_size": [32, 32], "fp4_padded": False}
TRITON = {"name": "scale_ws", "num_warps": 4, "shared": 41188, "tensordesc_meta": [BOX, BOX]}
ARGUMENTS = ["x", *(f"x.{n}" for n in range(4)), "y", *(f"y.{n}" for n in range(4)), "columns", "factor"]
SOURCE = f"  tt.func public @scale_ws({', '.join(f'%{each}: i32' for each in ARGUMENTS)}) {{\n"

LAUNCH = {"format": "pipesim-launch", "version": 1, "entry": "g", "grid": [1, 1, 1], "block": [32, 1, 1]}
LAUNCH |= {
    "cluster": [1, 1, 1],
    "dynamic_shared_bytes": 0,
    "registers_per_thread": 0,
    "parameters": [{"kind": "pointer"}],
}
PLAIN_KERNELS = """.version 8.5
.target sm_90
.address_size 64
.visible .entry _Z1fILi32EEvPi(.param .u64 out) .maxntid 64
{
ret;
}
.visible .entry g(.param .u64 out)
{
ret;
}
"""


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))


def rows(call: Call, *words: str) -> list[dict[str, Any]]:
    return list(json.loads(call("check", *words, "--json").out)["kernels"])


@pytest.mark.slow
def test_a_cache_of_triton_and_a_folder_of_launches(call: Call) -> None:
    """Names, boxes and shared memory are Triton's; a launch file says all; what is missing is one list."""
    for name in ("cache/HASH", "cache/launches"):
        Path(name).mkdir(parents=True)
    shutil.copy(GLUON, "cache/HASH/scale_ws.ptx")
    Path("cache/HASH/scale_ws.json").write_text(json.dumps(TRITON))
    Path("cache/HASH/scale_ws.source").write_text(SOURCE)
    Path("cache/HASH/scale_ws.cubin").touch()  # it is not looked at
    Path("cache/launches/g.ptx").write_text(PLAIN_KERNELS.replace("_Z1fILi32EEvPi", "h"))
    for name, block in (("g", 32), ("g-2", 64)):
        Path(f"cache/launches/{name}.json").write_text(json.dumps(LAUNCH | {"block": [block, 1, 1]}))
    said = call("check", "cache", "--jobs", "1")
    assert said.code == 3
    assert "needs --set columns=VALUE" in said.out
    assert "scale_ws · sm_90a · mbarriers · HASH/scale_ws.ptx · grid 1 guessed" in said.out
    assert said.out.count("✓ g · sm_90 · launches/g.ptx · g") == 2
    assert "? 4 kernels: 1 with values missing and 3 proved" in said.out
    assert said.out.endswith("  pipesim check cache --entry scale_ws --set columns=VALUE\n")
    known = rows(call, "cache", "--jobs", "1")
    assert [each["launch"] for each in known] == ["grid 1 guessed", "grid 1, block 64 guessed", "g.json", "g-2.json"]
    assert [each["guessed"] for each in known] == ["grid 1", "grid 1, block 64", "", ""]
    assert call("check", "cache").err.startswith("pipesim: 4 of 4 verdicts are those of an earlier check")
    for path in Path("kept/pipesim/verdicts").iterdir():  # damaged: not there
        path.write_text(path.read_text().replace("proved", "refuted").replace("needs", "wants"))
    assert rows(call, "cache", "--jobs", "1") == known
    given = call("check", "cache/HASH", "--set", "columns=64", "--set", "grid=3", "--quick")
    assert given.code == 0
    assert given.out.startswith("scale_ws   grid 3 CTAs")
    assert given.err == ""  # nothing is guessed


def test_what_is_refuted_or_not_read_decides_the_exit_code(call: Call) -> None:
    for path in (TAIL, TAIL.with_suffix(".json")):
        shutil.copy(path, path.name)
    Path("dump").mkdir()
    Path("dump/plain.ptx").write_text(PLAIN_KERNELS)
    both = call("check", "scale_tail.ptx", "dump", "--jobs", "1", "--no-cache")
    assert both.code == 1
    assert "✗ scale_tail · sm_90a · mbarriers · scale_tail.ptx · scale_tail.json" in both.out
    assert "✓ f<32> · sm_90 · plain.ptx · grid 1, block 64 guessed" in both.out
    assert "needs --set block=THREADS" in both.out
    Path("dump/bad.ptx").write_bytes(b"\xff")
    Path("dump/k.cu").write_text("")
    unread = call("check", "dump", "--jobs", "1")
    assert unread.code == 2
    assert "✗ 2 kernels: 1 proved and 1 with values missing; 1 file could not be read" in unread.out
    assert "pipesim: sources of dump are neither compiled nor run: k.cu; name each, as dump/k.cu\n" in unread.err
    listed = rows(call, "dump", "--list", "--entry", "f<32>")
    assert [(each["name"], each["title"], each["verdict"]) for each in listed] == [("_Z1fILi32EEvPi", "f<32>", "")]
    assert call("check", "dump", "--entry", "f<32>").out.startswith("f<32>   grid 1 CTA")
    Path("of_f.json").write_text(json.dumps(LAUNCH | {"entry": "_Z1fILi32EEvPi", "grid": [2, 1, 1]}))
    assert call("check", "dump/plain.ptx", "--launch", "of_f.json").out.startswith("f<32>   grid 2 CTAs")


@pytest.mark.parametrize(("count", "cluster", "code"), [(2, 1, 3), (2, 2, 0), (3, 2, 1)])
def test_a_cluster_of_one_is_a_guess_where_a_kernel_names_other_ctas(
    call: Call, count: int, cluster: int, code: int
) -> None:
    """CTAs 0 and 1 arrive at each other, and at themselves."""
    ranks = " mapa.shared::cluster.u32 %r5, %r3, 0;\n mapa.shared::cluster.u32 %r6, %r3, 1;\n"
    arrives = "".join(f" @!%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r{n}];\n" for n in (5, 6))
    meet = " barrier.cluster.arrive;\n barrier.cluster.wait;\n"
    waits = "wait:\n mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r3], 0;\n @!%p1 bra wait;\n"
    Path("k.ptx").write_text(text_of(SET_UP.format(first=count, count=1) + meet + ranks + arrives + waits + meet))
    sizes = [f"--set={each}" for each in ("grid=4", "block=64", "cluster=2")[: 1 + cluster]]
    answer = call("check", "k.ptx", "--no-cache", *sizes)
    assert answer.code == code
    assert ("guesses decide it: cluster 1" in " ".join(answer.out.split())) is (code == 3)


def test_the_commands_of_a_list_have_what_was_given(call: Call) -> None:
    Path("dump").mkdir()
    Path("dump/plain.ptx").write_text(PLAIN_KERNELS)
    answer = call("check", "dump", "--set", "grid=2", "-I", "headers", "--jobs", "1")
    assert answer.out.endswith("  pipesim check dump -Iheaders --set grid=2 --entry g --set block=THREADS\n")


def test_machine_code_alone_has_no_verdict(call: Call) -> None:
    """Of a fat binary whose PTX is left out its kernel is named, and nothing said of it."""
    code = next(each for each in entries_at(BASE, memory(ZSTD)) if each.kind == EntryKind.ELF)
    Path("lib.so").write_bytes(container(entry_bytes(code, memory(ZSTD))))
    answer = call("check", "lib.so")
    assert answer.code == 3
    assert answer.out.startswith("  fill · sm_90a · lib.so, sm_90a\n    no PTX: there is machine code only")
    assert "machine code only, for sm_90a" in call("check", "lib.so", "--entry", "nothing").err


def test_a_folder_is_watched(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """What changes is checked again and shown; a round without a change shows nothing."""
    Path("dump").mkdir()
    Path("dump/a.ptx").write_text(PLAIN_KERNELS.replace("g(", "a("))
    rounds: list[int] = []

    def wait(_: float) -> None:
        rounds.append(1)
        if len(rounds) == 2:
            Path("dump/b.ptx").write_text(PLAIN_KERNELS.replace("_Z1f", "_Z1h"))
        if len(rounds) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(check_kernels.watched, "__defaults__", (-1, wait))
    answer = call("check", "dump", "--watch", "--jobs", "1", "--entry", "_Z*")
    assert answer.code == 0
    assert [line.split(" ")[1] for line in answer.out.splitlines() if "guessed" in line] == ["f<32>", "h<32>"]
