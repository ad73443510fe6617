"""Kernels recorded by a program in C with the header: its files are those of pipesim, over a driver without a GPU."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hwkernels.rewriter.assemble import find_ptxas
from pipesim.cli.main import main
from pipesim.conform.agreement import Agreement
from pipesim.launches.record.buffer_file import LaunchEnd, read_record_file
from pipesim.launches.record.gather import HEADER, compare_with_program, decoded_trace, kernel_of, write_instrumented
from pipesim.model.ending import Ending
from pipesim.ptx.launch.file import launch_json
from pipesim.trace.files import read_trace
from tests.support import fake_cuda
from tests.support.documents import faults
from tests.support.fake_cuda import FakeCuda
from tests.support.recordable import HANGS, PTX, RIGHT, buffer_after_a_launch, launch_of
from tests.support.recorded_programs import write_program

PROGRAM = """
#include "pipesim_record.h"
int main(int argc, char **argv) {
  CUcontext context;
  CUmodule module;
  CUfunction function;
  CUdeviceptr memory;
  unsigned n = 5;
  void *values[] = {&memory, &n};
  char *image = calloc(1, 1 << 16);
  FILE *in = fopen(argv[1], "rb");
  PipesimRecording recording;
  if (argc < 5 || !in || !fread(image, 1, 1 << 16, in)) return 2;
  cuInit(0);
  cuCtxCreate(&context, 0, 0);
  cuMemAlloc(&memory, 4096);
  if (cuModuleLoadData(&module, image) || cuModuleGetFunction(&function, module, argv[3])) return 3;
  if (pipesim_open(&recording, argv[2])) return 4;
  if (pipesim_begin(&recording, module, NULL)) return 5;
  if (cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, values, NULL)) return 6;
  int status = pipesim_end(&recording, NULL, 0.05);
  if (pipesim_write(&recording, argv[4])) return 7;
  pipesim_close(&recording);
  printf("%d %d\\n", status, *(int *)(uintptr_t)memory);
  return 0;
}
"""
#: What the driver's header calls otherwise than its library does.
NAMES = "".join(f"#define {name} {name}_v2\n" for name in ("cuCtxCreate", "cuMemAlloc", "cuMemHostGetDevicePointer",
                                                           "cuModuleGetGlobal", "cuMemcpyHtoDAsync"))  # fmt: skip
#: What of CUDA's header only this header needs.
DECLARED = """
enum { CUDA_ERROR_NOT_READY = 600, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
       CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76 };
CUresult cuMemHostAlloc(void **place, size_t nbytes, unsigned flags);
CUresult cuMemHostGetDevicePointer(CUdeviceptr *address, void *place, unsigned flags);
CUresult cuMemFreeHost(void *place);
CUresult cuModuleGetGlobal(CUdeviceptr *address, size_t *nbytes, CUmodule module, const char *name);
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t nbytes, CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
CUresult cuDeviceGetName(char *name, int size, CUdevice device);
CUresult cuDriverGetVersion(int *version);
"""


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> FakeCuda:
    made = fake_cuda.built(tmp_path_factory.mktemp("fake"))
    write_program(made.folder)
    folder = made.folder
    for entry in (RIGHT, HANGS):
        data = bytearray(buffer_after_a_launch(entry, stop_flag=True))
        data[:4] = bytes(4)  # the program sets it
        (folder / f"{entry}.left").write_bytes(data)
    shared = Path(fake_cuda.__file__).parent / "cuda.h"
    (folder / "cuda.h").write_text(
        f'#include "{shared}"\n#ifndef DECLARED\n#define DECLARED\n{NAMES}{DECLARED}#endif\n'
    )
    (folder / "own.c").write_text(PROGRAM)
    command = ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{folder}", f"-I{HEADER.parent}", "own.c", "-o"]
    done = subprocess.run([*command, "own", f"-L{folder}", "-l:libcuda.so.1"], cwd=folder, capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return made


def recorded(fake: FakeCuda, folder: Path, entry: str) -> str:
    """Run the program on an instrumented kernel; what it prints."""
    environment = fake.environment() | {"FAKE_CUDA_RECORDS": str(fake.folder / f"{entry}.left")}
    words = [fake.folder / "own", folder / "k.cubin", folder / "k.buffer", entry, folder / "k.records"]
    done = subprocess.run(
        list(map(str, words)), env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


@pytest.fixture(autouse=True)
def assembler() -> Iterator[None]:
    """Which assembler there is is looked for in each test."""
    find_ptxas.cache_clear()
    yield
    find_ptxas.cache_clear()


def use_assembler(fake: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{fake.folder / 'bin'}{os.pathsep}{os.environ['PATH']}")


def instrument(fake: FakeCuda, folder: Path, entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_assembler(fake, monkeypatch)
    before, after, warnings, files = write_instrumented(PTX, launch_of(entry), "k", folder)
    assert (before.registers, after.registers, warnings) == (40, 44, ())
    assert files == ("k.cubin", "k.buffer", "k.ptx", "k.json", "pipesim_record.h")


@pytest.mark.slow
def test_one_that_hangs_is_told_to_end(fake: FakeCuda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instrument(fake, tmp_path, HANGS, monkeypatch)
    assert recorded(fake, tmp_path, HANGS) == "0 1\n"
    assert read_record_file(tmp_path / "k.records").end is LaunchEnd.STOPPED
    text, launch = kernel_of(tmp_path / "k.ptx")
    trace = decoded_trace(tmp_path / "k.records", text, launch)
    assert (trace.meta.status, len(trace.events)) == (Ending.DEADLINE, 25)
    assert compare_with_program(text, launch, trace, "x").agreement is Agreement.HANGS_TOO


@pytest.mark.slow
def test_the_commands(
    fake: FakeCuda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    use_assembler(fake, monkeypatch)
    (tmp_path / "k.ptx").write_text(PTX)
    (tmp_path / "k.json").write_text(launch_json(launch_of()))
    assert main(["instrument", "k.ptx", "--out", "made"]) == 0
    assert capsys.readouterr().out == (
        "hands__8_4   registers 40 → 44 · spills 0 · stack 0\n"
        "written to made: k.cubin, k.buffer, k.ptx, k.json and pipesim_record.h\n"
    )
    assert main(["instrument", "k.ptx", "--out", "made"]) == 2  # there already
    capsys.readouterr()
    assert main(["instrument", "k.ptx", "--out", "made", "--force", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert faults("instrument", document) == []
    assert recorded(fake, tmp_path / "made", RIGHT) == "0 1\n"
    buffer = read_record_file(tmp_path / "made" / "k.records")
    assert (buffer.end, buffer.device, buffer.sms, buffer.capability, buffer.driver) == (
        LaunchEnd.FINISHED, "Fake H200 0", 132, (9, 0), 13000,
    )  # fmt: skip
    capsys.readouterr()
    assert main(["decode", "made/k.records", "--kernel", "made/k.ptx", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert faults("decode", document) == []
    made = {"trace": "made/k.parquet", "kernel": RIGHT, "events": 30, "ending": "finished"}
    assert document | made == document
    assert len(read_trace("made/k.parquet").events) == 30
    assert main(["diff", "made/k.parquet", "--protocol", "made/k.ptx"]) == 0
    capsys.readouterr()
    assert main(["decode", "made/k.buffer", "--kernel", "made/k.ptx", "--out", "x.parquet"]) != 0  # no launch left it
