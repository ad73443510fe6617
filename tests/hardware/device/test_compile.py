import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from hwkernels.device import compile as compiling
from hwkernels.device.compile import _only_kernel, compile_cubin
from hwkernels.device.sources import PACKAGE, source_file
from pipesim.errors import CompileError, MissingExtraError, UsageError
from pipesim.process.files import cache_folder
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


@pytest.mark.sampled(1, 2)
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


def test_nvrtc_missing(tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(MissingExtraError) as caught:
        compile_cubin(tiny, {"VALUE": 1})
    assert caught.value.correction == "pip install 'pipesim[gpu]'"


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
