"""``pipesim launches --no-gpu``: host code against libraries that note its launches."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipesim.launches.inject import no_gpu_environment
from tests.support.fixture_types import Call

CUDA = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
PTX = ".version 8.5\\n.target sm_90\\n.address_size 64\\n.visible .entry k"
PTX += "(.param .u64 out, .param .u32 n)\\n{ bar.sync 0; ret; }\\n"
PROGRAM = f"""
#include <stddef.h>
const char ptx[] = "\\0{PTX}";
typedef struct {{ unsigned x, y, z; }} dim3;
int cudaMalloc(void **, size_t), cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);
int main(void) {{
    void *out; unsigned n = 7; void *args[] = {{&out, &n}}; dim3 grid = {{3, 2, 1}}, block = {{64, 1, 1}};
    __cudaRegisterFunction(0, ptx, 0, "k", 0, 0, 0, 0, 0, 0);
    cudaMalloc(&out, 1024);
    return cudaLaunchKernel(ptx, grid, block, args, 16, 0) + cudaLaunchKernel(ptx, grid, block, args, 16, 0);
}}
"""


def test_the_libraries_are_built_once_and_kept(tmp_path: Path) -> None:
    compiler = tmp_path / "cc"
    calls = tmp_path / "calls"
    compiler.write_text(
        f"#!{sys.executable}\nimport sys\nfrom pathlib import Path\nout = sys.argv[sys.argv.index('-o') + 1]\n"
        f"Path(out).write_bytes(b'library')\nPath({str(calls)!r}).open('a').write('x')\n"
    )
    compiler.chmod(0o755)
    given = {"CC": str(compiler), "XDG_CACHE_HOME": str(tmp_path / "kept"), "LD_LIBRARY_PATH": "mine"}
    given["LD_PRELOAD"] = "their.so"
    made = no_gpu_environment(tmp_path, "k 8 4\n", 100, given)
    assert no_gpu_environment(tmp_path, "k 8 4\n", 100, given) == made
    assert calls.read_text() == "xxx"
    assert made["LD_PRELOAD"].endswith("/cudart.so:their.so")
    folder = Path(made["LD_PRELOAD"].partition(":")[0]).parent
    assert {each.name for each in folder.iterdir()} == {"cudart.so", "libcuda.so.1", "libnvidia-ml.so.1"}
    assert made["LD_LIBRARY_PATH"] == f"{folder}:mine"
    assert (made["PIPESIM_CC"], made["PIPESIM_SMS"]) == ("100", "148")
    assert Path(made["PIPESIM_SIZES"]).read_text() == "k 8 4\n"


def test_what_it_does_not_see_is_not_asked_for(call: Call) -> None:
    for option in ("--sequence", "--inject"):
        assert call("launches", "--no-gpu", option, "--", "true").err.startswith(
            "pipesim: --no-gpu notes launches alone"
        )


@pytest.mark.long
@pytest.mark.skipif(
    not (CUDA / "include" / "cuda_runtime.h").is_file() or not shutil.which("cc"), reason="no CUDA headers"
)
def test_a_program_runs_without_a_gpu(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two equal launches are one, with its sizes, its parameters, and the PTX that the program has in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))
    Path("app.c").write_text(PROGRAM)
    Path("cudart.c").write_text("int cudaMalloc, cudaLaunchKernel, __cudaRegisterFunction;")
    subprocess.run(["cc", "-shared", "cudart.c", "-o", "libcudart.so"], check=True)
    subprocess.run(["cc", "app.c", "-o", "app", "./libcudart.so"], check=True)
    answer = call("launches", "--no-gpu", "--check", "--", "./app")
    assert answer.code == 0
    assert "✓ k.json" in answer.out
    launch = Path("launches/k.json").read_text()
    sizes = ('"grid": [3, 2, 1]', '"block": [64, 1, 1]', '"dynamic_shared_bytes": 16')
    for words in (*sizes, '"value": 7', '"kind": "pointer"'):
        assert words in launch
    none = call("launches", "--no-gpu", "--out", "none", "--", "true")
    assert none.code == 3
    assert "link the program with nvcc -cudart shared" in none.out
