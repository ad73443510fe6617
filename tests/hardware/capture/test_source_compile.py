"""Kernels that are not ours, compiled by NVRTC, and by nvcc where there is one; switched off, nothing is recorded."""

import shutil
import subprocess

import pytest

from hwkernels.device.compile import compile_source
from hwkernels.device.sources import RECORDER
from pipesim.errors import CompileError, UsageError
from tests.support.lanes import long_after, slow_after
from tests.support.paths import EXAMPLES

ROWSUM = EXAMPLES / "rowsum.cu"
OURS = ("PIPESIM_", '"recorder.cuh"', '"table.cuh"')  #: what the lines of the recorder have
BUILDS = [{}, {"PIPESIM_CLOCK": "1"}, {"PIPESIM_CLOCK": "2"}, {"PIPESIM_EAGER": "1"}, {"PIPESIM_CHECKED": "0"}]
NVCC = shutil.which("nvcc")
FAR = {"PIPESIM_TRACE": "1", "PIPESIM_CLOCK": "2", "PIPESIM_MEMORY": "0", "PIPESIM_CHECKED": "0"}


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize("defines", [{}, {"STAGES": "2", "MATH_WARPS": "4"}])
def test_switched_off_it_is_the_machine_code_of_before(tmp_path, defines):
    """The recorder is whole lines: without them it is the kernel as it was before, and compiles to the same."""
    lines = ROWSUM.read_text().splitlines(keepends=True)
    without = [line for line in lines if not any(word in line for word in OURS)]
    assert len(lines) - len(without) == 23  # as docs/own-kernel.md says
    before = tmp_path / "rowsum.cu"
    before.write_text("".join(without))
    off = compile_source(ROWSUM, defines | {"PIPESIM_TRACE": "0"})
    assert off.cubin == compile_source(before, defines | {"PIPESIM_TRACE": "0"}).cubin
    assert off.cubin != compile_source(ROWSUM, defines | {"PIPESIM_TRACE": "1"}).cubin
    assert off.entry == "_Z7rowSumsPKfPfi"


@pytest.mark.sampled(1, 3)
@pytest.mark.parametrize("switches", BUILDS)
def test_every_traced_build_compiles_without_a_warning(switches):
    compiled = compile_source(ROWSUM, {"PIPESIM_TRACE": "1", **switches})
    assert compiled.log == ""
    assert "PipesimLaunch" in compiled.entry


@pytest.mark.skipif(NVCC is None, reason="there is no nvcc here")
@pytest.mark.parametrize(
    ("standard", "switches"),
    long_after(
        1,
        slow_after(
            0,
            [
                ("c++14", {"PIPESIM_TRACE": "1"}),
                ("c++17", {"PIPESIM_TRACE": "0"}),
                ("c++17", FAR),
                ("c++14", {"PIPESIM_TRACE": "0"}),
                ("c++17", {"PIPESIM_TRACE": "1"}),
                ("c++14", FAR),
            ],
        ),
    ),
)
def test_nvcc_has_nothing_to_say(tmp_path, standard, switches):
    flags = ["-arch=sm_90a", f"-std={standard}", "-Xcompiler", "-Wall,-Wextra,-Werror", "-Werror", "all-warnings"]
    flags += ["-I", str(RECORDER), "-I", str(EXAMPLES), *(f"-D{name}={value}" for name, value in switches.items())]
    assert NVCC is not None
    command = [NVCC, *flags, "-c", str(ROWSUM), "-o", str(tmp_path / "rowsum.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


KERNEL = "__global__ void {name}(int *out) {{ *out = 1; }}\n"


@pytest.fixture
def file(tmp_path):
    def write(text: str):
        path = tmp_path / "k.cu"
        path.write_text(text)
        return path

    return write


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("text", "entry", "lowered"),
    [
        ('extern "C" ' + KERNEL.format(name="k"), "", "k"),
        (KERNEL.format(name="k"), "", "_Z1kPi"),
        ("// __global__ void other(\n/* __global__ void third( */" + KERNEL.format(name="k"), "", "_Z1kPi"),
        ("__global__ void __launch_bounds__((2 + (1)) * 32, 1) k(int *o) { *o = 1; }", "", "_Z1kPi"),
        ("__global__ __cluster_dims__(2, 1, 1) void k(int *o) { *o = 1; }", "", "_Z1kPi"),
        (KERNEL.format(name="k") + KERNEL.format(name="l"), "l", "_Z1lPi"),
        ("namespace n {\n" + KERNEL.format(name="k") + "}", "n::k", "_ZN1n1kEPi"),
        ("template <int N> __global__ void k(int *o) { *o = N; }", "k<4>", "_Z1kILi4EEvPi"),
    ],
)
def test_the_entry(file, text, entry, lowered):
    assert compile_source(file(text), {}, (), entry).entry == lowered


@pytest.mark.parametrize(
    ("text", "fact", "correction"),
    [
        (KERNEL.format(name="k") + KERNEL.format(name="l"), "k.cu has 2 kernels", "name the one to launch: --entry k"),
        ("#define KERNEL __global__\n", "no kernel was found in k.cu", "name the one to launch: --entry NAME"),
    ],
)
def test_an_entry_that_is_not_clear(file, text, fact, correction):
    with pytest.raises(UsageError) as caught:
        compile_source(file(text), {})
    assert (caught.value.fact, caught.value.correction) == (fact, correction)


def test_a_kernel_that_does_not_compile_shows_the_log(file):
    with pytest.raises(CompileError, match='identifier "nothing" is undefined'):
        compile_source(file("__global__ void k() { nothing(); }"), {})
    with pytest.raises(CompileError, match="other"):
        compile_source(file(KERNEL.format(name="k")), {}, (), "other")


def test_headers_are_read_where_they_lie(file, tmp_path):
    """A header elsewhere is part of the hash although it is not in the source: the machine code is."""
    folder = tmp_path / "include"
    folder.mkdir()
    source = file('#include "value.h"\n__global__ void k(int *o) { *o = VALUE; }')
    hashes = []
    for value in (1, 2, 1):
        (folder / "value.h").write_text(f"#define VALUE {value}\n")
        compiled = compile_source(source, {}, (f"-I{folder}",))
        hashes.append(compiled.kernel_hash)
    assert hashes[0] == hashes[2] != hashes[1]
    assert compiled.options == ("--gpu-architecture=sm_90a", "--std=c++17", f"-I{folder}")
    assert compile_source(source, {}, (f"-I{folder}", "-std=c++20")).options[1:] == (f"-I{folder}", "-std=c++20")
