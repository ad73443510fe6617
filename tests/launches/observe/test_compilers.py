"""Compilers that are watched: the PTX of what NVRTC made, by the hash of the machine code. No GPU is needed."""

import gc
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from pipesim.launches.observe.compilers import (
    Assembler,
    CompiledPtx,
    Source,
    cached_source,
    cute_source,
    hash_of,
    keep_ptx,
    triton_source,
)

KERNEL = 'extern "C" __global__ void kernel() { __syncthreads(); }'
BINDINGS = f"""
from cuda.bindings import nvrtc
_, program = nvrtc.nvrtcCreateProgram({KERNEL.encode()!r}, b"kernel.cu", 0, [], [])
nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=sm_90a"])
_, size = nvrtc.nvrtcGetCUBINSize(program)
image = b" " * size
nvrtc.nvrtcGetCUBIN(program, image)
origin = "NVRTC"
"""
CORE = f"""
from cuda.core import Program, ProgramOptions
program = Program({KERNEL!r}, "c++", ProgramOptions(arch="sm_90a"))
assert type(program).__name__ == "Program" and isinstance(program, Program)
image = program.compile("cubin").code
origin = "cuda.core"
"""


def run(code: str) -> str:
    """What a process of its own prints: what is watched stays changed in a process."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize("before", ["", "import cuda.bindings.nvrtc, cuda.core"], ids=["before", "after"])
@pytest.mark.parametrize("use", [BINDINGS, CORE], ids=["bindings", "core"])
def test_what_nvrtc_made_is_known_whether_it_was_imported_before_or_after(use, before):
    pytest.importorskip("cuda.core")
    watch = "from pipesim.launches.observe.compilers import CompiledPtx, hash_of\nmade = CompiledPtx()\nmade.watch()"
    show = "print(made[hash_of(bytes(image))].origin == origin, b'.entry kernel' in made[hash_of(bytes(image))].text)"
    assert run("\n".join([before, watch, use, show, "made.unwatch()"])) == "True True\n"


@pytest.mark.slow
def test_nothing_is_known_of_what_was_compiled_before():
    pytest.importorskip("cuda.core")
    watch = "from pipesim.launches.observe.compilers import CompiledPtx\nx = CompiledPtx()\nx.watch()\nprint(len(x))"
    assert run(BINDINGS + watch) == "0\n"


def test_imports_are_watched_until_the_end_and_no_longer():
    made = CompiledPtx()
    before = list(sys.meta_path)
    made.watch()
    assert len(sys.meta_path) == len(before) + 1
    made.unwatch()
    assert sys.meta_path == before


def test_cupy_is_watched_and_its_errors_are_not_the_programs(monkeypatch):
    module = ModuleType("cupy_backends.cuda.libs.nvrtc")
    texts = {1: b".entry a", 2: None}
    module.getCUBIN = lambda program: b"cubin %d" % program  # type: ignore[attr-defined]
    module.getPTX = lambda program: texts[program]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    made = CompiledPtx()
    made.watch()
    made.unwatch()
    assert (module.getCUBIN(1), module.getCUBIN(2), module.getCUBIN(2)) == (b"cubin 1", b"cubin 2", b"cubin 2")
    assert made == dict.fromkeys((hash_of(b"cubin 1"), hash_of(b"cubin 1\0")), Source(b".entry a", "CuPy"))


class CompiledKernel:
    """As Triton's, as far as it is looked at."""

    def __init__(self, image: bytes, text: str, function: int) -> None:
        self.asm, self.function = {"cubin": image, "ptx": text}, function


@pytest.mark.slow
def test_triton_keeps_its_ptx_which_is_known_by_machine_code_or_by_handle(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", ModuleType("triton"))
    monkeypatch.setitem(sys.modules, "triton.compiler.compiler", SimpleNamespace(CompiledKernel=CompiledKernel))
    kernels = [CompiledKernel(b"one", ".entry one", 11), CompiledKernel(b"two", ".entry two", 12)]
    assert triton_source(hash_of(b"two"), 99) == Source(b".entry two", "Triton")
    assert triton_source("", 11) == Source(b".entry one", "Triton")
    assert triton_source(hash_of(b"three"), 11) is None  # other machine code, whatever the handle
    del kernels
    gc.collect()
    assert triton_source(hash_of(b"two"), 99) is None


def test_triton_s_and_inductor_s_caches_have_what_another_process_compiled(monkeypatch, tmp_path):
    own, cache = tmp_path / "own", tmp_path / "cache" / "0" / "HASH"
    for folder, image in ((own, b"one"), (cache, b"two"), (tmp_path / "cache" / "0" / "OTHER", b"three")):
        folder.mkdir(parents=True)
        (folder / "kernel[1].cubin").write_bytes(image)
        (folder / "kernel[1].ptx").write_bytes(b".entry " + image)
    (cache / "kernel[1].json").write_text('{"enable_fp_fusion": false, "ptx_options": "--opt-level 2"}')
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "none"))
    monkeypatch.delenv("TRITON_PTXAS_PATH", raising=False)
    for name in ("triton", "torch"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    plain = Source(b".entry one", "Triton's cache")
    assert cached_source(hash_of(b"one"), "kernel[1]", [own]) == plain  # beside a file that the process loaded
    assert cached_source(hash_of(b"two"), "kernel[1]", [own]) is None  # no framework is imported here
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    made = cached_source(hash_of(b"two"), "kernel[1]", [own])
    assert made == Source(b".entry two", "Triton's cache", Assembler("", ("--fmad=false", "--opt-level", "2")))
    assert cached_source(hash_of(b"four"), "kernel[1]", [own]) is None
    assert cached_source(hash_of(b"two"), "kernel1", [own]) is None
    monkeypatch.setenv("TRITON_PTXAS_PATH", sys.executable)
    assert cached_source(hash_of(b"one"), "kernel[1]", [own]) == plain._replace(assembler=Assembler(sys.executable))


def test_compilers_are_told_to_keep_their_ptx_unless_the_program_says_otherwise(monkeypatch, tmp_path):
    cute = ("CUTE_DSL_KEEP", "CUTE_DSL_KEEP_PTX", "CUTE_DSL_KEEP_CUBIN", "CUTE_DSL_DUMP_DIR")
    for name in (*cute, "CUPY_CACHE_IN_MEMORY", "QUACK_CACHE_ENABLED"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    folder = tmp_path / "spool" / "cute"
    assert keep_ptx(folder) == ("CUPY_CACHE_IN_MEMORY", "QUACK_CACHE_ENABLED", *cute)
    assert (os.environ["CUTE_DSL_KEEP"], os.environ["CUTE_DSL_DUMP_DIR"]) == ("ptx,cubin", str(folder))
    assert folder.is_dir()  # which the CuTe DSL does not make: it would write nothing
    assert keep_ptx(tmp_path / "other") == ()
    monkeypatch.delenv("CUTE_DSL_DUMP_DIR")
    monkeypatch.setitem(sys.modules, "cutlass", ModuleType("cutlass"))
    assert keep_ptx(tmp_path / "other") == ()
    assert not (tmp_path / "other").exists()


def test_the_file_of_the_cute_dsl_that_is_beside_the_machine_code_or_is_the_only_one(monkeypatch, tmp_path):
    monkeypatch.setenv("CUTE_DSL_DUMP_DIR", str(tmp_path))
    for name, text in (("a", "1(\n)"), ("b", "1 (\n) // another"), ("c", "12()\n"), ("d", "12()\n")):
        (tmp_path / f"{name}.ptx").write_text(f".visible .entry kernel_{text}")
        (tmp_path / f"{name}.cubin").write_text(name)
    assert cute_source(hash_of(b"b"), "kernel_1") is None  # the package is not imported here
    monkeypatch.setitem(sys.modules, "cutlass", ModuleType("cutlass"))
    assert cute_source(hash_of(b"b"), "kernel_1") == Source(b".visible .entry kernel_1 (\n) // another", "CuTe DSL")
    assert cute_source(hash_of(b"else"), "kernel_1") is None  # it may be of either
    assert cute_source(hash_of(b"else"), "kernel_12") == Source(b".visible .entry kernel_12()\n", "CuTe DSL")
    assert cute_source(hash_of(b"b"), "kernel_2") is None


def test_numba_s_ptx_is_what_it_links(monkeypatch):
    class CUDACodeLibrary:
        def __init__(self, lto: bool, *texts: str) -> None:
            self._lto, self.texts = lto, texts

        def get_cubin(self, cc: object = None) -> object:
            return SimpleNamespace(code="".join(self.texts).encode())

        def get_lto_ptx(self, cc: object = None) -> str:
            return ".entry linked"

        def get_asm_strs(self, cc: object = None) -> tuple[str, ...]:
            return self.texts

    module = ModuleType("numba.cuda.codegen")
    module.CUDACodeLibrary = CUDACodeLibrary  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    made = CompiledPtx()
    made.watch()
    made.unwatch()
    for each in (CUDACodeLibrary(True, "a"), CUDACodeLibrary(False, "b"), CUDACodeLibrary(False, "c", "d")):
        each.get_cubin()
    assert {each.text for each in made.values()} == {b".entry linked", b"b"}


SITE = "pipesim/launches/observe/site"


def observed(tmp_path, program: str, *, path: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """A Python process that is observed as `pipesim launches` has it."""
    root = Path.cwd()
    paths = os.pathsep.join(each for each in (str(root / SITE), path) if each)
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    given = {"PATH": os.environ["PATH"], "PYTHONPATH": paths, "PIPESIM_LAUNCHES_SPOOL": str(tmp_path / "spool")}
    (tmp_path / "spool").mkdir()
    command = [sys.executable, "-P", str(tmp_path / "program.py")]
    return subprocess.run(command, env=given | environment, capture_output=True, text=True, check=False, cwd=tmp_path)


def notes(tmp_path) -> str:
    return "\n".join(file.read_text() for file in (tmp_path / "spool").glob("*.jsonl"))


def test_a_process_without_cupti_runs_as_it_would_and_a_note_says_why(tmp_path):
    done = observed(tmp_path, "import sys; print('ran'); sys.exit(7)", PIPESIM_CUPTI=str(tmp_path / "none.so"))
    assert (done.stdout, done.stderr, done.returncode) == ("ran\n", "", 7)
    said = notes(tmp_path)
    assert "CUPTI is not installed" in said or "there is no CUDA driver" in said


def test_the_sitecustomize_of_the_program_runs_as_it_would(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import builtins\nbuiltins.marked = __file__\n")
    program = """
        import sys
        print(marked.endswith("own/sitecustomize.py"), sys.modules["sitecustomize"].__file__ == marked)
        print([each for each in sys.path if each.endswith("observe/site")])
    """
    done = observed(tmp_path, program, path=str(tmp_path / "own"))
    assert (done.stdout, done.stderr) == ("True True\n[]\n", "")


def test_a_spool_that_is_gone_does_not_harm_the_program(tmp_path):
    done = observed(tmp_path, "print('ran')", PIPESIM_LAUNCHES_SPOOL=str(tmp_path / "gone"))
    assert (done.stdout, done.returncode) == ("ran\n", 0)
    assert done.stderr.startswith("pipesim: the launches of this process are not observed: ")
