"""However a program begins others and ends: its output and exit code are its own, and files are whole or not there."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipesim.launches.inject import observed_environment
from pipesim.launches.observe.limits import Limits
from pipesim.launches.record.options import RecordOptions
from pipesim.launches.record.service import answering
from pipesim.launches.records.read import read_spool
from pipesim.launches.records.record import SpoolRecords
from tests.support import fake_cuda
from tests.support.fake_cuda import FakeCuda
from tests.support.recordable import PTX, RIGHT, buffer_after_a_launch
from tests.support.recorded_programs import write_program

#: What is done after three launches of a kernel: one is recorded.
PROGRAM = """
import faulthandler, multiprocessing, os, signal, subprocess, sys, threading
how = sys.argv.pop()
from launching import compiled, memory
def launch(kernel, times=1):
    for _ in range(times):
        kernel.run(1, 1, 1, 0, kernel.function, None, None, None, None, memory.value, 5)
def threads():
    kernel = compiled("hands__8_4"); kernel.run
    made = [threading.Thread(target=launch, args=(kernel, 20)) for _ in range(8)]
    [each.start() for each in made]; [each.join() for each in made]
def fork():
    if os.fork() == 0: os._exit(9)
    print("child", os.waitstatus_to_exitcode(os.wait()[1]))
sys.stdout.flush()
{"threads": threads, "fork": fork, "returns": lambda: sys.exit(7), "_exit": lambda: os._exit(5),
 "spawn": lambda: print("child", subprocess.run([sys.executable, *sys.argv, "returns"]).returncode),
 "crashes": lambda: os.kill(os.getpid(), signal.SIGSEGV), "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
}[how]()
"""
C_PROGRAM = ("data", "{ptx}", "grid", 1, "block", 64, "number", 5, "launch", RIGHT)
PRELOADED = (
    '#include <stdio.h>\n__attribute__((constructor)) static void begin(void) { puts("preloaded"); fflush(stdout); }\n'
)


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCuda]:
    made = fake_cuda.built(tmp_path_factory.mktemp("fake"))
    write_program(made.folder)
    (made.folder / "ends.py").write_text(PROGRAM)
    (made.folder / "code.ptx").write_text(PTX)
    (made.folder / "records").write_bytes(buffer_after_a_launch())
    with pytest.MonkeyPatch.context() as patch:  # the command's own ptxas is that of the tests
        patch.setenv("PATH", f"{made.folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
        yield made


def run(
    fake: FakeCuda, spool: Path, words: list[str], **more: str
) -> tuple[subprocess.CompletedProcess[str], SpoolRecords]:
    """The program as it is, which must do the same as under ``pipesim record``; and what was recorded of it."""
    plain = fake.environment() | {"PYTHONPATH": str(fake.folder), "XDG_CACHE_HOME": str(spool.parent)} | more
    plain["FAKE_CUDA_RECORDS"] = str(fake.folder / "records")
    spool.mkdir()
    options = RecordOptions()
    observed = observed_environment(spool, Limits(), plain, more=options.to_environment())
    alone = subprocess.run(words, env=plain, capture_output=True, text=True, timeout=60, check=False)
    with answering(spool, options):
        done = subprocess.run(words, env=observed, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (alone.returncode, alone.stdout, alone.stderr)
    names = {path.suffix for path in spool.iterdir() if path.is_file()}
    assert names <= {".jsonl", ".ptx", ".records"}, "nothing is left half"
    return done, read_spool(spool)


@pytest.mark.long
@pytest.mark.parametrize(
    ("how", "code", "processes"),
    [("threads", 0, 1), ("fork", 0, 1), ("spawn", 0, 2), ("returns", 7, 1), ("_exit", 5, 1),
     ("crashes", -11, 1), ("killed", -9, 1)],
)  # fmt: skip
def test_a_program_in_python(fake: FakeCuda, tmp_path: Path, how: str, code: int, processes: int) -> None:
    words = [sys.executable, str(fake.folder / "ends.py"), str(fake.folder / "code.ptx"), RIGHT, how]
    done, records = run(fake, tmp_path / "spool", words)
    assert (done.returncode, len(records.processes)) == (code, processes)
    recorded = [each for each in records.recorded if each.file]
    assert len(recorded) == (2 if how in ("threads", "spawn") else 1)  # of each kernel that was loaded
    if how == "threads":
        assert sum(each.launches for each in records.counts) == 3 + 8 * 20
    assert records.notes == []


@pytest.mark.long
@pytest.mark.parametrize("kernel", [RIGHT, "killed__8"])
def test_a_program_in_c_beside_another_preloaded_library(fake: FakeCuda, tmp_path: Path, kernel: str) -> None:
    source, library = tmp_path / "first.c", tmp_path / "first.so"
    source.write_text(PRELOADED)
    compiler = shutil.which(os.environ.get("CC", "cc"))
    assert compiler is not None
    subprocess.run([compiler, "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    words = [str(each).format(ptx=fake.folder / "code.ptx") for each in (*C_PROGRAM, "launch", kernel)]
    done, records = run(fake, tmp_path / "spool", [str(fake.folder / "program"), *words], LD_PRELOAD=str(library))
    assert (done.returncode, "preloaded" in done.stdout) == (0 if kernel == RIGHT else -9, True)
    assert [(each.launch.kernel, each.reason) for each in records.recorded if each.file] == [(RIGHT, "")]
