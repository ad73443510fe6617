"""From a program to verdicts: ``pipesim launches`` in a process of its own, over a driver and a CUPTI without a GPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipesim.ptx.kernel import read_kernel
from tests.support import fake_cuda
from tests.support.fake_cuda import FakeCuda
from tests.support.paths import ROOT

#: A ring with one tile for each iteration that the first word at its pointer asks for; and kernels without a barrier.
CODE = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry ring__128_8_4_24(.param .align 64 .b8 m[128], .param .u64 p, .param .u32 n, .param .align 8 .b8 s[24])
.maxnreg 96
{
 .reg .pred %p<9>;
 .reg .b32 %r<9>;
 .reg .b64 %rd<9>;
 ld.param.u64 %rd1, [p];
 ld.global.u32 %r1, [%rd1];
 mov.u32 %r2, 0;
again:
 bar.sync 0;
 add.u32 %r2, %r2, 1;
 setp.lt.u32 %p1, %r2, %r1;
 @%p1 bra again;
 ret;
}
.visible .entry copy__8_4(.param .u64 p, .param .u32 n) { ret; }
.visible .entry killed__8(.param .u64 p) { bar.sync 0; ret; }
"""
#: The same in Python, with ctypes: the module, a kernel, and a launch with the values given.
PROGRAM = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)
module, function = ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuModuleLoadData(ctypes.byref(module), open(sys.argv[1], "rb").read() + b"\\0") == 0
for name in sys.argv[2:]:
    assert cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode()) == 0
    values = [ctypes.create_string_buffer(int(size)) for size in name.partition("__")[2].split("_")]
    places = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    assert cuda.cuLaunchKernel(function, 4, 1, 1, 128, 1, 1, 64, None, places, None) == 0
print("done")
"""


@pytest.fixture(scope="module")
def fake(tmp_path_factory) -> FakeCuda:
    made = fake_cuda.built(tmp_path_factory.mktemp("fake"))
    (made.folder / "code.ptx").write_text(CODE)
    (made.folder / "program.py").write_text(PROGRAM)
    return made


def caught(fake: FakeCuda, folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Run ``pipesim launches`` with these words in a folder."""
    line = [sys.executable, "-m", "pipesim", "launches", *map(str, words)]
    environment = fake.environment() | {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(fake.folder / "cache")}
    environment |= {"COLUMNS": "100"}
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)


class TestPython:
    @pytest.mark.slow
    def test_a_program_is_observed_and_its_launch_files_are_read(self, fake: FakeCuda, tmp_path: Path) -> None:
        code, program = fake.folder / "code.ptx", fake.folder / "program.py"
        done = caught(fake, tmp_path, "--", sys.executable, program, code, "ring__128_8_4_24", "copy__8_4", "copy__8_4")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("done\n")
        assert "    ring__128_8_4_24.json  grid 4 · block 128\n" in done.stdout
        assert "  no barrier\n    copy__8_4  2 launches\n" in done.stdout
        found = read_kernel(tmp_path / "launches" / "ring__128_8_4_24.ptx")
        assert found.program.agents
        index = json.loads((tmp_path / "launches" / "launches.json").read_text())
        assert [(each["name"], each["launches"]) for each in index["kernels"]] == [
            ("ring__128_8_4_24", 1),
            ("copy__8_4", 2),
        ]

    @pytest.mark.slow
    def test_a_program_that_its_kernel_kills_leaves_its_launch(self, fake: FakeCuda, tmp_path: Path) -> None:
        words = ("--", sys.executable, fake.folder / "program.py", fake.folder / "code.ptx", "killed__8")
        done = caught(fake, tmp_path, *words)
        assert done.returncode == 137
        assert (tmp_path / "launches" / "killed__8.json").is_file()


#: A part of a process: what is launched before the block is not recorded.
PART = """
import subprocess, sys
import pipesim
source = open(sys.argv[1]).read()
sys.argv[1:] = [sys.argv[2], "ring__128_8_4_24"]
exec(source)
with pipesim.capture_launches("out", kernels=["ring*"]) as captured:
    sys.argv[2:] = ["ring__128_8_4_24", "ring__128_8_4_24", "copy__8_4"]
    exec(source)
    print(repr(captured))
print(repr(captured))
print(len(captured.launches), [each.launch.name for each in captured.launches], captured.report.kernels[0].launches)
print(repr(captured.check())[:15])
"""


@pytest.mark.slow
def test_a_part_of_a_process(fake: FakeCuda, tmp_path: Path) -> None:
    line = [sys.executable, "-c", PART, str(fake.folder / "program.py"), str(fake.folder / "code.ptx")]
    environment = fake.environment() | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "done", "done", "<CapturedLaunches out: capturing>", "<CapturedLaunches out: 1 launch file>",
        "1 ['ring__128_8_4_24.json'] 2", "<LaunchVerdicts",
    ]  # fmt: skip


@pytest.mark.slow
class TestInjected:
    def test_python_that_observes_itself_is_not_observed_twice(self, fake: FakeCuda, tmp_path: Path) -> None:
        words = ("--inject", "--", sys.executable, fake.folder / "program.py", fake.folder / "code.ptx", "killed__8")
        done = caught(fake, tmp_path, *words)
        index = json.loads((tmp_path / "launches" / "launches.json").read_text())
        assert (done.returncode, index["notes"]) == (137, [])
        assert [len(each["caught"]) for each in index["kernels"]] == [1]

    def test_a_verdict_for_each(self, fake: FakeCuda, tmp_path: Path) -> None:
        script = '"$0" data "$1" contents 3 launch ring__128_8_4_24 contents 5 launch ring__128_8_4_24'
        done = caught(
            fake, tmp_path, "--check", "--inject", "--json", "--", "sh", "-c", script, fake.folder / "program",
            fake.folder / "code.ptx",
        )  # fmt: skip
        document = json.loads(done.stdout)
        assert done.returncode == document["exit_code"] == 0
        (kernel,) = document["report"]["kernels"]
        assert {each["verdict"] for each in kernel["caught"]} == {"proved"}
        assert kernel["launches"] == 2
