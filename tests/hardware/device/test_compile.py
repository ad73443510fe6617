from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from hwkernels.device import compile as compiling
from hwkernels.device.compile import _MAGIC, _only_kernel, _read_cache, compile_cubin
from hwkernels.device.sources import PACKAGE, headers, source_file
from pipesim.errors import CompileError, MissingExtraError, UsageError
from pipesim.process.temporary import cache_folder
from tests.support.lanes import long_but, slow_but

SOURCE = source_file("producer_consumer.cu")
SMALL = {"STAGES": 2, "TILE_BYTES": 1024, "CONSUMER_WARPS": 1, "ARRIVE_LANES": 1}
TINY = 'extern "C" __global__ void tiny(int *out) {{ *out = {value}; }}\n'


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "pipesim" / "cubin"


@pytest.fixture
def tiny(tmp_path):
    folder = tmp_path / "kernel"
    folder.mkdir()
    path = folder / "tiny.cu"
    path.write_text(TINY.format(value="VALUE"))
    return path


RINGS = [(4, 16384, 2, 1), (1, 16, 1, 1), (2, 1008, 3, 32), (32, 4112, 8, 32), (1, 232000, 1, 1)]


@pytest.mark.parametrize("ring", long_but([RINGS[3]], slow_but([], RINGS)))
def test_every_build_compiles_without_a_warning(ring):
    defines = dict(zip(("STAGES", "TILE_BYTES", "CONSUMER_WARPS", "ARRIVE_LANES"), ring, strict=True))
    builds = [(0, 0, 0), *product((1,), (0, 1, 2), (0, 1)), (0, 0, 1)]
    hashes = set()
    for trace, clock, memory in builds:
        flags = {"PIPESIM_TRACE": trace, "PIPESIM_CLOCK": clock, "PIPESIM_MEMORY": memory}
        compiled = compile_cubin(SOURCE, defines | flags)
        assert compiled.log == ""
        assert compiled.entry == "producer_consumer"
        assert compiled.cubin.startswith(b"\x7fELF")
        hashes.add(compiled.kernel_hash)
    assert len(hashes) == len(builds)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"STAGES": 33}, "STAGES must be 1..32"),
        ({"TILE_BYTES": 24}, "TILE_BYTES must be a positive multiple of 16"),
        ({"CONSUMER_WARPS": 9}, "CONSUMER_WARPS must be 1..8"),
        ({"ARRIVE_LANES": 2}, "ARRIVE_LANES must be 1 or 32"),
    ],
)
def test_parameters_that_the_kernel_refuses(wrong, message):
    with pytest.raises(CompileError, match=message):
        compile_cubin(SOURCE, SMALL | wrong)


def test_a_failure_shows_the_whole_log(tiny):
    tiny.write_text('extern "C" __global__ void tiny() { first_mistake(); }\n' + "".join(
        f"void line{i}() {{ mistake_number_{i}(); }}\n" for i in range(40)
    ))  # fmt: skip
    with pytest.raises(CompileError) as caught:
        compile_cubin(tiny, {"VALUE": 1})
    text = str(caught.value)
    assert "NVRTC_ERROR_COMPILATION" in text
    assert "-DVALUE=1" in text
    assert 'identifier "first_mistake" is undefined' in text
    assert all(f'identifier "mistake_number_{i}" is undefined' in text for i in range(40))
    assert "tiny.cu(1)" in text


def test_one_kernel_a_file(tiny):
    tiny.write_text(TINY.format(value=1) + TINY.format(value=2))
    with pytest.raises(CompileError, match=r'tiny\.cu has 2 extern "C" kernels'):
        compile_cubin(tiny, {})


def _forbid_nvrtc(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("NVRTC was called")

    monkeypatch.setattr(compiling, "_run_nvrtc", refuse)


def test_the_second_time_comes_from_the_cache(tiny, own_cache, monkeypatch):
    assert cache_folder("cubin") == own_cache
    first = compile_cubin(tiny, {"VALUE": 1})
    assert [path.name for path in own_cache.iterdir()] == [f"{first.kernel_hash}.cubin"]
    _forbid_nvrtc(monkeypatch)
    assert compile_cubin(tiny, {"VALUE": 1}) == first
    with pytest.raises(AssertionError, match="NVRTC was called"):
        compile_cubin(tiny, {"VALUE": 2})


def test_a_process_whose_launches_are_caught_compiles_again(tiny, own_cache, monkeypatch):
    first = compile_cubin(tiny, {"VALUE": 1})
    ran = []
    run = compiling._run_nvrtc
    monkeypatch.setattr(compiling, "_run_nvrtc", lambda *given: ran.append(given) or run(*given))
    assert compile_cubin(tiny, {"VALUE": 1}) == first
    assert ran == []
    monkeypatch.setenv("PIPESIM_LAUNCHES_SPOOL", "somewhere")
    assert compile_cubin(tiny, {"VALUE": 1}) == first
    assert len(ran) == 1


FORGED = {
    "a log longer than the entry": (1000).to_bytes(4, "little") + b"log" + b"\x7fELF",
    "a log that is no text": (2).to_bytes(4, "little") + b"\xff\xfe" + b"\x7fELF",
    "nothing after the log": (3).to_bytes(4, "little") + b"log",
    "no length of the log": b"\0",
}


@pytest.mark.parametrize("body", FORGED.values(), ids=FORGED)
def test_a_forged_entry_is_no_entry(tmp_path, body):
    """Its checksum is right: whoever wrote it knows how to make one."""
    path = tmp_path / "forged.cubin"
    path.write_bytes(_MAGIC + hashlib.sha256(body).digest() + body)
    assert _read_cache(path) is None


def test_an_entry_that_is_no_ordinary_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "fifo.cubin")
    assert _read_cache(tmp_path / "fifo.cubin") is None
    body = (3).to_bytes(4, "little") + b"log" + b"\x7fELF"
    (tmp_path / "right.cubin").write_bytes(_MAGIC + hashlib.sha256(body).digest() + body)
    assert _read_cache(tmp_path / "right.cubin") == (b"\x7fELF", "log")


@pytest.mark.parametrize(
    "text",
    ["__global__ " + "_" * 5000, "__global__ __launch_bounds__(" + "(" * 5000, "/*" * 50_000, "__global__ " * 1000],
)
def test_a_source_in_which_a_kernel_is_looked_for_in_vain(text):
    with pytest.raises(UsageError, match=r"no kernel was found in k\.cu"):
        _only_kernel(Path("k.cu"), text.encode())


def test_a_header_beside_the_kernel_is_part_of_the_key(tiny, own_cache):
    (tiny.parent / "other.cuh").write_text("// one\n")
    first = compile_cubin(tiny, {"VALUE": 1})
    (tiny.parent / "other.cuh").write_text("// two\n")
    second = compile_cubin(tiny, {"VALUE": 1})
    assert first.kernel_hash != second.kernel_hash
    assert len(list(own_cache.iterdir())) == 2


def test_the_hash_does_not_depend_on_the_place(tiny, own_cache, tmp_path):
    moved = shutil.copytree(tiny.parent, tmp_path / "moved")
    assert compile_cubin(moved / tiny.name, {"VALUE": 1}) == compile_cubin(tiny, {"VALUE": 1})


@pytest.mark.sampled(1)
@pytest.mark.parametrize("damage", [b"", b"pipesim-cubin-1\n", "cut", "flip"])
def test_a_damaged_entry_is_compiled_again(tiny, own_cache, damage):
    first = compile_cubin(tiny, {"VALUE": 1})
    (entry,) = own_cache.iterdir()
    whole = entry.read_bytes()
    cut, flip = whole[: len(whole) // 2], whole[:-1] + bytes([whole[-1] ^ 1])
    entry.write_bytes({"cut": cut, "flip": flip}.get(damage, damage))
    assert compile_cubin(tiny, {"VALUE": 1}) == first
    assert entry.read_bytes() == whole
    assert list(own_cache.iterdir()) == [entry]


def test_a_cache_that_cannot_be_written_is_no_error(tiny, own_cache):
    own_cache.parent.mkdir(parents=True)
    own_cache.write_text("a file where the folder should be")
    assert compile_cubin(tiny, {"VALUE": 1}).entry == "tiny"


def test_nor_is_a_disk_that_is_full_and_nothing_is_left(tiny, own_cache, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert compile_cubin(tiny, {"VALUE": 1}).entry == "tiny"
    assert list(own_cache.iterdir()) == []


def test_nvrtc_missing(tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(MissingExtraError) as caught:
        compile_cubin(tiny, {"VALUE": 1})
    assert caught.value.correction == "pip install 'pipesim[gpu]'"


def _without_macros(text: str) -> str:
    """The source as if its author had never heard of the recorder."""
    text = text.replace('#include "recorder.cuh"', "struct PipesimCta;")
    text = re.sub(r"\s*\bPIPESIM_(KERNEL_PARAM|PARAM|PASS|STOP)\b", "", text)
    text = text.replace("PIPESIM_BEFORE(", "(")
    text = re.sub(r"\n#define (RECORDS_BEHIND|RECORD_EXPECT|PIPESIM_CHECKED|PIPESIM_ROOM)\b(.*\\\n)*.*", "", text)
    said = r"AGENT|AT|SAY|RECORD(_AGAIN|_IF)?|ANCHOR|FLUSH"
    while match := re.search(rf"\b(PIPESIM_({said})|RECORD_EXPECT)\(", text):
        end, depth = match.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        text = text[: match.start()] + text[end:]
    return text


@pytest.mark.slow
@pytest.mark.parametrize("ring", [(2, 1024, 1, 1), (4, 4112, 3, 32)])
def test_switched_off_it_is_as_if_it_were_not_there(tmp_path, ring):
    for path in headers():
        if path.name != "recorder.cuh":
            (tmp_path / path.name).write_text(_without_macros(path.read_text()))
    bare = tmp_path / SOURCE.name
    bare.write_text(_without_macros(SOURCE.read_text()))
    assert set(re.findall(r"PIPESIM_\w+", bare.read_text())) == {"PIPESIM_FAULT", "PIPESIM_TABLE"}
    defines = dict(zip(("STAGES", "TILE_BYTES", "CONSUMER_WARPS", "ARRIVE_LANES"), ring, strict=True))
    off = compile_cubin(SOURCE, defines | {"PIPESIM_TRACE": 0})
    assert off.cubin == compile_cubin(bare, defines | {"PIPESIM_TRACE": 0}).cubin
    assert off.cubin != compile_cubin(SOURCE, defines | {"PIPESIM_TRACE": 1}).cubin


@pytest.mark.slow
def test_importing_needs_nothing_heavy():
    modules = sorted(
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for path in PACKAGE.rglob("*.py")
        if path.stem != "__init__"
    )
    assert len(modules) > 30
    code = "import sys\n" + "".join(f"import {name}\n" for name in modules)
    code += (
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'cuda', 'simpy', 'rich', 'pyarrow', 'numpy'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert done.stdout == "['numpy']\n"
