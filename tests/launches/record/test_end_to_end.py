"""From a program to traces: ``pipesim record`` in a process of its own, over a driver and a CUPTI without a GPU.

The driver gives an instrumented kernel the records that the tests' machine for PTX has made of the same text.
"""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pipesim.cli.main import main
from pipesim.conform.agreement import Agreement
from pipesim.launches.record.gather import compare_with_program
from pipesim.ptx.launch.file import read_launch
from pipesim.trace.files import read_trace
from tests.support import fake_cuda
from tests.support.fake_cuda import FakeCuda
from tests.support.paths import ROOT
from tests.support.recordable import HANGS, PTX, RIGHT, buffer_after_a_launch
from tests.support.recorded_programs import write_program


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> FakeCuda:
    made = fake_cuda.built(tmp_path_factory.mktemp("fake"))
    write_program(made.folder)
    (made.folder / "code.ptx").write_text(PTX)
    (made.folder / "records").write_bytes(buffer_after_a_launch())
    stopped = bytearray(buffer_after_a_launch(HANGS, stop_flag=True))
    stopped[:4] = bytes(4)  # the host sets it
    (made.folder / "stopped").write_bytes(stopped)
    return made


def run(
    fake: FakeCuda, folder: Path, *words: object, records: str = "records", code: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run ``pipesim`` with these words, or Python code, in a folder."""
    here = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"  # the program itself does not find pipesim
    line = [
        sys.executable,
        "-c",
        here + (code or "from pipesim.__main__ import run; raise SystemExit(run())"),
        *map(str, words),
    ]
    environment = fake.environment() | {"PYTHONPATH": str(fake.folder), "COLUMNS": "100"}
    environment |= {"FAKE_CUDA_RECORDS": str(fake.folder / records)}
    environment["PATH"] = f"{fake.folder / 'bin'}{os.pathsep}{environment['PATH']}"
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)


def program(fake: FakeCuda, *kernels: str) -> tuple[object, ...]:
    return (sys.executable, fake.folder / "launching.py", fake.folder / "code.ptx", *kernels)


#: The program's main in a process in Python.
MAIN = """
import ctypes, sys
words = [word.encode() for word in sys.argv[1:]]
ctypes.CDLL(sys.argv[1]).main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None))
ctypes.CDLL(None).fflush(None)
"""


def program_of(fake: FakeCuda) -> tuple[object, ...]:
    return (fake.folder / "program",)


def main_of(fake: FakeCuda) -> tuple[object, ...]:
    (fake.folder / "main.py").write_text(MAIN)
    return sys.executable, fake.folder / "main.py", fake.folder / "program.so"


@pytest.mark.slow
def test_a_program_is_recorded_and_does_what_it_did(fake: FakeCuda, tmp_path: Path) -> None:
    done = run(fake, tmp_path, "record", "--diff", "--", *program(fake, RIGHT, "plain__8_4"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("6 6\n")  # two kernels launched three times, with their hooks, as without recording
    assert "  hands__8_4  Triton           3    40 → 44       0" in done.stdout
    assert "    ✓ hands__8_4.parquet · grid 1 · block 64 · 30 events · finished in" in done.stdout
    assert "  no barrier\n    plain__8_4\n" in done.stdout
    assert "✓ 1 trace of 1 kernel written to recording" in done.stdout
    folder = tmp_path / "recording"
    assert (folder / f"{RIGHT}.ptx").read_text() == PTX
    trace, launch = read_trace(folder / f"{RIGHT}.parquet"), read_launch((folder / f"{RIGHT}.json").read_text(), "x")
    assert compare_with_program(PTX, launch, trace, "x").agreement is Agreement.CONFORMS
    assert (trace.meta.device.name, trace.meta.device.sms, trace.meta.device.driver) == ("Fake H200 0", 132, "13.0")


@pytest.mark.slow
def test_a_kernel_that_hangs_is_stopped_and_explained(fake: FakeCuda, tmp_path: Path) -> None:
    done = run(fake, tmp_path, "record", "--deadline", "0.05", "--json", "--", *program(fake, HANGS), records="stopped")
    assert done.stderr == "3 3\n"
    document = json.loads(done.stdout)
    assert (done.returncode, document["exit_code"]) == (1, 1)
    (one,) = document["report"]["kernels"][0]["recorded"]
    assert (one["ending"], one["agreement"]) == ("deadline", "hangs_too")
    assert any("compute waits for phase 3 of bars[1]" in line for line in one["page"])


BLOCK = """
import sys
import textwrap
import pipesim
from launching import *  # three launches of the kernel that is named, without a recording
kernel = compiled("hands__8_4")
kernel.run
with pipesim.record("out", kernels="hands*", skip=1, compare=True) as recording:
    for _ in range(4):
        kernel.run(1, 1, 1, 0, kernel.function, None, None, None, None, memory.value, 5)
kernel.run(1, 1, 1, 0, kernel.function, None, None, None, None, memory.value, 5)
for each in recording.traces:
    print(each.kernel, each.trace, each.events, each.agreement.value, each.reason)
print(ctypes.c_int.from_address(memory.value).value, recording)
"""


@pytest.mark.slow
def test_a_part_of_a_process(fake: FakeCuda, tmp_path: Path) -> None:
    done = run(fake, tmp_path, fake.folder / "code.ptx", RIGHT, code=BLOCK)
    assert (done.returncode, done.stderr) == (0, "")
    first, second, third, *_ = done.stdout.splitlines()
    assert (first, second) == ("3 3", f"{RIGHT} out/{RIGHT}.parquet 30 conforms ")
    assert third.startswith("8 ")


def test_a_program_that_is_not_python_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CC", "no-such-compiler")
    assert main(["record", "--", "true"]) == 3
    out = " ".join(capsys.readouterr().out.split())
    assert "no Python process was observed; for others a C compiler and CUPTI are missing" in out


SHAPE = ("grid", 1, "block", 64, "number", 5)  #: of the launch in ``recordable``


@pytest.mark.slow
def test_a_program_that_is_not_python(fake: FakeCuda, tmp_path: Path) -> None:
    words = ("data", fake.folder / "code.ptx", *SHAPE, "repeat", 3, RIGHT, "ex", RIGHT, "launch", "plain__8_4")
    done = run(fake, tmp_path, "record", "--diff", "--launches", 2, "--skip", 1, "--", fake.folder / "program", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("5\n")
    assert done.stdout.count("✓ hands__8_4") == 2
    assert "  no barrier\n    plain__8_4\n" in done.stdout
    one, two = ((tmp_path / "recording" / f"{RIGHT}{n}.parquet").read_bytes() for n in ("", "-2"))
    assert len(one) > 100 < len(two)


@pytest.mark.sampled(0, 3)
@pytest.mark.parametrize(
    ("how", "options", "grids", "places"),
    [
        ("nodes", ("--launches", 2, "--skip", 1), [1, 1], ["kernel 1 of launch 2", "kernel 1 of launch 3"]),
        ("updated", ("--launches", 9), [1, 1, 2, 1, 3, 3],
         [f"kernel {kernel} of launch {launch}" for launch in (1, 2, 3) for kernel in (1, 2)]),
        ("disabled", ("--launches", 9), [1, 1], ["kernel 1 of launch 1", "kernel 2 of launch 1"]),
        ("late", ("--launches", 9), [2, 3, 4], [f"kernel 1 of launch {launch}" for launch in (3, 5, 6)]),
        ("branched", ("--launches", 9), [2, 3], [f"kernel 1 of launch {launch}" for launch in (3, 5)]),
    ],
)  # fmt: skip
def test_kernels_of_a_graph_that_is_launched(
    fake: FakeCuda, tmp_path: Path, how: str, options: tuple[object, ...], grids: list[int], places: list[str]
) -> None:
    """A graph in a graph; one that is changed after it was made executable; a change that no copy can follow.

    A kernel that comes into a graph after all others were recorded; one whose node is not certain after an update.
    """
    words = (fake.folder / "program", "data", fake.folder / "code.ptx", *SHAPE, how, RIGHT)
    done = run(fake, tmp_path, "record", "--diff", "--json", *options, "--", *words)
    assert (done.returncode, done.stderr) == (0, {"nodes": "3\n", "late": "12\n", "branched": "12\n"}.get(how, "6\n"))
    report = json.loads(done.stdout)["report"]
    (recorded,) = (kernel["recorded"] for kernel in report["kernels"] if kernel["name"] == RIGHT)
    assert [each["in_graph"] for each in recorded] == [f"{place} of CUDA graph 1" for place in places]
    assert [each["grid"][0] for each in recorded] == grids
    assert {each["agreement"] for each in recorded} == {"conforms"}
    said = [note for note in report["notes"] if "was not recorded" in note]
    assert len(said) == (how in ("disabled", "branched")), said
    assert all(("one of its nodes was changed alone" if how == "disabled" else "not certain") in note for note in said)


@pytest.mark.sampled(0, 2)
@pytest.mark.parametrize(
    ("how", "variable", "result", "said"),
    [
        ("updated", "FAKE_CUDA_NO_COPIES", "6", "a CUDA graph was not recorded: the driver copies none with"),
        ("updated", "FAKE_CUDA_CAPTURE_UNKNOWN", "6", "a launch was not recorded: the driver does not say whether its"),
        ("python", "FAKE_CUDA_CAPTURE_UNKNOWN", "1", "the driver does not say whether its stream is being captured"),
        ("device", "", "3", "a CUDA graph was not recorded: it can also be launched from the device"),
    ],
)
def test_what_cannot_be_recorded_is_launched_as_it_is_and_said(
    fake: FakeCuda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, variable: str, result: str, said: str
) -> None:
    monkeypatch.setenv(variable or "UNUSED", "1")
    words = "data", fake.folder / "code.ptx", *SHAPE, "launch" if how == "python" else how, RIGHT
    done = run(fake, tmp_path, "record", "--", *(main_of if how == "python" else program_of)(fake), *words)
    assert (done.returncode, done.stdout.splitlines()[0]) == (3, result)
    assert said in " ".join(done.stdout.split())


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize("by", ["program", "python"])
def test_a_graph_in_another_context(fake: FakeCuda, tmp_path: Path, by: str) -> None:
    """As of a second GPU: there its kernel has another function, and the graph has that one."""
    program = (main_of if by == "python" else program_of)(fake)
    words = (*program, "library", fake.folder / "code.ptx", *SHAPE, "launch", RIGHT)
    graphs = "context", 1, "captured", RIGHT, "context", 0, "captured", RIGHT
    done = run(fake, tmp_path, "record", "--diff", "--json", "--launches", 9, "--", *words, *graphs)
    kernels = json.loads(done.stdout)["report"]["kernels"]
    assert (done.returncode, len(kernels)) == (0, 1), kernels
    assert [each["in_graph"] for each in kernels[0]["recorded"]] == [
        "",
        *(f"kernel 1 of launch {launch} of CUDA graph {graph}" for graph in (1, 2) for launch in (1, 2, 3)),
    ]
    assert {each["agreement"] for each in kernels[0]["recorded"]} == {"conforms"}


GRAPH = """
from launching import *
kernel = compiled(sys.argv[2])
kernel.run
stream, graph, executable = (ctypes.c_void_p() for _ in range(3))
def call(name, *given): assert getattr(cuda, name)(*given) == 0
def by(stream): kernel.run(1, 1, 1, stream, kernel.function, None, None, None, None, memory.value, 5)
call("cuStreamCreate", ctypes.byref(stream), 0)
call("cuStreamBeginCapture_v2", stream, 0)
by(stream.value), by(stream.value)
call("cuStreamEndCapture", stream, ctypes.byref(graph))
call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_uint64(0))
for _ in range(4): call("cuGraphLaunch", executable, stream)
by(None)
call("cuGraphExecDestroy", executable)
print(ctypes.c_int.from_address(memory.value).value)
"""


@pytest.mark.slow
def test_a_captured_graph_of_a_process_in_python(fake: FakeCuda, tmp_path: Path) -> None:
    (fake.folder / "graph.py").write_text(GRAPH)
    words = (sys.executable, fake.folder / "graph.py", fake.folder / "code.ptx", RIGHT)
    done = run(fake, tmp_path, "record", "--diff", "--json", "--skip", 4, "--launches", 3, "--", *words)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "12")
    recorded = json.loads(done.stdout)["report"]["kernels"][0]["recorded"]
    assert [(each["in_graph"], each["agreement"]) for each in recorded] == [
        (f"kernel {kernel} of launch {launch} of CUDA graph 1", "conforms")
        for launch, kernel in ((3, 1), (3, 2), (4, 1))
    ]


#: Recorded twice, and changed between: the second recording must not put back what the first has copied.
CHANGED = (
    GRAPH.partition("for _ in range(4)")[0].replace("from launching import *", "")
    + """
for _ in range(2): call("cuGraphLaunch", executable, stream)
first.stop()
other, at = ctypes.c_void_p(), ctypes.c_uint64(memory.value + 8)
call("cuStreamBeginCapture_v2", stream, 0)
for _ in range(2): kernel.run(1, 1, 1, stream.value, kernel.function, None, None, None, None, at.value, 5)
call("cuStreamEndCapture", stream, ctypes.byref(other))
call("cuGraphExecUpdate_v2", executable, other, None)
with pipesim.record("second", kernels="hands*", launches=9) as second:
    for _ in range(2): call("cuGraphLaunch", executable, stream)
call("cuGraphLaunch", executable, stream)
print(*(ctypes.c_int.from_address(memory.value + n).value for n in (0, 8)), *second.report.notes)
"""
)


@pytest.mark.slow
def test_a_graph_that_was_changed_between_two_recordings(fake: FakeCuda, tmp_path: Path) -> None:
    begin = "import sys, pipesim\nfrom launching import *\nwith pipesim.record('first', launches=9) as first:\n"
    code = begin + textwrap.indent(CHANGED, "    ")
    done = run(fake, tmp_path, fake.folder / "code.ptx", RIGHT, code=code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("7 6 a CUDA graph was not recorded: it was executable before")


MACHINE_CODE = """
import sys
import textwrap
name = sys.argv.pop()
from launching import *
module, function, values = ctypes.c_void_p(), ctypes.c_void_p(), (ctypes.c_uint64(memory.value), ctypes.c_uint32(5))
code = b"\\x7fELF\\2\\1\\1\\x41".ljust(24, b"\\0") + bytes(8) + ELF_REST
assert cuda.cuModuleLoadData(ctypes.byref(module), code) == 0
assert cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode()) == 0
places = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))
assert cuda.cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, None, places, None) == 0
"""


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize("command", [("record", "--diff"), ("launches", "--check")])
def test_a_dump_has_the_ptx_of_machine_code(fake: FakeCuda, tmp_path: Path, command: tuple[str, str]) -> None:
    """As of XLA, which keeps none: the dump is written while the program runs."""
    (fake.folder / "code.py").write_text(MACHINE_CODE)
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "f.ptx").write_text(PTX)
    words = (sys.executable, fake.folder / "code.py", fake.folder / "code.ptx", RIGHT)
    done = run(fake, tmp_path, *command, "--json", "--kernels", RIGHT, "--ptx", "dump", "--", *words)
    (kernel,) = json.loads(done.stdout)["report"]["kernels"]
    (one,) = kernel["recorded" if command[0] == "record" else "caught"]
    assert (done.returncode, kernel["origin"]) == (0, "f.ptx"), kernel
    assert one.get("agreement", one.get("verdict")) in ("conforms", "proved")
